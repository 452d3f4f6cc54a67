package demo

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestTailServiceTimes(t *testing.T) {
	s := parse(t, "--scenario=tail", "--tail=0.1")
	luck := rand.New(rand.NewPCG(1, 1))
	const n = 100_000
	var quick, slow int
	var quickSum time.Duration
	for range n {
		switch d := tail.service(s, luck, false); {
		case d >= 7*ms && d <= 13*ms:
			quick++
			quickSum += d
		case d >= 350*ms && d <= 650*ms:
			slow++
		default:
			t.Fatalf("a request takes %v; want 7 to 13 or 350 to 650 ms", d)
		}
		if d := tail.service(s, luck, true); d < 350*ms || d > 650*ms {
			t.Fatalf("while everything is slow a request takes %v", d)
		}
	}
	// A tenth, with a standard deviation of 0.1 %. Six of those are one in a billion.
	if share := float64(slow) / n; math.Abs(share-0.1) > 0.006 {
		t.Errorf("%.3f of the requests are slow, want 0.1", share)
	}
	if mean := quickSum / time.Duration(quick); mean < 9900*time.Microsecond || mean > 10100*time.Microsecond {
		t.Errorf("the others take %v on average, want 10 ms", mean)
	}
}

// Capacity is the rate that a backend serves while everything is slow.
func TestTailBackendHasItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := parse(t, "--scenario=tail", "--capacity=100", "--queue=2000")
		if s.workers() != 50 {
			t.Errorf("%d workers serve 100 a second of half a second each, want 50", s.workers())
		}
		slow := serveVirtually(t, s, 2000, func(b *backend) { b.gate.close() })
		if took := slow[len(slow)-1].Seconds(); math.Abs(took-20) > 1.5 {
			t.Errorf("2000 requests took %.1f s at 100 a second", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := parse(t, "--scenario=tail", "--capacity=100", "--queue=2000", "--tail=0")
		quick := serveVirtually(t, s, 2000, nil)
		if took := quick[len(quick)-1].Seconds(); math.Abs(took-0.4) > 0.03 {
			t.Errorf("2000 requests took %.2f s, when they are 50 times as quick", took)
		}
	})
}
