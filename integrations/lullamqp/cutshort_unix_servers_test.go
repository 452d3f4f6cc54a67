//go:build servers && unix

package lullamqp

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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
	from, err := client.Letters(testContext(t), q.config.DeadLetters, LettersConfig{})
	must(t, err)
	seen := 0
	step := func() {
		if seen == at {
			disturb(&w)
		}
		seen++
	}
	step()
	var p queue.Progress
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
				if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
					t.Fatal(err)
				}
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
			from, err := q.client.Letters(testContext(t), name, LettersConfig{})
			must(t, err)
			p, err := queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
			if err != nil || p.Moved != all {
				t.Errorf("ahead by %v, %v: %v, %v", ahead, args, p, err)
			}
		}
	}
}
