package budget

import (
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func BenchmarkEndSuccess(b *testing.B) {
	spent := must.Have(NewBucket(Config{Stock: MaxStock, Ratio: MinRatio}))
	for spent.Withdraw(0, Transient, never).OK { // it will not be full again
	}
	for _, c := range []struct {
		name   string
		budget Budget
	}{
		{"account", withFlow(b, Config{})},
		{"bucket", must.Have(NewBucket(Config{}))},
		{"bucket that is not full", spent},
		{"ratio", mustRatio(b, Config{})},
	} {
		b.Run(c.name, func(b *testing.B) {
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				c.budget.Done(now, true, 0, 0)
			}
		})
		b.Run(c.name+", all cores", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				var now time.Duration
				for pb.Next() {
					now += 100
					c.budget.Done(now, true, 0, 0)
				}
			})
		})
	}
}

// Through the interface, as the engine calls it, with everything else that a
// call without failures does.
func BenchmarkSuccessfulCall(b *testing.B) {
	for _, c := range []struct {
		name string
		new  func() (Budget, error)
	}{
		{"account", func() (Budget, error) { return New(Config{}) }},
		{"bucket", func() (Budget, error) { return NewBucket(Config{}) }},
		{"ratio", func() (Budget, error) { return New(Config{Window: 10 * time.Second}) }},
		{"grpc", func() (Budget, error) { return NewGRPCThrottle(GRPCConfig{100, 0.1}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			budget := must.Have(c.new())
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				budget.Start(now)
				budget.Done(now, true, 0, 0)
			}
		})
	}
}

func BenchmarkWithdraw(b *testing.B) {
	bucket, empty := must.Have(NewBucket(Config{Ratio: 1})), must.Have(NewBucket(Config{Stock: 1}))
	empty.Withdraw(0, Transient, never)
	rich, spent := withFlow(b, Config{Ratio: 1}), withFlow(b, Config{Stock: 1})
	spent.Withdraw(0, Transient, never)
	floor, poor := mustRatio(b, Config{Floor: 1e6}), mustRatio(b, Config{})
	poor.Withdraw(0, Transient, latest)
	for _, c := range []struct {
		name   string
		budget Budget
		earn   bool // so that it can pay again
		step   time.Duration
	}{
		{"account, granted from the window and earned back", rich, true, 100},
		{"account, refused", spent, false, 100},
		{"bucket, granted and earned back", bucket, true, 100},
		{"bucket, refused", empty, false, 100},
		{"ratio, granted", floor, false, 10_000},
		{"ratio, refused", poor, false, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += c.step
				c.budget.Withdraw(now, Transient, never)
				if c.earn {
					c.budget.Done(now, true, 0, 0)
				}
			}
		})
	}
}

// A simulator holds millions of budgets.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Account{}); got > 32 {
		t.Errorf("an Account takes %d bytes, want 32", got)
	}
	if got := unsafe.Sizeof(Bucket{}); got > 16 {
		t.Errorf("a Bucket takes %d bytes, want 16", got)
	}
	if got := unsafe.Sizeof(Ratio{}); got > 168 {
		t.Errorf("a Ratio takes %d bytes, want 168", got)
	}
	for name, made := range map[string]func(){
		"an Account":             func() { _, _ = New(Config{}) },
		"a Bucket":               func() { _, _ = NewBucket(Config{}) },
		"a Ratio before its use": func() { newRatio(Config{Window: time.Second}) },
	} {
		check.Equal(t, testing.AllocsPerRun(100, made), 1, "%s: allocations", name)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	var now time.Duration
	for kind, b := range map[string]Budget{"account": withFlow(t, Config{}), "bucket": must.Have(NewBucket(Config{})), "ratio": mustRatio(t, Config{})} {
		for name, f := range map[string]func(){
			"a successful call": func() { b.Start(now); b.Done(now, true, 0, 0) },
			"a failing call": func() {
				b.Start(now)
				b.Failed(now)
				b.Withdraw(now, Timeout, soonest)
				b.Release(now, 1)
				b.Done(now, false, 1, 1)
			},
			"a look": func() { b.Balance(now) },
		} {
			check.Equal(t, testing.AllocsPerRun(1000, func() { now += time.Millisecond; f() }), 0, "%s, %s: allocations", kind, name)
		}
	}
}
