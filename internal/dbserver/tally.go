package dbserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sqlcall"
)

// A Tally makes writes, each with a number of its own, and compares what was reported of them with
// what the database has afterwards.
type Tally struct {
	// Write makes write n.
	Write func(ctx context.Context, n int) error
	Rows  func() (map[int]int, error) // returns how often each number is in the table

	done, unknown, failed atomic.Int64
	mu                    sync.Mutex
	reported              map[int]bool // whose success was reported
}

// write makes write n and notes what was reported.
func (r *Tally) write(ctx context.Context, n int) error {
	err := r.Write(ctx, n)
	switch {
	case err == nil:
		r.done.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.reported == nil {
			r.reported = map[int]bool{}
		}
		r.reported[n] = true
	case errors.Is(err, sqlcall.ErrOutcomeUnknown) || errors.Is(err, lull.ErrNotIdempotent):
		r.unknown.Add(1)
	default:
		r.failed.Add(1)
	}
	return err
}

// check compares what was reported with the rows.
func (r *Tally) check(t *testing.T) {
	t.Helper()
	there := must.Have(r.Rows())
	twice, lost := 0, 0
	for _, n := range there {
		if n > 1 {
			twice++
		}
	}
	for id := range r.reported {
		if there[id] == 0 {
			lost++
		}
	}
	t.Logf("%d writes reported as done, %d of unknown outcome, %d failed; %d rows; carried out twice: %d; reported and lost: %d",
		r.done.Load(), r.unknown.Load(), r.failed.Load(), len(there), twice, lost)
	if twice > 0 || lost > 0 {
		t.Errorf("%d writes were carried out twice, and %d that were reported as done are not there", twice, lost)
	}
	// Only a write of unknown outcome may be there although nobody knows.
	if extra := len(there) - int(r.done.Load()); extra > int(r.unknown.Load()) {
		t.Errorf("%d writes are there that were reported as failed, of which %d are of unknown outcome", extra, r.unknown.Load())
	}
}

// Cut makes writes through p, which cuts connections, with eight writers. No write is carried out
// twice, and most are not lost. discard closes a connection of the pool, so that another is
// dialled.
func (r *Tally) Cut(t *testing.T, p *Proxy, writes int, discard func()) {
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range numbers {
				r.write(t.Context(), n)
				if n%10 == 0 {
					discard()
				}
			}
		})
	}
	for n := range writes {
		numbers <- n
	}
	close(numbers)
	wg.Wait()
	t.Logf("%d connections, of which %d were cut", p.Dials.Load(), p.Cuts.Load())
	r.check(t)
	if cut, of := p.Cuts.Load(), p.Dials.Load(); cut*7 < of {
		t.Errorf("%d of %d connections were cut, want a fifth", cut, of)
	}
	if done := r.done.Load(); done < int64(writes)*95/100 {
		t.Errorf("only %d of %d writes were done", done, writes)
	}
}

// Restarts stops s in order, kills it, and freezes it, while eight writers write. Afterwards they
// succeed again, and none was carried out twice. A driver that is deaf does not end when its
// context does, so that nothing is to be seen of a server that is frozen.
func (r *Tally) Restarts(t *testing.T, s *Server, deaf bool) {
	var next atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := r.write(context.WithoutCancel(ctx), int(next.Add(1))); err != nil {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	await := func(what string, counter *atomic.Int64) {
		t.Helper()
		from := counter.Load()
		for end := time.Now().Add(time.Minute); counter.Load() < from+100; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: only %d within a minute", what, counter.Load()-from)
			}
		}
	}
	restart := func(what string, end func()) {
		t.Helper()
		end()
		await(what+": failures", &r.failed)
		must.Succeed(s.Start())
		await(what+": writes afterwards", &r.done)
	}
	await("writes", &r.done)
	restart("stopped", s.Stop)
	restart("killed", s.Kill)
	if !deaf {
		s.Freeze()
		await("frozen: failures", &r.failed)
		s.Thaw()
		await("frozen: writes afterwards", &r.done)
	}
	stop()
	wg.Wait()
	r.check(t)
}
