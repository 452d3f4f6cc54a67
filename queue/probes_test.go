package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// However long an outage, and however many workers look from time to time whether it is
// over: once they know of it, no message dies of it where deferrals are free. (Each worker
// learns of it by failures of its own. With so many workers, and a message in eleven
// seconds, the first one may have all of its attempts before the last of them knows.)
func TestNoMessageDiesOfAnOutage(t *testing.T) {
	const workers, outage = 20, 3 * time.Hour
	dead := map[bool]int{}
	for _, free := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{CountDefers: !free})
			began := time.Now()
			var ended, runs atomic.Int64
			var all []*running
			for range workers {
				d := dependency(t, queue.Policy())
				for b := d.Breaker(); b.State(d.Now()) != breaker.Open; time.Sleep(time.Second) {
					lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) })
				}
				all = append(all, start(t, m, d, func(ctx context.Context, _ *queue.Message) error {
					runs.Add(1)
					time.Sleep(10 * time.Millisecond)
					if time.Since(began) < outage {
						return lull.Transient(errBlip)
					}
					ended.Add(1)
					return nil
				}, queue.Config{}))
			}
			const n = 1000
			for i := range n {
				send(t, m, fmt.Sprint(i))
				time.Sleep(outage / n)
			}
			time.Sleep(time.Hour)
			dead[free] = m.DeadLetters().Len()
			t.Logf("deferrals free %v: %d messages, %d handled, %d dead, %d runs", free, n, ended.Load(), dead[free], runs.Load())
			if m.Len() != 0 || int(ended.Load())+dead[free] != n {
				t.Errorf("%d messages are left, %d were handled and %d are dead", m.Len(), ended.Load(), dead[free])
			}
			for _, r := range all {
				r.stop(t)
			}
		})
	}
	check.Equal(t, dead[true], 0, "messages that died of an outage")
	if dead[false] < 10 {
		t.Errorf("%d died where deferrals count: this test tells nothing", dead[false])
	}
}

// A message that is itself what makes the dependency fail is every probe, if there is no
// other, and dies all the same.
func TestTheOnlyMessageDiesOfItsProbes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "poison")
		runs := 0
		p := plain(5)
		p.Breaker = breaker.Config{Consecutive: 2, ConsecutiveFor: -1, OpenFor: 10 * time.Second}
		start(t, m, dependency(t, p), func(context.Context, *queue.Message) error {
			runs++
			return lull.Transient(errBlip)
		}, queue.Config{}).run(t, 24*time.Hour)
		letters := letters(t, m)
		if len(letters) != 1 || letters[0].Reason != "attempts_exhausted" || letters[0].Attempts != 5 {
			t.Errorf("%+v", letters)
		}
		check.Equal(t, runs, 10, "runs: 5 attempts, and as many probes that were none")
	})
}

// A handler that defers its message shows nothing of the dependency: a probe that is deferred
// leaves the circuit as it is.
func TestADeferralShowsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "a")
		p := plain(9)
		p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 10 * time.Second, OpenMax: 10 * time.Second, Probes: 1}
		d := dependency(t, p)
		runs := 0
		r := start(t, m, d, func(context.Context, *queue.Message) error {
			switch runs++; runs {
			case 1:
				return lull.Transient(errBlip)
			case 2:
				return queue.DeferFor(nil, 30*time.Second)
			}
			return nil
		}, queue.Config{})
		for _, want := range []struct {
			after time.Duration
			runs  int
			state breaker.CircuitState
		}{
			{time.Second, 1, breaker.Open},
			{20 * time.Second, 2, breaker.HalfOpen},
			{time.Minute, 3, breaker.Closed},
		} {
			time.Sleep(want.after)
			synctest.Wait()
			check.Equal(t, runs, want.runs, "runs")
			check.Equal(t, d.Breaker().State(d.Now()), want.state, "after %d runs the breaker is", want.runs)
		}
		r.stop(t)
	})
}

// A policy that is updated while the consumer runs holds for what comes next. Messages are not
// hedged: under a policy that hedges, a message that is tried again does not count as crashed.
func TestThePolicyMayBeUpdated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{})
		d := dependency(t, plain(3))
		of := []int{}
		r := start(t, m, d, func(_ context.Context, m *queue.Message) error {
			of = append(of, m.Of)
			return lull.Transient(errBlip)
		}, queue.Config{})
		send(t, m, "hello")
		time.Sleep(1500 * time.Millisecond) // two attempts
		must.Succeed(d.Update(plain(5)))
		time.Sleep(time.Second)
		hedged := plain(1)
		hedged.Hedge.Attempts = 2
		must.Succeed(d.Update(hedged))
		time.Sleep(time.Minute)
		synctest.Wait()
		check.Equal(t, fmt.Sprint(of[:4]), "[3 3 5 5]", "attempts allowed")
		dead := letters(t, m)
		if len(dead) != 1 || dead[0].Reason != "attempts_exhausted" {
			t.Errorf("dead letters: %+v", dead)
		}
		r.stop(t)
	})
}

// A policy that hedges has no effect before the first message either.
func TestAPolicyThatHedgesFromTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		d := dependency(t, plain(3))
		of := 0
		c := must.Have(queue.New("orders", m, d, func(_ context.Context, m *queue.Message) error { of = m.Of; return nil }, queue.Config{}))
		hedged := plain(1)
		hedged.Hedge.Attempts = 2
		must.Succeed(d.Update(hedged))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must.Succeed(c.Run(ctx))
		check.Equal(t, of, 3, "attempts allowed")
		check.Equal(t, m.Len(), 0, "messages left")
	})
}
