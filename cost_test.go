package lull_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
)

// counter is an observer that does as little as one can.
type counter struct{ calls atomic.Int64 }

func (c *counter) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		c.calls.Add(1)
	}
}

// wholeStack is retry, budget, breaker and concurrency limit, observed.
func wholeStack(t testing.TB) *lull.Dependency {
	return newDependency(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Limit: bulkhead.Config{InFlight: 1024}}, lull.WithObserver(&counter{}))
}

func succeed(context.Context) error { return nil }

func value(context.Context) (int, error) { return 1, nil }

func TestTheSuccessPathAllocatesNothing(t *testing.T) {
	near, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	whole, zero := wholeStack(t), newDependency(t, lull.Policy{}, lull.WithObserver(&counter{}))
	later := newDependency(t, lull.Policy{Deadline: 2 * time.Hour, AttemptTimeout: 2 * time.Hour}, lull.WithObserver(&counter{}))
	for name, c := range map[string]struct {
		want float64
		call func()
	}{
		"Run, no timeouts":                       {0, func() { lull.Run(context.Background(), whole, succeed) }},
		"Do, no timeouts":                        {0, func() { lull.Do(context.Background(), whole, value) }},
		"Do, with options":                       {0, func() { lull.Do(context.Background(), whole, value, lull.Operation("get"), lull.NotIdempotent()) }},
		"the caller's deadline is nearer":        {0, func() { lull.Do(near, later, value) }},
		"zero policy, the attempt has a timeout": {1, func() { lull.Do(context.Background(), zero, value) }},
	} {
		if got := testing.AllocsPerRun(1000, c.call); got > c.want {
			t.Errorf("%s: %v allocations, want %v", name, got, c.want)
		}
	}
}

// What a dependency remembers is allocated when there is something to remember.
func TestADependencyThatHasSeenLittleIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template := newDependency(t, lull.Policy{Attempts: 3, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond}})
		const n = 1000
		all := make([]*lull.Dependency, n)
		each := func(do func(i int)) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range all {
				do(i)
			}
			runtime.ReadMemStats(&after)
			return (after.TotalAlloc - before.TotalAlloc) / n
		}
		other := make([]*lull.Dependency, n)
		for i := range other {
			other[i] = template.Clone("another")
		}
		blip := lull.Transient(errBlip)
		fail := func(context.Context) error { return blip }
		never := each(func(i int) { all[i] = template.Clone("another") })
		once := each(func(i int) { lull.Run(context.Background(), all[i], succeed) })
		twice := each(func(i int) { lull.Run(context.Background(), all[i], succeed) })
		t.Logf("never called: %d bytes; first call: %d more; second: %d more", never, once, twice)
		failed := each(func(i int) { lull.Run(context.Background(), other[i], fail) })
		t.Logf("a first call that failed: %d bytes, with its timer and its error", failed)
		if never > 64 || once > 16 || twice > 640 || failed > 1200 {
			t.Error("want at most 64, 16, 640 and 1200")
		}
		runtime.KeepAlive(all)
	})
}

func BenchmarkDo(b *testing.B) {
	near, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		d    *lull.Dependency
	}{
		{"whole", context.Background(), wholeStack(b)},
		{"unobserved", context.Background(), newDependency(b, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Limit: bulkhead.Config{InFlight: 1024}})},
		{"zero", context.Background(), newDependency(b, lull.Policy{})},
		{"nearer", near, newDependency(b, lull.Policy{Deadline: 2 * time.Hour, AttemptTimeout: 2 * time.Hour})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := lull.Run(c.ctx, c.d, succeed); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					lull.Run(c.ctx, c.d, succeed)
				}
			})
		})
	}
	b.Run("three failures", func(b *testing.B) {
		d := newDependency(b, lull.Policy{Attempts: 4, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Budget: plenty, Backoff: backoff.Schedule{Kind: backoff.Constant}})
		fail := lull.Transient(errBlip)
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			if err := lull.Run(context.Background(), d, func(context.Context) error {
				if n++; n < 4 {
					return fail
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
