package torture

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

const ms = time.Millisecond

// tries are attempts of one call: each is answered at once, and asks for a wait.
func tries(wait time.Duration, arrived ...time.Duration) []Attempt {
	var list []Attempt
	for i, at := range arrived {
		a := Attempt{Number: i + 1, Arrived: at, Answered: at + ms}
		if wait > 0 {
			a.NotBefore = a.Answered + wait
		}
		list = append(list, a)
	}
	return list
}

func ended(ok bool, at time.Duration) []Finished { return []Finished{{End: at, OK: ok}} }

func bodies(texts ...string) []Attempt {
	var list []Attempt
	for i, text := range texts {
		list = append(list, Attempt{Number: i + 1, Length: int64(len(text)), Sum: text, Whole: true})
	}
	return list
}

func keyed(keys ...string) []Attempt {
	list := tries(0, 0, ms)
	for i, key := range keys {
		list[i].Header = map[string][]string{"Idempotency-Key": {key}}
	}
	return list
}

// calls are the first waits of as many calls.
func callsWaiting(waits ...time.Duration) Seen {
	s := Seen{traits: traits{retries: true}}
	for i, w := range waits {
		s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 1, Answered: ms}, Attempt{Call: i, Number: 2, Arrived: ms + w})
	}
	return s
}

// The chance is that of the binomial distribution.
func TestUnlikely(t *testing.T) {
	for _, c := range []struct {
		n     int
		share float64
		want  int
	}{{60, 0.1, 18}, {100, 0.1, 25}, {200, 0.1, 40}, {10, 0.5, 10}, {0, 0.1, 0}} {
		check.Equal(t, unlikely(c.n, c.share), c.want, "%d and %v", c.n, c.share)
	}
}

// delayed adds to the wait before a retry of the first n calls, and what follows on it.
func delayed(s Seen, retry, n int, by time.Duration) Seen {
	for i, a := range s.Attempts {
		if a.Call < n && a.Number > retry {
			s.Attempts[i].Arrived += by
			s.Attempts[i].Answered += by
		}
	}
	return s
}

// A call that waits longer and longer, up to a cap, with so much jitter: n calls.
func growing(n int, jitter float64, waits ...time.Duration) Seen {
	s := Seen{traits: traits{retries: true}}
	for i := range n {
		at := time.Duration(0)
		for k, w := range append([]time.Duration{0}, waits...) {
			share := float64((i*37+k*11)%n)/float64(n) - 0.5
			at += w + time.Duration(2*jitter*share*float64(w))
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: k + 1, Arrived: at, Answered: at + 1})
		}
	}
	return s
}

// mixed adds n constant waits to each call.
func mixed(s Seen, wait time.Duration, n int) Seen {
	var list []Attempt
	for i, a := range s.Attempts {
		list = append(list, a)
		if i+1 == len(s.Attempts) || s.Attempts[i+1].Call != a.Call {
			for range n {
				a.Number++
				a.Arrived += wait + 1
				a.Answered = a.Arrived + 1
				list = append(list, a)
			}
		}
	}
	s.Attempts = list
	return s
}
