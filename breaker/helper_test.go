package breaker

import (
	"testing"
	"time"
)

// must is New for a configuration that is right.
func must(t testing.TB, c Config, listeners ...func(Change)) *Breaker {
	t.Helper()
	b, err := New(c, listeners...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flights are calls under way that all take the same time, in the order of their
// starts.
type flights []Token

// land reports those that have taken so long by now.
func (f *flights) land(b *Breaker, now, so time.Duration, o Outcome) {
	for len(*f) > 0 && (*f)[0].start+so <= now {
		b.Done(now, (*f)[0], o, nil)
		*f = (*f)[1:]
	}
}
