package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

const longest = time.Duration(math.MaxInt64)

func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Schedule
		from int
		want []time.Duration
	}{
		{"zero", Schedule{}, 1, []time.Duration{ms(100), ms(200), ms(400), ms(800), ms(1600), ms(3200), ms(6400), ms(12800), ms(20000), ms(20000)}},
		{"a retry below one counts as one", Schedule{}, -1, []time.Duration{ms(100), ms(100), ms(100), ms(200)}},
		{"factor 3", Schedule{Base: ms(10), Factor: 3}, 1, []time.Duration{ms(10), ms(30), ms(90), ms(270)}},
		{"factor 1", Schedule{Base: ms(10), Factor: 1}, 1, []time.Duration{ms(10), ms(10), ms(10)}},
		{"factor 1.5", Schedule{Base: ms(16), Factor: 1.5}, 1, []time.Duration{ms(16), ms(24), ms(36), ms(54), ms(81)}},
		{"linear", Schedule{Kind: Linear, Base: ms(30), Cap: ms(100)}, 1, []time.Duration{ms(30), ms(60), ms(90), ms(100), ms(100)}},
		{"linear, default base", Schedule{Kind: Linear}, 199, []time.Duration{ms(19900), ms(20000), ms(20000)}},
		{"constant", Schedule{Kind: Constant, Base: ms(70)}, 1, []time.Duration{ms(70), ms(70), ms(70)}},
		{"constant without base: no wait", Schedule{Kind: Constant}, 1, []time.Duration{0, 0}},
		{"immediate", Schedule{Kind: Immediate}, 1, []time.Duration{0, 0}},
		{"fast first", Schedule{FastFirst: true}, 1, []time.Duration{0, ms(100), ms(200)}},
		{"fast first, linear", Schedule{Kind: Linear, Base: ms(5), FastFirst: true}, 1, []time.Duration{0, ms(5), ms(10)}},
		{"fast first, with a floor", Schedule{FastFirst: true, Floor: ms(50)}, 1, []time.Duration{0, ms(100)}},
		{"cap below the default base", Schedule{Cap: ms(30)}, 1, []time.Duration{ms(30), ms(30)}},
		{"base above the default cap", Schedule{Base: time.Minute}, 1, []time.Duration{time.Minute, time.Minute}},
		{"proportional stops at cap/1.2", Schedule{Jitter: Proportional, Base: ms(100), Cap: ms(600)}, 1, []time.Duration{ms(100), ms(200), ms(400), ms(500), ms(500)}},
		{"proportional, cap/1.2 rounded down", Schedule{Jitter: Proportional, Base: 11, Cap: 11}, 1, []time.Duration{9, 9}},
		{"decorrelated: base × 3^n", Schedule{Jitter: Decorrelated, Base: ms(10), Cap: ms(500)}, 1, []time.Duration{ms(30), ms(90), ms(270), ms(500)}},
		{"decorrelated, fast first", Schedule{Jitter: Decorrelated, Base: ms(10), FastFirst: true}, 1, []time.Duration{0, ms(30), ms(90)}},
		{"no overflow", Schedule{Cap: longest}, math.MaxInt - 1, []time.Duration{longest, longest}},
		{"no overflow, one nanosecond", Schedule{Base: 1, Cap: longest}, 62, []time.Duration{1 << 61, 1 << 62, longest, longest}},
		{"no overflow, factor", Schedule{Factor: math.MaxFloat64, Cap: longest}, 1, []time.Duration{ms(100), longest, longest}},
		{"no overflow, small factor", Schedule{Base: 1, Factor: 1.0000001}, math.MaxInt, []time.Duration{ms(20000)}},
		{"no overflow, linear", Schedule{Kind: Linear, Base: 1 << 40, Cap: longest}, math.MaxInt, []time.Duration{longest}},
		{"no overflow, linear base", Schedule{Kind: Linear, Base: longest}, 1, []time.Duration{longest, longest}},
		{"no overflow, base", Schedule{Base: longest}, 1, []time.Duration{longest, longest}},
		{"no overflow, decorrelated", Schedule{Jitter: Decorrelated, Cap: longest}, math.MaxInt, []time.Duration{longest}},
		{"invalid: negative everything", Schedule{Base: -1, Cap: -1, Floor: -1, Factor: -1}, 1, []time.Duration{ms(100), ms(200)}},
		{"invalid: not a number", Schedule{Factor: math.NaN()}, 1, []time.Duration{ms(100), ms(200)}},
		{"invalid: infinite", Schedule{Factor: math.Inf(1)}, 1, []time.Duration{ms(100), ms(20000)}},
		{"invalid: shrinking", Schedule{Factor: .5}, 1, []time.Duration{ms(100), ms(100)}},
	} {
		retry := c.from
		for _, want := range c.want {
			check.Equal(t, c.s.Ceiling(retry), want, "%s: Ceiling(%d)", c.name, retry)
			retry++
			if retry < 0 && c.from > 0 {
				break // the table ran past the largest int
			}
		}
	}
}

// The two ends and the middle of each jitter's range, by its definition.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		name            string
		s               Schedule
		retry           int
		prev            time.Duration
		low, mean, high time.Duration
	}{
		{"full", Schedule{}, 3, 0, 0, ms(200), ms(400)},
		{"full, floor", Schedule{Floor: ms(50)}, 1, 0, ms(50), ms(75), ms(100)},
		{"full, at the cap", Schedule{Cap: ms(1000), Floor: ms(20)}, 50, 0, ms(20), ms(510), ms(1000)},
		{"equal", Schedule{Jitter: Equal}, 2, 0, ms(100), ms(150), ms(200)},
		{"equal, floor below the half", Schedule{Jitter: Equal, Floor: ms(60)}, 2, 0, ms(100), ms(150), ms(200)},
		{"equal, floor above the half", Schedule{Jitter: Equal, Floor: ms(80)}, 1, 0, ms(80), ms(90), ms(100)},
		{"none", Schedule{Jitter: None}, 3, 0, ms(400), ms(400), ms(400)},
		{"none, floor", Schedule{Jitter: None, Floor: ms(300)}, 1, 0, ms(300), ms(300), ms(300)},
		{"proportional", Schedule{Jitter: Proportional}, 1, 0, ms(80), ms(100), ms(120)},
		{"proportional, at the cap", Schedule{Jitter: Proportional, Cap: ms(600)}, 60, 0, ms(400), ms(500), ms(600)},
		{"proportional, floor", Schedule{Jitter: Proportional, Floor: ms(90)}, 1, 0, ms(90), ms(105), ms(120)},
		{"decorrelated, first", Schedule{Jitter: Decorrelated}, 1, 0, ms(100), ms(200), ms(300)},
		{"decorrelated, then", Schedule{Jitter: Decorrelated}, 2, ms(150), ms(100), ms(275), ms(450)},
		{"decorrelated, at the cap", Schedule{Jitter: Decorrelated, Cap: ms(500)}, 9, ms(500), ms(100), ms(500), ms(500)},
		{"constant", Schedule{Kind: Constant, Base: ms(40)}, 7, 0, 0, ms(20), ms(40)},
		{"immediate", Schedule{Kind: Immediate}, 1, 0, 0, 0, 0},
		{"prev is for decorrelated only", Schedule{}, 1, time.Hour, 0, ms(50), ms(100)},
		{"nothing is too long", Schedule{Base: longest, Jitter: Proportional}, 3, 0, longest / 6 * 4, longest / 6 * 5, longest},
	} {
		// A range of n nanoseconds has n+1 values; the middle may fall on either side.
		near := func(got, want time.Duration) bool { return got-want <= 8 && want-got <= 8 }
		if got := c.s.Delay(c.retry, c.prev, lowest); !near(got, c.low) {
			t.Errorf("%s: at the lowest draw %v, want %v", c.name, got, c.low)
		}
		if got := c.s.Delay(c.retry, c.prev, nil); !near(got, c.mean) {
			t.Errorf("%s: at the middle draw %v, want %v", c.name, got, c.mean)
		}
		if got := c.s.Delay(c.retry, c.prev, highest); !near(got, c.high) || got < 0 {
			t.Errorf("%s: at the highest draw %v, want %v", c.name, got, c.high)
		}
	}
}

// IEEE 802.3, clause 4.2.3.2.5: after collision n wait r slot times,
// 0 <= r < 2^k, k = min(n, 10); sixteen attempts.
func TestEthernet(t *testing.T) {
	const slot = 51200 * time.Nanosecond
	for _, s := range []Schedule{{Kind: Ethernet}, {Kind: Ethernet, Base: time.Second}} {
		slot := time.Duration(slot)
		if s.Base != 0 {
			slot = s.Base
		}
		check.Equal(t, s.Limit(), 15, "Limit()")
		r := random(1)
		for retry := 1; retry <= 15; retry++ {
			window := time.Duration(math.Pow(2, math.Min(float64(retry), 10)))
			seen := map[time.Duration]int{}
			for range 40 * window {
				d := s.Delay(retry, 0, r)
				if d%slot != 0 || d < 0 || d >= window*slot {
					t.Fatalf("retry %d: %v, want fewer than %d whole slots of %v", retry, d, window, slot)
				}
				seen[d]++
			}
			// 40 expected in each place; an empty one is 4e-18 likely.
			if len(seen) != int(window) {
				t.Errorf("retry %d: %d different waits, want %d", retry, len(seen), window)
			}
			check.Equal(t, s.Max(retry), (window-1)*slot, "Max(%d)", retry)
		}
	}
	if d := (Schedule{Kind: Ethernet, Base: longest}).Delay(15, 0, highest); d < 0 {
		t.Errorf("the longest slot overflows: %v", d)
	}
}

func TestLimit(t *testing.T) {
	for kind, want := range map[Kind]int{Exponential: 0, Linear: 0, Constant: 0, Immediate: 1, Ethernet: 15, 77: 0} {
		check.Equal(t, (Schedule{Kind: kind}).Limit(), want, "%v: Limit()", kind)
	}
}

// Randomness is drawn once where there is a choice and not at all where there
// is none: the simulator's sequences depend on it.
func TestDrawsOnlyWhenNeeded(t *testing.T) {
	for _, c := range []struct {
		s     Schedule
		retry int
		want  int
	}{
		{Schedule{}, 1, 1},
		{Schedule{Jitter: Equal}, 1, 1},
		{Schedule{Jitter: None}, 1, 0},
		{Schedule{Jitter: Decorrelated}, 1, 1},
		{Schedule{Jitter: Proportional}, 1, 1},
		{Schedule{Kind: Constant}, 1, 0},
		{Schedule{Kind: Immediate}, 1, 0},
		{Schedule{Kind: Ethernet}, 1, 1},
		{Schedule{FastFirst: true}, 1, 0},
		{Schedule{FastFirst: true}, 2, 1},
	} {
		n := 0
		c.s.Delay(c.retry, 0, func() uint64 { n++; return 42 })
		check.Equal(t, n, c.want, "%+v, retry %d: draws", c.s, c.retry)
	}
}

func TestDelayDoesNotAllocate(t *testing.T) {
	r := random(1)
	for _, s := range []Schedule{{}, {Factor: 1.7}, {Jitter: Decorrelated}, {Jitter: Proportional}, {Kind: Linear}, {Kind: Ethernet}} {
		var prev time.Duration
		check.Equal(t, testing.AllocsPerRun(100, func() { prev = s.Delay(5, prev, r) }), 0, "%+v: allocations", s)
	}
}

func BenchmarkDelay(b *testing.B) {
	for _, c := range []struct {
		name string
		s    Schedule
	}{
		{"zero", Schedule{}},
		{"factor1.5", Schedule{Factor: 1.5}},
		{"none", Schedule{Jitter: None}},
		{"decorrelated", Schedule{Jitter: Decorrelated}},
		{"proportional", Schedule{Jitter: Proportional}},
		{"ethernet", Schedule{Kind: Ethernet}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var n uint64
			cheap := func() uint64 { n += 0x9e3779b97f4a7c15; return n }
			var prev time.Duration
			retry := 1
			for b.Loop() {
				prev = c.s.Delay(retry, prev, cheap)
				retry = retry%8 + 1
			}
		})
	}
}
