package lullamqp

import (
	"testing"
	"time"
)

// A channel may be closed at once after few acknowledgements, and a second after the last of many.
func TestUnapplied(t *testing.T) {
	var u unapplied
	now := time.Unix(1_800_000_000, 0)
	if d := u.left(now); d != 0 {
		t.Errorf("before the first: %v", d)
	}
	for range fewAcks - 1 {
		now = now.Add(time.Millisecond)
		u.note(now)
	}
	if d := u.left(now); d != 0 {
		t.Errorf("after few: %v", d)
	}
	for range 3 * fewAcks {
		now = now.Add(time.Millisecond)
		u.note(now)
		if d := u.left(now); d != applying {
			t.Fatalf("after many: %v", d)
		}
	}
	if d := u.left(now.Add(applying / 4)); d != applying*3/4 {
		t.Errorf("a quarter later: %v", d)
	}
	if d := u.left(now.Add(applying)); d != 0 {
		t.Errorf("at its end: %v", d)
	}
	u.note(now.Add(applying))
	if d := u.left(now.Add(applying)); d != 0 {
		t.Errorf("after one more: %v", d)
	}
}
