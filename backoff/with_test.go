package backoff

import (
	"math"
	"testing"
	"time"
)

// What a function returns is brought between nothing and the longest window of IEEE 802.3,
// 1023 slots, where that is the schedule.
func TestWithOfEthernet(t *testing.T) {
	const slot = 100 * time.Millisecond
	s := Schedule{Kind: Ethernet, Base: slot}
	for d, want := range map[time.Duration]time.Duration{-1: 0, 0: 0, 1: 1, 1023 * slot: 1023 * slot, math.MaxInt64: 1023 * slot} {
		f := s.With(func(time.Duration, time.Duration, func() uint64) time.Duration { return d })
		if got := f(3, 0, nil); got != want {
			t.Errorf("%v becomes %v, want %v", d, got, want)
		}
	}
}
