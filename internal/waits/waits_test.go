package waits

import (
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
)

const ms = time.Millisecond

func TestSchedulesThatWaitAlike(t *testing.T) {
	full := backoff.Schedule{Base: 100 * ms, Cap: 400 * ms}
	for _, c := range []struct {
		name    string
		a, b    backoff.Schedule
		retries int
		want    bool
	}{
		{"nothing to wait for", full, backoff.Schedule{Kind: backoff.Ethernet}, 0, true},
		{"itself", full, full, 99, true},
		{"the defaults, written", backoff.Schedule{}, backoff.Schedule{Base: 100 * ms, Cap: 20 * time.Second, Factor: 2}, 99, true},
		{"one retry, other growth", full, backoff.Schedule{Base: 100 * ms, Cap: 9 * time.Hour, Factor: 7}, 1, true},
		{"two retries, other growth", full, backoff.Schedule{Base: 100 * ms, Cap: 9 * time.Hour, Factor: 7}, 2, false},
		{"another cap that is not reached", full, backoff.Schedule{Base: 100 * ms, Cap: time.Hour}, 3, true},
		{"another cap that is reached", full, backoff.Schedule{Base: 100 * ms, Cap: time.Hour}, 4, false},
		{"reached late", backoff.Schedule{Base: 1, Factor: 1.01, Cap: time.Second}, backoff.Schedule{Base: 1, Factor: 1.01, Cap: 2 * time.Second}, 999, true},
		{"reached later", backoff.Schedule{Base: 1, Factor: 1.1, Cap: time.Second}, backoff.Schedule{Base: 1, Factor: 1.1, Cap: 2 * time.Second}, 999, false},
		{"constant", backoff.Schedule{Kind: backoff.Constant, Base: 50 * ms}, backoff.Schedule{Base: 50 * ms, Cap: 50 * ms}, 999, true},
		{"linear for two", backoff.Schedule{Kind: backoff.Linear, Base: 50 * ms}, backoff.Schedule{Base: 50 * ms}, 2, true},
		{"linear for three", backoff.Schedule{Kind: backoff.Linear, Base: 50 * ms}, backoff.Schedule{Base: 50 * ms}, 3, false},
		{"jitter", full, backoff.Schedule{Base: 100 * ms, Cap: 400 * ms, Jitter: backoff.Equal}, 1, false},
		{"floor", full, backoff.Schedule{Base: 100 * ms, Cap: 400 * ms, Floor: 1}, 1, false},
		{"first at once", full, backoff.Schedule{Base: 100 * ms, Cap: 400 * ms, FastFirst: true}, 1, false},
		{"slots are no range", backoff.Schedule{Kind: backoff.Ethernet, Base: 100 * ms}, backoff.Schedule{Base: 100 * ms, Cap: 100 * ms}, 1, false},
		{"from the one before", backoff.Schedule{Jitter: backoff.Decorrelated, Base: 100 * ms}, backoff.Schedule{Jitter: backoff.Decorrelated, Base: 100 * ms, Cap: 20 * time.Second}, 3, false},
	} {
		check.Equal(t, Same(c.a, c.b, c.retries), c.want, "%s", c.name)
		check.Equal(t, Same(c.b, c.a, c.retries), c.want, "%s, the other way", c.name)
	}
}

// Where growth has an end the rest need not be looked at, and is not forgotten.
func TestASlowStartIsNoEnd(t *testing.T) {
	a := backoff.Schedule{Kind: backoff.Linear, Jitter: backoff.None, Base: 1, Cap: 500}
	b := backoff.Schedule{Kind: backoff.Linear, Jitter: backoff.None, Base: 1, Cap: 501}
	if !Same(a, b, 500) || Same(a, b, 501) {
		t.Error("the difference at the 501st wait is not seen")
	}
	slow := backoff.Schedule{Jitter: backoff.None, Base: 1, Factor: 1.1, Cap: time.Hour} // 1, 1, 1 ns ...
	same := backoff.Schedule{Jitter: backoff.None, Base: 1, Factor: 1, Cap: time.Hour}
	if Same(slow, same, 100) || !Same(slow, same, 3) {
		t.Error("a schedule that grows after a while is taken for one that does not")
	}
}

func TestPatience(t *testing.T) {
	for _, base := range []time.Duration{0, 1, time.Second, time.Hour, 1<<63 - 1} {
		s := backoff.Schedule{Base: base, Cap: base}
		if got := Patience(s); got < s.Ceiling(1) || got < time.Second || base < 1<<62 && got <= s.Ceiling(1) {
			t.Errorf("base %v: %v", base, got)
		}
	}
}
