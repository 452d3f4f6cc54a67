package demo

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestArrivals(t *testing.T) {
	s := tenSeconds()
	s.Duration, s.Load, s.Capacity = 1000*time.Second, 0.8, 100
	times := arrivals(s)
	if !slices.IsSorted(times) || times[0] < 0 || times[len(times)-1] >= s.Duration {
		t.Error("the moments are not in order, or not within the run")
	}
	// Poisson: 80 000 of them, with a standard deviation of 283. Six of those are one in a billion.
	if n := float64(len(times)); math.Abs(n-80_000) > 6*283 {
		t.Errorf("%v arrivals, want about 80000", n)
	}
	// As many gaps are longer than the mean as an exponential distribution has.
	long := 0
	for i := 1; i < len(times); i++ {
		if times[i]-times[i-1] > 12500*time.Microsecond {
			long++
		}
	}
	if share := float64(long) / float64(len(times)); math.Abs(share-1/math.E) > 0.01 {
		t.Errorf("%.3f of the gaps are longer than the mean, want 1/e", share)
	}
	if !slices.Equal(times, arrivals(s)) {
		t.Error("the same seed gave other moments")
	}
	s.Seed++
	if slices.Equal(times, arrivals(s)) {
		t.Error("another seed gave the same moments")
	}
}

func TestDrive(t *testing.T) {
	for what, c := range map[string]struct {
		after, end time.Duration // it starts, and its context ends
		times      []time.Duration
		late       lateness
	}{
		"each call begins at its time":         {0, time.Hour, []time.Duration{0, 10 * ms, 10 * ms, 700 * ms}, lateness{0, 0, 0, 0}},
		"a late start does not hold back more": {500 * ms, time.Hour, []time.Duration{100 * ms, 200 * ms, 600 * ms}, lateness{400 * ms, 300 * ms, 0}},
		"it ends with its context":             {0, time.Second, []time.Duration{0, time.Hour}, lateness{0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			clock := func() time.Duration { return time.Since(start) }
			time.Sleep(c.after)
			ctx, cancel := context.WithTimeout(t.Context(), c.end)
			defer cancel()
			var began lateness
			late := beginCalls(ctx, clock, c.times, func() { began = append(began, max(0, clock()-c.times[len(began)])) })
			if !slices.Equal(late, c.late) || !slices.Equal(began, c.late) || clock() > max(time.Second, c.times[len(c.late)-1]) {
				t.Errorf("%s: late by %v, begun by %v, over after %v; want %v", what, late, began, clock(), c.late)
			}
		})
	}
}
