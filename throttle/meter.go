package throttle

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/window"
)

const (
	meterSlot   = 500 * time.Millisecond
	meterSmooth = 0.8 // the weight of the latest slot
)

// A meter measures the rate of attempts as the AWS SDKs do: in slots of half a second,
// smoothed. The first attempt in a slot closes the slot before, and counts there.
type meter struct {
	slot  atomic.Int64   // the latest slot; written under the lock of the rate
	count window.Counter // attempts of the latest slot, under its number
	rate  float64        // per second; guarded by the lock of the rate
}

// begin starts to measure at the full second of now.
func (m *meter) begin(now time.Duration) {
	m.slot.Store(2 * int64(floorDiv(now, time.Second)))
	m.count = window.New(1)
}

// add counts an attempt, unless it is the first in its slot.
func (m *meter) add(now time.Duration) bool {
	slot := m.slot.Load()
	if int64(floorDiv(now, meterSlot)) > slot {
		return false
	}
	m.count.Add(uint64(slot), 1)
	return true
}

// close counts any attempt. The lock of the rate must be held.
func (m *meter) close(now time.Duration) {
	if m.add(now) {
		return
	}
	last := m.slot.Load()
	slot := int64(floorDiv(now, meterSlot))
	n := m.count.Sum(uint64(last), 1) + 1
	// Unsigned, for slots at both ends of time.
	per := float64(n) / (float64(uint64(slot)-uint64(last)) * meterSlot.Seconds())
	m.rate = meterSmooth*per + (1-meterSmooth)*m.rate
	if uint64(slot)-uint64(last) > 1<<12 {
		m.count.Reset() // a counter knows the age of what it holds on a circle only
	}
	m.slot.Store(slot)
}

// floorDiv returns the largest whole number that is not above a/b.
func floorDiv(a, b time.Duration) time.Duration {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
