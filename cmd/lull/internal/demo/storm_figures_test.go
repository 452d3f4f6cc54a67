package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

const ms = time.Millisecond

func TestPercentileIsNearestRank(t *testing.T) {
	// Wikipedia's example of the nearest-rank method.
	list := []time.Duration{15, 20, 35, 40, 50}
	for _, c := range []struct {
		p    int
		want time.Duration
	}{{5, 15}, {30, 20}, {40, 20}, {50, 35}, {99, 50}, {100, 50}} {
		check.Equal(t, percentile(list, c.p), c.want, "percentile(%d)", c.p)
	}
	check.Equal(t, percentile(nil, 99), 0, "percentile of nothing")
	check.Equal(t, percentile([]time.Duration{7}, 1), 7, "percentile of one")
}

func TestPeakRateSlides(t *testing.T) {
	// 3+4+5+6+7 = 25 in half a second, which begins at no multiple of it.
	seen := []int{1, 1, 1, 3, 4, 5, 6, 7, 0, 0, 0}
	check.Equal(t, peakRate(seen), 50, "peakRate")
	check.Equal(t, peakRate([]int{4}), 8, "peakRate of a short run")
	check.Equal(t, peakRate(nil), 0, "peakRate of nothing")
}

func TestSumCountsWholeTicks(t *testing.T) {
	counts := []int{1, 2, 4, 8}
	for _, c := range []struct {
		from, to time.Duration
		want     int
	}{
		{0, 400 * ms, 15}, {100 * ms, 300 * ms, 6}, {-time.Second, 100 * ms, 1},
		{300 * ms, time.Hour, 8}, {time.Hour, 2 * time.Hour, 0}, {150 * ms, 250 * ms, 2},
	} {
		check.Equal(t, sum(counts, c.from, c.to), c.want, "sum(%v, %v)", c.from, c.to)
	}
}

// tenSeconds is a run with an outage from 2 s to 3 s.
func tenSeconds() setting {
	return setting{
		Scenario: storm, Duration: 10 * time.Second, Load: 0.5, Capacity: 100, Queue: 200, OutageAt: 2 * time.Second,
		Outage: time.Second, Kind: stall, Timeout: 500 * ms, Attempts: 3, Seed: 1, Clients: stormClients,
	}
}

// everyTick makes a call each tick. It succeeds unless fails returns true.
func everyTick(s setting, fails func(start time.Duration) bool) []callRecord {
	var calls []callRecord
	for at := time.Duration(0); at < s.Duration; at += tick {
		calls = append(calls, callRecord{start: at, took: 10 * ms, ok: !fails(at)})
	}
	return calls
}

func TestRecovery(t *testing.T) {
	s := tenSeconds()
	between := func(from, to time.Duration) func(time.Duration) bool {
		return func(at time.Duration) bool { return at >= from && at < to }
	}
	for _, c := range []struct {
		name  string
		fails func(time.Duration) bool
		want  time.Duration
	}{
		{"nothing fails", between(0, 0), 0},
		{"only the outage fails", between(2*time.Second, 3*time.Second), 0},
		{"fails for a while after it", between(2*time.Second, 5500*ms), 2500 * ms},
		{"fails to the end", between(2*time.Second, 10*time.Second), never},
		{"fails in the last tick", func(at time.Duration) bool { return at == 9900*ms }, never},
		{"relapses", func(at time.Duration) bool { return between(2*time.Second, 4*time.Second)(at) || at == 7*time.Second }, 4100 * ms},
		{"back for just the last second", between(2*time.Second, 9*time.Second), 6 * time.Second},
		{"back for less than that", between(2*time.Second, 9100*ms), never},
		{"never succeeded before", between(0, 3*time.Second), never},
	} {
		check.Equal(t, recovery(s, s.Duration, everyTick(s, c.fails)), c.want, "%s: recovered after", c.name)
	}
}

func TestRecoveryComparesWithBefore(t *testing.T) {
	// Half of the calls fail all the time: that is normal for this client.
	s := tenSeconds()
	got := recovery(s, s.Duration, everyTick(s, func(at time.Duration) bool { return at/tick%2 == 0 }))
	check.Equal(t, got, 0, "recovered after")
}

func TestRecoveryAllowsOneInTwenty(t *testing.T) {
	s := tenSeconds()
	for failed, want := range map[int]bool{0: true, 5: true, 6: false} {
		var calls []callRecord
		for at := time.Duration(0); at < s.Duration; at += 10 * ms { // 100 calls a second
			bad := at >= s.outageEnd() && at%time.Second < time.Duration(failed)*10*ms
			calls = append(calls, callRecord{start: at, took: ms, ok: !bad})
		}
		if got := recovery(s, s.Duration, calls); (got != never) != want {
			t.Errorf("%d of 100 fail: recovered after %v, want %v", failed, got, want)
		}
	}
}

func TestRecoveryOfARunThatWasCutShort(t *testing.T) {
	s := tenSeconds()
	calls := everyTick(s, func(time.Duration) bool { return false })
	for _, end := range []time.Duration{0, time.Second, 2500 * ms, 3900 * ms} {
		if got := recovery(s, end, calls); got != never {
			t.Errorf("end at %v: recovered after %v, but no second after the outage was seen", end, got)
		}
	}
	if recovery(s, 4*time.Second, calls) == never {
		t.Error("end at 4s: not recovered, but the second after the outage was as good as before")
	}
	if recovery(s, s.Duration, nil) != never {
		t.Error("recovered without calls")
	}
}

func TestMeasure(t *testing.T) {
	s := tenSeconds()
	var ended []callRecord
	for i := range 100 {
		ended = append(ended, callRecord{start: time.Duration(i) * tick, took: time.Duration(i+1) * ms, ok: i%4 != 0})
	}
	n := counts{begun: {104}, seen: slices.Repeat([]int{2}, 110)}
	n[seen][40] = 42
	got := measure(s, s.Duration, "x", ended, n)
	want := stormFigures{
		Name: "x", Calls: 104, Attempts: 260, Amplification: 2.5, NormalRPS: 20, PeakRPS: 100, PeakRatio: 5,
		SuccessRate: 0.75, P50: 50, P99: 99, Recovery: got.Recovery,
	}
	check.Equal(t, got, want, "figures")
	check.Equal(t, measure(s, 0, "x", nil, counts{}), (stormFigures{Name: "x", Recovery: never}), "a run of nothing")
}

func TestBucketsCountByTick(t *testing.T) {
	var b buckets
	for _, at := range []time.Duration{-5, 0, 99 * ms, 100 * ms, 350 * ms} {
		b.add(extra, at)
	}
	if got, want := b.copy()[extra], []int{3, 1, 0, 1}; !slices.Equal(got, want) || total(got) != 5 {
		t.Fatalf("got %v, want %v", got, want)
	}
}
