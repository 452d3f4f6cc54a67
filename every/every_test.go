package every

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The names of a fleet are spread evenly, although they differ in their last letters only.
func TestPhasesAreSpread(t *testing.T) {
	const names, parts = 60_000, 60
	var in [parts]int
	for i := range names {
		p := Phase(fmt.Sprint("report host-", i), time.Hour)
		if p < 0 || p >= time.Hour {
			t.Fatalf("%v", p)
		}
		in[p/time.Minute]++
	}
	for i, n := range in { // 1000 are expected, and five standard deviations are 157
		if n < 840 || n > 1160 {
			t.Errorf("minute %d has %d of %d", i, n, names)
		}
	}
}

// The phase of a name does not change from release to release.
func TestPhaseIsFixed(t *testing.T) {
	for period, want := range map[time.Duration]time.Duration{1: 0, time.Second: 173708603, 24 * time.Hour: 15008423324136, 1<<63 - 1: 1602179074133363782} {
		if got := Phase("x", period); got != want {
			t.Errorf("%v: %d, want %d", period, got, want)
		}
	}
	if Phase("x", 0) != 0 || Phase("x", -1) != 0 {
		t.Error("of no period")
	}
}

func TestNext(t *testing.T) {
	phase := Phase("x", time.Hour)
	for _, now := range []time.Time{time.Unix(0, 0), time.Unix(-5000, 17), time.Unix(1_800_000_000, 1), time.Unix(0, int64(phase))} {
		next := Next(now, "x", time.Hour)
		if wait := next.Sub(now); wait <= 0 || wait > time.Hour {
			t.Errorf("%v: in %v", now, wait)
		}
		if got := (time.Duration(next.UnixNano())%time.Hour + time.Hour) % time.Hour; got != phase {
			t.Errorf("%v: at %v of the hour, want %v", now, got, phase)
		}
	}
	if now := time.Now(); Next(now, "x", 0) != now {
		t.Error("of no period")
	}
}

// It runs once in a period at the same phase, and does not catch up.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		var at []time.Time
		err := Run(ctx, "x", time.Minute, func(context.Context) {
			at = append(at, time.Now())
			switch len(at) {
			case 2:
				time.Sleep(150 * time.Second)
			case 4:
				cancel(enough)
			}
		})
		if err != enough || len(at) != 4 {
			t.Fatalf("%v after %d runs", err, len(at))
		}
		for i, want := range []time.Duration{time.Minute, 3 * time.Minute, time.Minute} {
			if got := at[i+1].Sub(at[i]); got != want {
				t.Errorf("%v after run %d, want %v", got, i+1, want)
			}
		}
	})
	if err := Run(t.Context(), "x", -1, nil); err == nil || err.Error() != `every: Run: the period of "x" is -1ns: want a positive duration` {
		t.Error(err)
	}
}
