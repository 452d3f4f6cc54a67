package lullamqp

import (
	"testing"
	"time"
)

// A channel may be closed at once after few acknowledgements, and a second after the last of many.
func TestKeepOpen(t *testing.T) {
	var u ackTimes
	now := time.Unix(1_800_000_000, 0)
	if d := u.keepOpen(now); d != 0 {
		t.Errorf("before the first: %v", d)
	}
	for range safeAcks - 1 {
		now = now.Add(time.Millisecond)
		u.note(now)
	}
	if d := u.keepOpen(now); d != 0 {
		t.Errorf("after few: %v", d)
	}
	for range 3 * safeAcks {
		now = now.Add(time.Millisecond)
		u.note(now)
		if d := u.keepOpen(now); d != applyTime {
			t.Fatalf("after many: %v", d)
		}
	}
	if d := u.keepOpen(now.Add(applyTime / 4)); d != applyTime*3/4 {
		t.Errorf("a quarter later: %v", d)
	}
	if d := u.keepOpen(now.Add(applyTime)); d != 0 {
		t.Errorf("at its end: %v", d)
	}
	u.note(now.Add(applyTime))
	if d := u.keepOpen(now.Add(applyTime)); d != 0 {
		t.Errorf("after one more: %v", d)
	}
}
