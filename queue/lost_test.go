package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

// cuttable is a broker whose connection breaks: what was out is lost, and comes back.
type cuttable struct {
	*queue.MemoryBroker
	mu      sync.Mutex
	silent  bool // the next settlement is lost with the connection
	out     map[*queue.Delivery]context.CancelCauseFunc
	handled int // deliveries
}

func (b *cuttable) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	got, err := b.MemoryBroker.Receive(ctx, w)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range got {
		d.Held, b.out[d] = context.WithCancelCause(context.Background())
		b.handled++
	}
	return got, err
}

func (b *cuttable) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cancel := range b.out {
		cancel(errBlip)
	}
	clear(b.out)
}

func (b *cuttable) lost(d *queue.Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out[d] == nil
}

func (b *cuttable) Extend(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
	if b.lost(d) {
		return time.Time{}, queue.ErrLost
	}
	return b.MemoryBroker.Extend(ctx, d, l)
}

func (b *cuttable) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	b.mu.Lock()
	silent := b.silent
	b.silent = false
	b.mu.Unlock()
	if silent {
		b.cut()
	}
	if b.lost(d) {
		return queue.ErrLost
	}
	return b.MemoryBroker.Settle(ctx, d, s)
}

// What this process has seen to end is neither an attempt nor a crash when its connection was
// gone, and is not done twice.
func TestABrokenConnectionIsNoCrash(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler func(ctx context.Context, b *cuttable, run int) error
		runs    string // the attempts
		end     string
		letter  string
	}{
		{"cut off once", func(ctx context.Context, b *cuttable, run int) error {
			if run == 1 {
				b.cut()
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}, "1 1", "ack", ""},
		{"cut off twenty times", func(ctx context.Context, b *cuttable, run int) error {
			if run <= 20 {
				b.cut()
				<-ctx.Done()
				return fmt.Errorf("signal: killed")
			}
			return nil
		}, "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "ack", ""},
		{"it says that it is permanent, when it was cut off", func(ctx context.Context, b *cuttable, run int) error {
			if run == 1 {
				b.cut()
				<-ctx.Done()
				return lull.Permanent(errBlip)
			}
			return nil
		}, "1 1", "ack", ""},
		{"handled although the connection is gone", func(_ context.Context, b *cuttable, _ int) error {
			b.cut()
			return nil
		}, "1", "ack", ""},
		{"handled long after the message has come again", func(_ context.Context, b *cuttable, _ int) error {
			b.cut()
			time.Sleep(time.Minute)
			return nil
		}, "1", "ack", ""},
		{"handled at last, after the message has come and was lost again and again", func(_ context.Context, b *cuttable, _ int) error {
			for range 20 {
				b.cut()
				time.Sleep(3100 * time.Millisecond)
			}
			return nil
		}, "1", "ack", ""},
		{"failed at last, after the message has come and was lost again and again", func(_ context.Context, b *cuttable, run int) error {
			for range 20 {
				b.cut()
				time.Sleep(3100 * time.Millisecond)
			}
			if run == 1 {
				return lull.Permanent(errBlip)
			}
			return nil
		}, "1 1", "ack", ""},
		{"the acknowledgement was lost", func(_ context.Context, b *cuttable, _ int) error {
			b.silent = true
			return nil
		}, "1", "ack", ""},
		{"the dead letter was lost", func(_ context.Context, b *cuttable, _ int) error {
			b.silent = true
			return lull.Permanent(errBlip)
		}, "1", "dead-letter", "permanent 1"},
		{"the retry was lost", func(_ context.Context, b *cuttable, run int) error {
			if run == 1 {
				b.silent = true
				return lull.Transient(errBlip)
			}
			return nil
		}, "1 2", "ack", ""},
		{"each retry was lost", func(_ context.Context, b *cuttable, run int) error {
			b.silent = true
			return lull.Transient(errBlip)
		}, "1 2 3", "dead-letter", "attempts_exhausted 3"},
	} {
		for _, told := range []bool{true, false} {
			subtest(t, fmt.Sprint(c.name, "/told ", told), func(t *testing.T) {
				b := &cuttable{MemoryBroker: memory(t, queue.MemoryBrokerConfig{CountDefers: !told}), out: map[*queue.Delivery]context.CancelCauseFunc{}}
				send(t, b, "hello")
				run, runs := 0, ""
				r := start(t, b, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error {
					if run++; run > 1 {
						runs += " "
					}
					runs += fmt.Sprint(m.Attempt)
					return c.handler(ctx, b, run)
				}, queue.Config{Lease: 2 * time.Second}).run(t, time.Hour)
				check.Equal(t, runs, c.runs, "attempts")
				check.Equal(t, b.Len(), 0, "left")
				events := r.of(queue.EventSettled)
				check.Equal(t, events[len(events)-1].Outcome.String(), c.end, "end")
				letter := ""
				for _, l := range letters(t, b.MemoryBroker) {
					letter = fmt.Sprint(l.Reason, " ", l.Attempts)
				}
				check.Equal(t, letter, c.letter, "letter")
			})
		}
	}
}

// Another message with the id of one whose acknowledgement was lost is handled.
func TestKnownMessagesAreNoOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{})
		var fail atomic.Bool
		b := revised(m, func(d *queue.Delivery) { // all messages have one id, as a sender may give them
			d.Receipt = [2]any{d.ID, d.Receipt}
			d.ID = "same"
		})
		b.extend = func(context.Context, *queue.Delivery, time.Duration) (time.Time, error) {
			return time.Time{}, queue.ErrLost
		}
		b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if fail.Load() {
				return queue.ErrLost
			}
			of, k := *d, d.Receipt.([2]any)
			of.ID, of.Receipt = k[0].(string), k[1]
			return m.Settle(ctx, &of, s)
		}
		var bodies []string
		r := start(t, b, dependency(t, plain(3)), func(_ context.Context, m *queue.Message) error {
			bodies = append(bodies, string(m.Body))
			return nil
		}, queue.Config{})
		fail.Store(true)
		send(t, b, "one")
		time.Sleep(time.Second)
		fail.Store(false)
		send(t, b, "two")
		time.Sleep(time.Hour)
		synctest.Wait()
		check.Equal(t, fmt.Sprint(bodies), "[one two one]", "handled")
		r.stop(t)
	})
}

// One message in a crowd kills its worker. It becomes a letter, and no other message does, though all
// were in flight with it. The same holds if deferrals cost an attempt.
func TestOneMessageKillsItsWorker(t *testing.T) {
	for _, told := range []bool{true, false} {
		subtest(t, fmt.Sprint("told ", told), func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{CountDefers: !told})
			for i := range 60 {
				send(t, m, fmt.Sprint(i))
			}
			var mu sync.Mutex
			done := map[string]bool{}
			deaths := 0
			var work func()
			var workers []*running
			work = func() {
				mu.Lock()
				defer mu.Unlock()
				b := newProcess(m)
				workers = append(workers, start(t, b, dependency(t, plain(4)), func(ctx context.Context, m *queue.Message) error {
					if string(m.Body) == "5" {
						time.Sleep(300 * time.Millisecond)
						if !b.dead.Swap(true) {
							deaths++
							go work()
						}
						return errBlip
					}
					time.Sleep(time.Second)
					if b.dead.Load() {
						return errBlip
					}
					mu.Lock()
					defer mu.Unlock()
					done[string(m.Body)] = true
					return nil
				}, queue.Config{Concurrency: 32, Drain: -1}))
			}
			work()
			for began := time.Now(); m.Len() > 0 && time.Since(began) < 3*time.Hour; time.Sleep(time.Second) {
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for i, r := range workers {
				if i < len(workers)-1 {
					r.cancel()
				} else {
					r.stop(t)
				}
			}
			check.Equal(t, len(done), 59, "handled")
			dead := letters(t, m)
			if len(dead) != 1 || string(dead[0].Body) != "5" || dead[0].Reason != queue.ReasonCrashed || dead[0].Attempts != deaths || !dead[0].LastFailure.IsZero() {
				t.Errorf("letters %+v", dead)
			}
			want := map[bool]int{true: 6, false: 7}[told]
			if deaths > want {
				t.Errorf("%d deaths, want %d at most", deaths, want)
			}
			t.Logf("%d deaths", deaths)
		})
	}
}

// mortalProcess is a process's connection to a MemoryBroker: nothing that it asks for is done when it is dead.
type mortalProcess struct {
	broker
	dead atomic.Bool
}

func newProcess(m *queue.MemoryBroker) *mortalProcess {
	p := &mortalProcess{broker: broker{MemoryBroker: m}}
	p.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
		if p.dead.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		within, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		got, err := m.Receive(within, w)
		if ctx.Err() == nil {
			err = nil
		}
		return got, err
	}
	p.extend = func(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
		if p.dead.Load() {
			return time.Time{}, errBlip
		}
		return m.Extend(ctx, d, l)
	}
	p.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
		if p.dead.Load() {
			return errBlip
		}
		return m.Settle(ctx, d, s)
	}
	return p
}
