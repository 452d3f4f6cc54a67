package pretty

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "0s",
		10 * time.Second:                     "10s",
		2 * time.Minute:                      "2m",
		-2 * time.Minute:                     "-2m",
		time.Hour:                            "1h",
		10 * time.Hour:                       "10h",
		time.Hour + 10*time.Minute:           "1h10m",
		time.Hour + time.Second:              "1h0m1s",
		90 * time.Second:                     "1m30s",
		20*time.Minute + 10*time.Millisecond: "20m0.01s",
		math.MaxInt64:                        "2562047h47m16.854775807s",
	} {
		check.Equal(t, Duration(d), want, "%v", d)
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s is %v, %v", want, back, err)
		}
	}
}
