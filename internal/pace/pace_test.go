package pace

import (
	"flag"
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

// What is skipped is added to what was given.
func TestSkip(t *testing.T) {
	skip := flag.Lookup("test.skip").Value
	given := skip.String()
	defer skip.Set(given)
	for given, want := range map[string]string{"": "^Example$", "^TestX$": "^Example$|^TestX$"} {
		skip.Set(given)
		if Skip("^Example$"); skip.String() != want {
			t.Errorf("-skip=%s becomes %s, want %s", given, skip, want)
		}
	}
}
