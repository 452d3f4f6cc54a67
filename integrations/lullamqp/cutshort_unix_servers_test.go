//go:build servers && unix

package lullamqp

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// Whatever happens to the server or the network during a reading: all letters are read, or an error says that they are not.
func TestRule24ServerStandsStillInAReading(t *testing.T) {
	t.Parallel()
	n := mortal(t, &forDeaths)
	for _, c := range []struct {
		what    string
		at      int // so many letters have been read
		redrive bool
	}{
		{"at first", 0, false},
		{"in the midst", 10, true},
		{"at the end", cutLetters, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			cutShort(t, c.at, c.redrive, func(*wire) { n.still(t, 3*time.Second) })
		})
	}
}

// The server finds that out after some heartbeats.
func TestRule24OnlyTheClientLosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		at      int
		redrive bool
	}{
		{"at first", 0, true},
		{"in the midst", 10, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			cutShort(t, c.at, c.redrive, func(w *wire) { w.silent.Store(true) })
		})
	}
}

// cutLetters is how many letters cutShort reads.
const cutLetters = 25

// cutShort inspects or redrives letters. When that many have been read, it does what disturbs the reading.
func cutShort(t *testing.T, at int, redrive bool, disturb func(w *wire)) {
	t.Helper()
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	numbered(t, ch, q.config.DeadLetters, cutLetters)
	var w wire
	defer w.cut()
	client := New(DialConfig(rabbit(t).url(), amqp.Config{Dial: w.dial, Heartbeat: 2 * time.Second}))
	defer client.Close(context.Background())
	from := must.Have(client.Letters(testContext(t), q.config.DeadLetters, LettersConfig{}))
	seen := 0
	step := func() {
		if seen == at {
			disturb(&w)
		}
		seen++
	}
	step()
	var p queue.Progress
	var err error
	if redrive {
		p, err = queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, func(queue.LetterResult) { step() })
	} else {
		p, err = queue.Inspect(testContext(t), from, queue.Filter{}, func(*queue.Letter) (bool, error) { step(); return true, nil })
	}
	t.Log(p, err)
	if err == nil && p.Seen < cutLetters {
		t.Errorf("%v, and no error", p)
	}
}

// still stops the server's process for d, from now on.
func (n *node) still(t *testing.T, d time.Duration) {
	n.signal(t, syscall.SIGSTOP)
	time.AfterFunc(d, func() { n.signal(t, syscall.SIGCONT) })
}

// The clock of one producer, or of one worker, ends no reading: what is behind its letter is read, too. A queue with a
// single active consumer is read like others.
func TestRule24NoClockEndsAReading(t *testing.T) {
	t.Parallel()
	const all = 25
	for _, ahead := range []time.Duration{90 * time.Second, 10 * time.Minute, 100 * 365 * 24 * time.Hour} {
		for _, args := range []amqp.Table{nil, {"x-queue-type": "quorum", "x-single-active-consumer": true}} {
			q := opened(t, declared(t, Config{}))
			ch := raw(t)
			name := q.config.DeadLetters
			if args != nil {
				name = fmt.Sprint("single.", names.Add(1))
				must.Have(ch.QueueDeclare(name, true, false, false, false, args))
				t.Cleanup(func() { raw(t).QueueDelete(name, false, false, false) })
			}
			for i := range all {
				m := amqp.Publishing{Body: fmt.Append(nil, i)}
				if i == 0 {
					r := record{id: "x", enqueued: time.Now().Add(ahead)}
					m.Headers = amqp.Table{}
					r.write(m.Headers)
				}
				publish(t, ch, "", name, m)
			}
			readable(t, ch, name, all)
			from := must.Have(q.client.Letters(testContext(t), name, LettersConfig{}))
			p, err := queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
			if err != nil || p.Moved != all {
				t.Errorf("ahead by %v, %v: %v, %v", ahead, args, p, err)
			}
		}
	}
}

// signal sends a signal to the server itself.
func (n *node) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	text := must.Have(os.ReadFile(filepath.Join(n.Dir, "pid")))
	pid := must.Have(strconv.Atoi(strings.TrimSpace(string(text))))
	must.Succeed(syscall.Kill(pid, s))
}

// A server that has fallen silent delays nobody for longer than the context allows. Requests from
// that time are carried out once, when it continues.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	n := mortal(t, &forDeaths)
	config := declared(t, Config{})
	q, other := opened(t, config), opened(t, config)
	send(t, q, "retry", "ack", "dead")
	all := receive(t, q, 3)
	nothing(t, other, 100*time.Millisecond) // it has connected
	settlements := map[string]queue.Settlement{
		"retry": {Outcome: queue.Retry, After: 10 * time.Millisecond}, "ack": {Outcome: queue.Ack},
		"dead": {Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: "dead"}},
	}
	n.signal(t, syscall.SIGSTOP)
	stopped := true
	defer func() {
		if stopped {
			n.signal(t, syscall.SIGCONT)
		}
	}()
	briefly := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := f(ctx)
		if ctx.Err() == nil && err == nil {
			return // an acknowledgement that was only written
		}
		check.Is(t, err, context.DeadlineExceeded, "%s", what)
	}
	began := time.Now()
	settled := map[string]bool{}
	for range 2 {
		for _, d := range all {
			body := string(d.Body)
			if !settled[body] {
				briefly(body, func(ctx context.Context) error {
					err := q.Settle(ctx, d, settlements[body])
					settled[body] = err == nil
					return err
				})
			}
		}
		briefly("Receive", func(ctx context.Context) error { _, err := other.Receive(ctx, queue.Want{Max: 10}); return err })
		briefly("Pause", func(ctx context.Context) error { return other.Pause(ctx, time.Time{}) })
		briefly("Letters", func(ctx context.Context) error { _, err := q.Letters(ctx); return err })
		briefly("Check", func(ctx context.Context) error { return q.client.Check(ctx, config) })
		fresh := opened(t, config)
		briefly("connecting", func(ctx context.Context) error { return fresh.Send(ctx, queue.Outgoing{}) })
	}
	if took := time.Since(began); took > time.Minute { // 16 calls of 200 ms
		t.Errorf("it took %v", took)
	}
	n.signal(t, syscall.SIGCONT)
	stopped = false
	for _, d := range all {
		if !settled[string(d.Body)] {
			settle(t, q, d, settlements[string(d.Body)])
		}
	}
	// The second Pause may be carried out just when the message is delivered for the second time.
	// Then that attempt was not made, and still counts (docs/queues.md).
	d := receive(t, other, 1)[0]
	if string(d.Body) != "retry" || d.Attempt < 2 || d.Attempt > 3 {
		t.Errorf("%s, attempt %d, want 2 or 3", d.Body, d.Attempt)
	}
	settle(t, other, d, queue.Settlement{Outcome: queue.Ack})
	nothing(t, other, time.Second)
	only(t, q)
}
