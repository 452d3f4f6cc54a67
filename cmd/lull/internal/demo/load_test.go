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

func TestDriveBeginsEachCallAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		times := []time.Duration{0, 10 * ms, 10 * ms, 700 * ms}
		var began []time.Duration
		late := drive(t.Context(), clock, times, func() { began = append(began, clock()) })
		if !slices.Equal(began, times) {
			t.Errorf("calls began at %v, want %v", began, times)
		}
		if late.p99() != 0 {
			t.Errorf("late by %v, want 0", late.p99())
		}
	})
}

func TestDriveIsNotHeldBackByALateStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		time.Sleep(500 * ms)
		late := drive(t.Context(), clock, []time.Duration{100 * ms, 200 * ms, 600 * ms}, func() {})
		if !slices.Equal(late, lateness{400 * ms, 300 * ms, 0}) {
			t.Errorf("late by %v", late)
		}
	})
}

func TestDriveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		n := 0
		drive(ctx, func() time.Duration { return time.Since(start) }, []time.Duration{0, time.Hour}, func() { n++ })
		if n != 1 || time.Since(start) != time.Second {
			t.Errorf("%d calls in %v, want 1 in 1s", n, time.Since(start))
		}
	})
}
