package breaker

import (
	"math"
	"testing"
	"time"
)

func TestForce(t *testing.T) {
	var heard []Change
	b := must(t, rated(Config{OpenJitter: -1}), func(c Change) { heard = append(heard, c) })
	tok, _ := b.Start(0)
	b.ForceOpen(1)
	for _, now := range []time.Duration{1, time.Hour, math.MaxInt64} {
		if s, r, n := b.State(now), b.RetryAt(now), run(b, now, 1, Success); s != Open || r != 0 || n != 0 {
			t.Errorf("forced open, at %v: %v until %v, %d admitted", now, s, r, n)
		}
	}
	b.Done(2, tok, Failure, nil)
	b.Auto(time.Minute)
	if s := b.State(time.Minute); s != HalfOpen {
		t.Errorf("left to itself: %v, want half-open", s)
	}
	run(b, time.Minute, 1, Failure)
	if r := b.RetryAt(time.Minute); r != time.Minute+openFor {
		t.Errorf("after a failed probe: open until %v", r)
	}

	b.ForceClosed(2 * time.Minute)
	if n := run(b, 2*time.Minute, 1000, Failure); n != 1000 {
		t.Errorf("forced closed: %d of 1000 admitted", n)
	}
	if calls, failures, _ := b.Counts(2 * time.Minute); calls != 1000 || failures != 1000 {
		t.Errorf("forced closed: Counts %d, %d", calls, failures)
	}
	b.Auto(2 * time.Minute)
	if s := b.State(2 * time.Minute); s != Closed {
		t.Errorf("left to itself: %v, want closed until a failure is judged", s)
	}
	if n := run(b, 2*time.Minute, 10, Failure); n != 1 {
		t.Errorf("left to itself: opened after %d failures, want 1", n)
	}
	b.Auto(2 * time.Minute) // not forced: nothing to do
	if s := b.State(2 * time.Minute); s != Open {
		t.Errorf("Auto of an open breaker: %v", s)
	}
	want := []Change{
		{From: Closed, To: Open, Reason: Forced, At: 1},
		{From: Open, To: HalfOpen, Reason: OpenTimePassed, At: time.Minute},
		{From: HalfOpen, To: Open, Reason: ProbeFailed, At: time.Minute, Until: time.Minute + openFor, Calls: 1, Failures: 1},
		{From: Open, To: Closed, Reason: Forced, At: 2 * time.Minute},
		{From: Closed, To: Open, Reason: FailureRate, At: 2 * time.Minute, Until: 2*time.Minute + 2*openFor, Calls: 1001, Failures: 1001},
	}
	for i := range max(len(want), len(heard)) {
		if i >= len(want) || i >= len(heard) || heard[i] != want[i] {
			t.Fatalf("change %d: heard %+v, want %+v", i, heard, want)
		}
	}
}

func TestOff(t *testing.T) {
	for name, b := range map[string]*Breaker{"Off": must(t, Config{Off: true}), "zero": {}} {
		b.ForceOpen(0)
		b.ForceClosed(0)
		b.Auto(0)
		b.ForceOpen(0)
		if n := run(b, 0, 1000, Failure); n != 1000 {
			t.Errorf("%s: %d of 1000 admitted", name, n)
		}
		calls, failures, _ := b.Counts(0)
		if s := b.State(0); s != Closed || b.RetryAt(0) != 0 || calls != 0 || failures != 0 || b.counted.Load() != nil {
			t.Errorf("%s: %v, %d, %d", name, s, calls, failures)
		}
	}
}

// In metrics-only mode everything happens but the refusals.
func TestMetricsOnly(t *testing.T) {
	var heard []Change
	b := must(t, rated(Config{MetricsOnly: true, OpenJitter: -1}), func(c Change) { heard = append(heard, c) })
	if n := run(b, 0, 100, Failure); n != 100 {
		t.Errorf("%d of 100 admitted", n)
	}
	if s, r := b.State(0), b.RetryAt(0); s != Closed || r != 0 {
		t.Errorf("%v, %v, want closed", s, r)
	}
	if calls, failures, _ := b.Counts(0); calls != 100 || failures != 100 {
		t.Errorf("Counts %d, %d, want 100, 100", calls, failures)
	}
	run(b, openFor, 5, Failure)
	run(b, 3*openFor, 5, Success)
	b.ForceOpen(3 * openFor)
	if n := run(b, 3*openFor, 10, Failure); n != 10 {
		t.Errorf("forced open: %d of 10 admitted", n)
	}
	want := []Change{
		{From: Closed, To: Open, Reason: FailureRate, Until: openFor, Calls: 20, Failures: 20},
		{From: Open, To: HalfOpen, Reason: OpenTimePassed, At: openFor},
		{From: HalfOpen, To: Open, Reason: ProbeFailed, At: openFor, Until: 3 * openFor, Calls: 1, Failures: 1},
		{From: Open, To: HalfOpen, Reason: OpenTimePassed, At: 3 * openFor},
		{From: HalfOpen, To: Closed, Reason: ProbesSucceeded, At: 3 * openFor, Calls: 1},
		{From: Closed, To: Open, Reason: Forced, At: 3 * openFor},
	}
	for i := range max(len(want), len(heard)) {
		if i < len(want) {
			want[i].MetricsOnly = true
		}
		if i >= len(want) || i >= len(heard) || heard[i] != want[i] {
			t.Fatalf("change %d: heard %+v, want %+v", i, heard, want)
		}
	}
}
