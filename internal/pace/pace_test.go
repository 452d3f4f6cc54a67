package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStretch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers are never late
		if got := Stretch(time.Second); got != time.Second {
			t.Errorf("on a machine with nothing to do a second is %v", got)
		}
	})
	for worst, want := range map[time.Duration]time.Duration{
		0: 1, timerSlack: 1, timerSlack + 1: 2, 2 * timerSlack: 2, 5 * timerSlack: 5, time.Hour: most,
	} {
		if got := by(time.Second, worst); got != want*time.Second {
			t.Errorf("with timers that are %v late a second is %v, want %v", worst, got, want*time.Second)
		}
	}
}
