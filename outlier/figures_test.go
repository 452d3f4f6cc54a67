package outlier

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// docs/mechanisms.md gives these figures.

// How many failures in a row eject a dead endpoint whose n-1 peers are well. With more calls,
// longer rows happen by chance. With more peers, it is clear sooner that a row is not chance.
func TestHowLongARowMustBe(t *testing.T) {
	for _, v := range []struct {
		n, calls int // in the last interval, to all
		want     int64
	}{
		{2, 100, 10}, {2, 1000, 12}, {2, 10_000, 14},
		{3, 100, 8}, {3, 1000, 9}, {3, 10_000, 10},
		{10, 100, 5}, {10, 1000, 6}, {10, 10_000, 7},
	} {
		var c Change
		s := must.Have(New(Config{Choice: RoundRobin, Statistic: NoStatistic}, func(ch Change) { c = ch }))
		s.Update(0, keys(v.n))
		for now := time.Duration(0); now < time.Minute && c.Calls == 0; now += DefaultInterval / time.Duration(v.calls) {
			e, _ := s.Pick(now, middle, nil)
			o := Success
			if now > 2*DefaultInterval && e.Key() == keys(1)[0] {
				o = FiveXX
			}
			s.Done(now, e, o, middle)
		}
		if c.Key != keys(1)[0] || c.Calls != v.want {
			t.Errorf("%d endpoints, %d calls: a row of %d at %q, want %d", v.n, v.calls, c.Calls, c.Key, v.want)
		}
	}
}

// How many calls to each of n endpoints show by its success rate that one fails half
// of them, or three of ten.
func TestHowManyCallsARateTakes(t *testing.T) {
	for _, v := range []struct{ n, half, threeOfTen int }{{2, 20, 40}, {3, 20, 30}, {10, 10, 20}} {
		for failing, want := range map[int]int{5: v.half, 3: v.threeOfTen} {
			got := 0
			for each := 10; each < 100 && got == 0; each += 10 {
				s := must.Have(New(Config{Choice: RoundRobin, Sweeps: 1, Consecutive: -1}, func(Change) { got = each }))
				s.Update(0, keys(v.n))
				fillCalls(t, s, 0, each, map[string]int{keys(1)[0]: each * failing / 10})
				sweep(s, DefaultInterval)
			}
			if got != want {
				t.Errorf("%d endpoints, %d of 10 fail: found with %d calls each, want %d", v.n, failing, got, want)
			}
		}
	}
}
