package serviceconfig

// A Loss is something that could not be carried over unchanged.
type Loss struct {
	Field string // of the form it was in; of a policy, in Go: "Backoff.Jitter"
	Why   string
	// Changed: it was carried over, but has another meaning or was rounded. Otherwise it is gone.
	Changed bool
}

// String is both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

// losses collects them.
type losses []Loss

func (l *losses) add(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, false})
	}
}

func (l *losses) changed(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, true})
	}
}
