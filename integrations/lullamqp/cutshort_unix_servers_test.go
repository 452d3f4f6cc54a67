//go:build servers && unix

package lullamqp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/queue"
)

// consumes is the method basic.consume in a frame.
var consumes = []byte{0, 60, 0, 20}

// halfCut is a network between a client and a server. When cut is set and the client begins to consume, the client
// loses its connection, and the server does not notice.
func halfCut(t *testing.T, to string, cut *atomic.Bool) (address string) {
	t.Helper()
	u, err := url.Parse(to)
	must(t, err)
	in, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { in.Close() })
	server := u.Host
	u.Host, u.RawQuery = in.Addr().String(), "heartbeat=2"
	go func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			t.Cleanup(func() { up.Close() })
			var dead atomic.Bool
			go func() {
				defer client.Close()
				b := make([]byte, 1<<16)
				for {
					n, err := up.Read(b)
					if err != nil {
						return
					}
					if !dead.Load() {
						client.Write(b[:n])
					}
				}
			}()
			go func() {
				b := make([]byte, 1<<16)
				for {
					n, err := client.Read(b)
					if err != nil {
						if !dead.Load() {
							up.Close()
						}
						return
					}
					if bytes.Contains(b[:n], consumes) && cut.CompareAndSwap(true, false) {
						dead.Store(true)
						defer client.Close()
						up.Write(b[:n])
						io.Copy(io.Discard, client)
						return
					}
					up.Write(b[:n])
				}
			}()
		}
	}()
	return u.String()
}

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
			cutShort(t, c.at, c.redrive, func(*atomic.Bool) { n.still(t, 3*time.Second) })
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
			cutShort(t, c.at, c.redrive, func(cut *atomic.Bool) { cut.Store(true) })
		})
	}
}

// cutLetters is how many letters cutShort reads.
const cutLetters = 25

// cutShort inspects or redrives letters. When that many have been read, it does what disturbs the reading.
func cutShort(t *testing.T, at int, redrive bool, disturb func(cut *atomic.Bool)) {
	t.Helper()
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	numbered(t, ch, q.config.DeadLetters, cutLetters)
	var cut atomic.Bool
	client := New(Dial(halfCut(t, rabbit(t).url(), &cut)))
	defer client.Close(context.Background())
	from, err := client.Letters(testContext(t), q.config.DeadLetters, Reading{})
	must(t, err)
	seen := 0
	step := func() {
		if seen == at {
			disturb(&cut)
		}
		seen++
	}
	step()
	var p queue.Progress
	if redrive {
		p, err = queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, func(queue.Step) { step() })
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
			from, err := q.client.Letters(testContext(t), name, Reading{})
			must(t, err)
			p, err := queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
			if err != nil || p.Moved != all {
				t.Errorf("ahead by %v, %v: %v, %v", ahead, args, p, err)
			}
		}
	}
}
