package serviceconfig

import "time"

// A Loss is something that could not be carried over from one form of a policy to
// the other, or not as it was.
type Loss struct {
	Field string // of the form it was in; of a policy, in Go: "Backoff.Jitter"
	Why   string
	// Changed: it was carried over, and means something else now, or was rounded. If not
	// it is gone.
	Changed bool
}

// String is both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

// losses collects them.
type losses []Loss

func (l *losses) gone(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, false})
	}
}

func (l *losses) changed(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, true})
	}
}

// bounded: the attempt ends before the call does.
func bounded(attempt, call time.Duration) bool { return attempt > 0 && (call <= 0 || attempt < call) }
