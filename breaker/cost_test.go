package breaker

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

var (
	never   = Config{Consecutive: math.MaxInt}
	allRule = Config{Consecutive: math.MaxInt, FailureRate: 1, SlowRate: 1, SlowCall: time.Second, MinCalls: math.MaxInt}
)

func TestCostNoAllocations(t *testing.T) {
	for name, c := range map[string]Config{"default": never, "all rules": allRule} {
		b := must.Have(New(c))
		var now time.Duration
		for _, o := range []Evidence{Success, Neutral, Failure} {
			round := func() {
				now += time.Millisecond
				tok, ok := b.Start(now)
				if !ok {
					t.Fatal("refused")
				}
				b.Done(now+10*time.Microsecond, tok, o, nil)
			}
			round() // may make a counter
			check.Equal(t, testing.AllocsPerRun(1000, round), 0, "%s: Start and Done, %v: allocations", name, o)
		}
		b.ForceOpen(now)
		check.Equal(t, testing.AllocsPerRun(1000, func() { b.Start(now); b.State(now); b.RetryAt(now); b.Counts(now) }), 0, "%s: refusal and readings: allocations", name)
	}
}

// With the default rules an outage takes no memory either.
func TestCostNoAllocationsInAnOutage(t *testing.T) {
	b := must.Have(New(Config{}))
	var now time.Duration
	opened := 0
	if n := testing.AllocsPerRun(1000, func() {
		now += time.Second
		if tok, ok := b.Start(now); ok {
			b.Done(now+time.Second, tok, Failure, nil)
		}
		if b.state() == Open {
			opened++
		}
	}); n != 0 || opened < 100 {
		t.Errorf("%v allocations a call, %d of 1000 open, want 0", n, opened)
	}
}

func TestCostMemory(t *testing.T) {
	if n := unsafe.Sizeof(Ticket{}); n > 16 {
		t.Errorf("a Token takes %d bytes, want 16 at most", n)
	}
	if n := unsafe.Sizeof(Breaker{}); n > 144 {
		t.Errorf("a Breaker takes %d bytes, want 144 at most", n)
	}
	p := must.Have(Prepare(Config{}))
	check.Equal(t, testing.AllocsPerRun(100, func() { sink = p.New() }), 1, "allocations of a breaker of a plan")
	b := p.New()
	run(b, 0, 10, Success)
	run(b, 0, 10, Failure)
	run(b, 0, 10, Neutral)
	b.Counts(0)
	if b.counted.Load() != nil {
		t.Error("a breaker that judges by failures in a row has counters of calls")
	}

	b = must.Have(New(allRule))
	b.State(0)
	b.Counts(0)
	if b.counted.Load() != nil {
		t.Error("a breaker that saw no call has counters")
	}
	tok, _ := b.Start(0)
	b.Done(0, tok, Success, nil)
	if c := b.counted.Load(); c == nil || c.failed.p.Load() != nil || c.slow.p.Load() != nil {
		t.Error("a success must make one counter, that of starts")
	}
}

func BenchmarkCall(b *testing.B) {
	for name, c := range map[string]struct {
		Config
		Evidence
	}{
		"success": {Config{}, Success}, "success, all rules": {allRule, Success}, "success, share rule": {Config{FailureRate: 0.5}, Success},
		"failure": {never, Failure}, "failure, all rules": {allRule, Failure},
	} {
		call := func(k *Breaker, now time.Duration) {
			t, _ := k.Start(now)
			k.Done(now+50, t, c.Evidence, nil)
		}
		b.Run(name, func(b *testing.B) {
			k := must.Have(New(c.Config))
			b.ReportAllocs()
			for now := time.Duration(0); b.Loop(); now += 100 {
				call(k, now)
			}
		})
		b.Run(name+", all cores", func(b *testing.B) {
			k := must.Have(New(c.Config))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for now := time.Duration(0); pb.Next(); now += 100 {
					call(k, now)
				}
			})
		})
	}
}

var sink *Breaker
