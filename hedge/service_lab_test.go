//go:build lab && !race

package hedge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// All requests become 50 times as slow, and 100 servers too few. In the first second
// there may be as many hedges as Share allows; after that none, until the percentile
// has risen, then what it leaves, and never more than Share. When it has passed,
// hedges are there again.
func TestNoHedgesWhenAllIsSlow(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{0, 100} {
		const from, to = 30 * time.Second, 50 * time.Second
		h := must(t, Config{Attempts: 2})
		w := tailed(h)
		w.servers = servers
		if servers > 0 {
			w.rate = func(now time.Duration) float64 {
				if now > to && now < to+100*time.Second {
					return 500 // the queue must drain
				}
				return 2000
			}
		}
		usual := w.latency
		w.latency = func(c *flown, attempt int) time.Duration {
			d := usual(c, attempt)
			if w.now >= from && w.now < to {
				d *= 50
			}
			return d
		}
		var shares, late []float64
		for second := range 240 {
			calls, hedges, asked := w.calls, w.hedges, w.asked
			w.run(time.Duration(second+1) * time.Second)
			n := float64(w.calls - calls)
			shares, late = append(shares, float64(w.hedges-hedges)/n), append(late, float64(w.asked-asked)/n)
			if shares[second] > 0.1 {
				t.Errorf("%d servers: %.3f hedged in second %d", servers, shares[second], second)
			}
		}
		t.Logf("%d servers: from 28s: late %.2f, hedged %.3f", servers, late[28:36], shares[28:36])
		t.Logf("%d servers: at the end of it, hedged %.3f, after it %.3f, at last %.3f", servers, shares[46:50], shares[50:66], shares[220:])
		if slices.Max(late[30:32]) < 0.5 {
			t.Errorf("%d servers: %.2f late: the test does not stir", servers, late[28:36])
		}
		if sum(shares[31:34]) > 0.01 {
			t.Errorf("%d servers: hedged after the first second: %.3f", servers, shares[31:34])
		}
		if sum(shares[220:])/20 < 0.035 {
			t.Errorf("%d servers: hedges do not come back: %.3f", servers, shares[220:])
		}
		// The slowest of that time take 25 s, and end as late as 75s.
		if servers == 0 && sum(shares[85:95])/10 < 0.035 {
			t.Errorf("hedges are not back after the window: %.3f", shares[50:95])
		}
	}
}

// How many of the calls that are late while all is well are hedged, since no more are
// late by chance than Share allows: nearly all, if it is twice what the percentile
// leaves. If it is just that, far fewer.
func TestShareLeavesRoomForChance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rate, share, least float64 }{
		{3, 0, 0.7}, {5, 0, 0.8}, {10, 0, 0.85}, {20, 0, 0.85}, {100, 0, 0.9}, {300, 0, 0.99}, {1000, 0, 0.999},
		{1000, 0.05, 0},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		h := must(t, Config{Attempts: 2, Share: c.share})
		w := &world{r: r, rate: steady(c.rate), latency: latencyOf["exponential"](r), hedger: ours{h}}
		w.run(60 * time.Second)
		calls, hedges, asked := w.calls, w.hedges, w.asked
		w.run(w.now + time.Duration(50_000/c.rate*float64(time.Second)))
		late, hedged := float64(w.asked-asked), float64(w.hedges-hedges)
		t.Logf("%v calls a second, Share %v: %.4f late, %.3f of them hedged", c.rate, c.share, late/float64(w.calls-calls), hedged/late)
		if hedged/late < c.least || c.share > 0 && hedged/late > 0.8 {
			t.Errorf("%v calls a second, Share %v: %.3f of the late calls are hedged", c.rate, c.share, hedged/late)
		}
	}
}

// If more calls are slow than the percentile leaves, it is theirs, and they are
// hedged no sooner. A lower percentile, or a MaxDelay, is for them.
func TestMoreThanATail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c   Config
		cut bool
	}{
		{Config{Attempts: 2}, false},
		{Config{Attempts: 2, Percentile: 0.9}, true},
		{Config{Attempts: 2, MaxDelay: 20 * ms}, true},
	} {
		w := tailed(must(t, c.c))
		w.servers = 0
		w.latency = func(*flown, int) time.Duration {
			d := 7*ms + time.Duration(w.r.IntN(int(6*ms)))
			if w.r.IntN(1000) < 80 {
				d *= 50
			}
			return d
		}
		f := measure(w)
		t.Logf("%+v: %+v", c.c, f)
		if got := f.p99 < 50*ms; got != c.cut || f.extra > 0.12 {
			t.Errorf("%+v: %+v, want the tail cut: %v", c.c, f, c.cut)
		}
	}
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}
