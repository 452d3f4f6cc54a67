package breaker

import (
	"testing"
	"time"
	"unsafe"
)

func TestCostNoAllocations(t *testing.T) {
	b := must(t, Config{})
	var now time.Duration
	round := func(o Outcome) func() {
		return func() {
			now += time.Millisecond
			tok, ok := b.Start(now)
			if !ok {
				t.Fatal("refused")
			}
			b.Done(now+10*time.Microsecond, tok, o, nil)
		}
	}
	round(Success)()
	if n := testing.AllocsPerRun(1000, round(Success)); n != 0 {
		t.Errorf("Start and Done of a success: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, round(Neutral)); n != 0 {
		t.Errorf("Start and Done of a neutral call: %v allocations, want 0", n)
	}
	b = must(t, Config{FailureRate: -1})
	round(Failure)() // makes the counter of failures
	if n := testing.AllocsPerRun(1000, round(Failure)); n != 0 {
		t.Errorf("Start and Done of a failure: %v allocations, want 0", n)
	}
	b.ForceOpen(now)
	if n := testing.AllocsPerRun(1000, func() { b.Start(now); b.State(now); b.RetryAt(now); b.Counts(now) }); n != 0 {
		t.Errorf("refusal and readings: %v allocations, want 0", n)
	}
}

func TestCostMemory(t *testing.T) {
	if n := unsafe.Sizeof(Token{}); n > 24 {
		t.Errorf("a Token takes %d bytes, want 24 at most", n)
	}
	if n := unsafe.Sizeof(Breaker{}); n > 256 {
		t.Errorf("a Breaker takes %d bytes, want 256 at most", n)
	}
	b := must(t, Config{})
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

func benchmarkCalls(b *testing.B, c Config, o Outcome) {
	k := must(b, c)
	var now time.Duration
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		t, _ := k.Start(now)
		k.Done(now+50, t, o, nil)
	}
}

func BenchmarkSuccess(b *testing.B) { benchmarkCalls(b, Config{}, Success) }

func BenchmarkSuccessAllRules(b *testing.B) {
	benchmarkCalls(b, Config{Consecutive: 5, SlowRate: 0.5, SlowCall: time.Second}, Success)
}

func BenchmarkSuccessParallel(b *testing.B) {
	k, _ := New(Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var now time.Duration
		for pb.Next() {
			now += 100
			t, _ := k.Start(now)
			k.Done(now+50, t, Success, nil)
		}
	})
}

func BenchmarkFailure(b *testing.B) {
	benchmarkCalls(b, Config{FailureRate: 1, MinCalls: 1 << 40}, Failure)
}

func BenchmarkRefused(b *testing.B) {
	k, _ := New(Config{})
	k.ForceOpen(0)
	b.ReportAllocs()
	for b.Loop() {
		k.Start(1)
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		k, _ := New(Config{})
		_ = k
	}
}
