package report

import (
	"fmt"
	"testing"
	"time"
)

// TestMarksDoNotMeet: the marks of a row do not touch, and become numbers if there are too
// many for the rows.
func TestMarksDoNotMeet(t *testing.T) {
	var ws []Window
	add := func(seconds ...time.Duration) []placedWindow {
		for _, at := range seconds {
			ws = append(ws, Window{From: at * time.Second, To: (at + 1) * time.Second, Mark: "stall 1 s", What: "workers stand still"})
		}
		return arranged(ws, time.Minute)
	}
	if p := add(10, 11, 50); p[0].Row == p[1].Row || p[2].Row != 0 || p[2].Anchor != "end" || p[0].Mark != "stall 1 s" {
		t.Errorf("three marks: %+v", p)
	}
	for i, w := range add(12, 13, 14, 15, 16) {
		if w.Mark != fmt.Sprint(i+1) {
			t.Errorf("mark %d is %q", i, w.Mark)
		}
	}
}
