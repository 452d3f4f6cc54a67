package pace

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestStretch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers are never late
		check.Equal(t, Stretch(time.Second), time.Second, "a second on a machine with nothing to do")
	})
	for worst, want := range map[time.Duration]time.Duration{
		0: 1, timerSlack: 1, timerSlack + 1: 2, 2 * timerSlack: 2, 5 * timerSlack: 5, time.Hour: most,
	} {
		check.Equal(t, by(time.Second, worst), want*time.Second, "with timers that are %v late a second", worst)
	}
}

// What is skipped is added to what was given.
func TestSkip(t *testing.T) {
	skip := flag.Lookup("test.skip").Value
	given := skip.String()
	defer skip.Set(given)
	for given, want := range map[string]string{"": "^Example$", "^TestX$": "^Example$|^TestX$"} {
		skip.Set(given)
		Skip("^Example$")
		check.Equal(t, skip.String(), want, "-skip=%s as %s", given, skip)
	}
}
