package lullamqp

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The end of a message's own time, from its properties.
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, x := range map[string]struct {
		expiration string
		sent       time.Time
		left       time.Duration // 0: no end
	}{
		"none":                           {"", now, 0},
		"no number":                      {"soon", now, 0},
		"negative":                       {"-1", now, 0},
		"more than the server takes":     {"99999999999", now, 0},
		"since when is not known":        {"4000", time.Time{}, 4 * time.Second},
		"sent a second ago":              {"4000", now.Add(-time.Second), 3 * time.Second},
		"sent by a clock that is behind": {"4000", now.Add(-time.Hour), 4 * time.Second},
		"sent by a clock that is ahead":  {"4000", now.Add(time.Hour), 4 * time.Second},
		"it was to be delivered at once": {"0", time.Time{}, 1},
	} {
		got := expiry(&amqp.Delivery{Expiration: x.expiration, Timestamp: x.sent}, now)
		if want := now.Add(x.left.Truncate(time.Millisecond)); x.left == 0 && !got.IsZero() || x.left != 0 && !got.Equal(want) {
			t.Errorf("%s: %v left, want %v", name, got.Sub(now), x.left)
		}
	}
}
