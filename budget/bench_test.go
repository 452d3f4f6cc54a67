package budget

import (
	"testing"
	"time"
	"unsafe"
)

func BenchmarkEndSuccess(b *testing.B) {
	budget := must(b, Config{})
	var now time.Duration
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		budget.End(now, true, 0)
	}
}

// Through the interface, as the engine calls it, with everything else that a
// call without failures does.
func BenchmarkSuccessfulCall(b *testing.B) {
	for _, c := range []struct {
		name string
		new  func() (Budget, error)
	}{
		{"ratio", func() (Budget, error) { return New(Config{}) }},
		{"grpc", func() (Budget, error) { return NewGRPCThrottle(GRPCConfig{100, 0.1}) }},
		{"aws", func() (Budget, error) { return NewAWSQuota(AWSStandard21()) }},
		{"envoy", func() (Budget, error) { return NewEnvoyConcurrency(EnvoyDefault()) }},
		{"finagle", func() (Budget, error) { return NewFinagleBucket(FinagleDefault()) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			budget, err := c.new()
			if err != nil {
				b.Fatal(err)
			}
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				budget.Begin(now)
				budget.End(now, true, 0)
			}
		})
	}
}

func BenchmarkEndSuccessParallel(b *testing.B) {
	budget := must(b, Config{})
	b.RunParallel(func(pb *testing.PB) {
		var now time.Duration
		for pb.Next() {
			now += 100
			budget.End(now, true, 0)
		}
	})
}

func BenchmarkWithdraw(b *testing.B) {
	b.Run("granted", func(b *testing.B) {
		budget := must(b, Config{Floor: 1e6})
		var now time.Duration
		b.ReportAllocs()
		for b.Loop() {
			now += 10_000
			budget.Withdraw(now, Transient, never)
		}
	})
	b.Run("refused", func(b *testing.B) {
		budget := must(b, Config{})
		budget.Withdraw(0, Transient, latest)
		var now time.Duration
		b.ReportAllocs()
		for b.Loop() {
			now += 100
			budget.Withdraw(now, Transient, never)
		}
	})
}

// The package comment says how much memory a Ratio takes; a simulator holds
// millions.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Ratio{}); got > 168 {
		t.Errorf("a Ratio takes %d bytes, the package comment says 168", got)
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = New(Config{}) }); got != 1 {
		t.Errorf("New allocates %v times, want once: the slots wait for the first use", got)
	}
}
