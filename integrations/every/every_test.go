package every

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
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

// The phase of a name does not change from release to release, nor from machine to machine. The
// values are those of FNV-1a and SplitMix64 in another language.
func TestPhaseIsFixed(t *testing.T) {
	for _, c := range []struct {
		name         string
		period, want time.Duration
	}{
		{"", time.Second, 957673425}, {"", time.Hour, 3447624330871}, {"", 1<<63 - 1, 8832978290816513100},
		{"x", 1, 0}, {"x", time.Second, 173708603}, {"x", 24 * time.Hour, 15008423324136},
		{"report host-1", time.Hour, 1763195150243}, {"report host-1", 24 * time.Hour, 42316683605841},
		{"x", 0, 0}, {"x", -1, 0},
	} {
		check.Equal(t, Phase(c.name, c.period), c.want, "%q in %v", c.name, c.period)
	}
}

// Next is later than now, by a period at most, and its phase is that of the name. No date is too early or too late.
func TestNext(t *testing.T) {
	phased := func(at time.Time, period time.Duration) *big.Int {
		ns := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(int64(time.Second)))
		return ns.Add(ns, big.NewInt(int64(at.Nanosecond()))).Mod(ns, big.NewInt(int64(period)))
	}
	for _, period := range []time.Duration{1, 7, 999_999_999, time.Second, 90 * time.Second, time.Hour, 24 * time.Hour, 1<<63 - 1} {
		phase := Phase("x", period)
		for _, now := range []time.Time{time.Unix(0, 0), time.Unix(0, -1), time.Unix(-5000, 17), time.Unix(1_800_000_000, 1), time.Unix(0, int64(phase)), time.Unix(0, int64(phase)-1),
			{}, time.Date(1600, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(3000, 1, 1, 0, 0, 0, 999_999_999, time.UTC), time.Now()} { //clock: any time will do
			next := Next(now, "x", period)
			if wait := next.Sub(now); wait <= 0 || wait > period {
				t.Errorf("%v, %v: in %v", period, now, wait)
			}
			if got := phased(next, period); got.Cmp(big.NewInt(int64(phase))) != 0 {
				t.Errorf("%v, %v: at %v of the period, want %v", period, now, got, phase)
			}
			if next != next.Round(0) {
				t.Errorf("%v has a monotonic reading", next)
			}
		}
	}
	for _, period := range []time.Duration{0, -1} {
		if now := time.Now(); Next(now, "x", period) != now { //clock: any time will do
			t.Error("of no period")
		}
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
			check.Equal(t, at[i+1].Sub(at[i]), want, "time after run %d", i+1)
		}
	})
	for _, period := range []time.Duration{-1, 0} {
		if err := Run(t.Context(), "x", period, nil); err == nil || err.Error() != fmt.Sprintf(`every: Run: the period of "x" is %v: want a positive duration`, period) {
			t.Error(err)
		}
	}
}

// A run that is due when ctx ends does not begin.
func TestRunEndsWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		moment := Next(time.Now(), "x", time.Minute)
		d := diary{phase: Phase("x", time.Minute), period: time.Minute, clock: func() time.Time {
			if !time.Now().Before(moment) {
				cancel()
			}
			return time.Now()
		}}
		if err := d.run(ctx, func(context.Context) { t.Error("it ran") }); err != context.Canceled || time.Now().Before(moment) {
			t.Error(err)
		}
	})
}

// A period has one run at most, and each period that the clock passes through has one, however the clock is set. A run
// is late only if its moment did not come: the clock was set over it, or the timer stood still with the machine.
func TestTheClockIsSet(t *testing.T) {
	const period = time.Hour
	for _, c := range []struct {
		name  string
		steps map[time.Duration]time.Duration // after that time the clock is set by that much
		busy  time.Duration                   // how long a run takes
		hours time.Duration
		// want has the number of runs of each period, by the clock. The period of the start is number 0, and has passed.
		want map[int]int
		late int // runs that are not at their moment
	}{
		{"not", nil, 0, 4, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}, 0},
		{"back by 3 ms", map[time.Duration]time.Duration{90 * time.Minute: -3 * time.Millisecond}, 0, 4, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}, 0},
		{"back by a second while it waits, again and again", map[time.Duration]time.Duration{10 * time.Minute: -time.Second, 20 * time.Minute: -time.Second, 61 * time.Minute: -time.Second, 119 * time.Minute: -time.Second}, 0, 4, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}, 0},
		{"back by a minute just after a run", map[time.Duration]time.Duration{period + time.Second: -time.Minute}, 0, 3, map[int]int{1: 1, 2: 1, 3: 1}, 0},
		{"back by three minutes during a run", map[time.Duration]time.Duration{period + time.Second: -3 * time.Minute}, time.Minute, 3, map[int]int{1: 1, 2: 1, 3: 1}, 0},
		{"back by three hours", map[time.Duration]time.Duration{210 * time.Minute: -3 * period}, 0, 8, map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, 0},
		{"back by a day, to before the start", map[time.Duration]time.Duration{90 * time.Minute: -24 * period}, 0, 4, map[int]int{1: 1, -23: 1, -22: 1, -21: 1, -20: 1}, 1},
		{"forward by a second", map[time.Duration]time.Duration{90 * time.Minute: time.Second}, 0, 4, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}, 0},
		{"forward over a moment", map[time.Duration]time.Duration{90 * time.Minute: 40 * time.Minute}, 0, 3, map[int]int{1: 1, 2: 1, 3: 1}, 1},
		{"forward over ten moments", map[time.Duration]time.Duration{90 * time.Minute: 10 * period}, 0, 3, map[int]int{1: 1, 11: 1, 12: 1, 13: 1}, 1},
		{"forward by a year and back", map[time.Duration]time.Duration{90 * time.Minute: 8760 * period, 95 * time.Minute: -8760 * period}, 0, 4, map[int]int{1: 1, 8761: 1, 2: 1, 3: 1, 4: 1}, 1},
		{"back to 1970 and forward again", map[time.Duration]time.Duration{90 * time.Minute: -30 * 8760 * period, 150 * time.Minute: 30 * 8760 * period}, 0, 4, map[int]int{1: 1, 1 - 30*8760: 1, 2 - 30*8760: 1, 2: 1, 3: 1, 4: 1}, 2},
		{"forward by 290 years and back", map[time.Duration]time.Duration{90 * time.Minute: 290 * 8760 * period, 150 * time.Minute: -290 * 8760 * period}, 0, 4, map[int]int{1: 1, 1 + 290*8760: 1, 2 + 290*8760: 1, 2: 1, 3: 1, 4: 1}, 2},
		{"a run that covers moments", nil, 150 * time.Minute, 7, map[int]int{1: 1, 4: 1, 7: 1}, 0},
		{"a run that covers moments, then back by 3 ms", map[time.Duration]time.Duration{4*period - 500*time.Microsecond: -3 * time.Millisecond}, 2*period + 59*time.Minute + 59*time.Second + 999*time.Millisecond, 5, map[int]int{1: 1, 4: 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				phase := Phase("x", period)
				began := Next(time.Now(), "x", period)
				time.Sleep(time.Until(began)) // the clock and the periods begin together
				clock := func() time.Time {
					at := time.Now()
					for after, by := range c.steps {
						if time.Since(began) >= after {
							at = at.Add(by)
						}
					}
					return at.Round(0)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.hours*period+5*time.Minute)
				defer cancel()
				got, late := map[int]int{}, 0
				d := diary{clock: clock, phase: phase, period: period}
				d.run(ctx, func(context.Context) {
					begin := latest(clock(), phase, period)
					got[int(begin.Sub(began)/period)]++
					if lateBy := clock().Sub(begin); lateBy > 0 {
						late++
					}
					time.Sleep(c.busy)
				})
				if !maps.Equal(got, c.want) || late != c.late {
					t.Errorf("%v, %d late; want %v, %d late", got, late, c.want, c.late)
				}
				if len(d.noted) > 5 {
					t.Errorf("%d spans are kept", len(d.noted))
				}
			})
		})
	}
}

// No period has two runs, whatever becomes of the clock and however long runs take.
func TestNoPeriodHasTwoRuns(t *testing.T) {
	random := seed.Source(t)
	upTo := func(d time.Duration) time.Duration { return time.Duration(random() % uint64(d)) }
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
			defer cancel()
			var off time.Duration
			next := time.Now()
			runs := map[time.Time]int{}
			d := diary{phase: Phase("x", time.Hour), period: time.Hour, clock: func() time.Time {
				if !time.Now().Before(next) { // the clock is set, by hours or by milliseconds
					off += (upTo(6*time.Hour) - 3*time.Hour) / time.Duration(1+random()%2*99_999)
					next = time.Now().Add(upTo(3 * time.Hour))
				}
				return time.Now().Add(off).Round(0)
			}}
			d.run(ctx, func(context.Context) {
				begin := d.begin(time.Now().Add(off))
				if runs[begin]++; runs[begin] > 1 {
					t.Errorf("%d runs in %v", runs[begin], begin)
				}
				if random()%5 == 0 {
					time.Sleep(upTo(3 * time.Hour))
				}
			})
			if len(runs) == 0 {
				t.Error("no run")
			}
		})
	}
}

// A clock that jumps for ever costs no memory.
func TestTheDiaryIsBounded(t *testing.T) {
	d := diary{period: time.Hour}
	for i := range 1000 {
		at := time.Unix(int64(i)*7200, 0)
		d.note(at, at)
		if d.due(at) {
			t.Fatal("the latest is forgotten")
		}
	}
	check.Equal(t, len(d.noted), maxSpans, "spans")
}
