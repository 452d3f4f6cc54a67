package lint

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// shown is how many attempts of a long call are listed one by one.
const shown = 6

// A timeline is a call to one dependency in which every attempt times out and every wait is the longest.
type timeline struct {
	policy   lull.Policy // with its defaults
	attempts int
	byItself string        // the words for an attempt whose timeout is not in the file
	room     time.Duration // before each attempt, the wait for the limit and the throttle
}

func newTimeline(p lull.Policy) timeline {
	byItself := choice.Either(p.AttemptTimeout == 0, " (attempt_timeout is "+pretty(engine.DefaultAttemptTimeout)+" where none is written)", "")
	p = p.WithDefaults()
	return timeline{p, p.MaxAttempts(), byItself, saturating.Add(p.Throttle.LongestWait(), max(p.Limit.MaxWait, 0))}
}

// own is the longest wait before the given retry, from 1, without the server's wishes. After a failure a hedge is sent at once.
func (t timeline) own(retry int) time.Duration {
	if t.policy.Hedge.Attempts > 1 {
		return 0
	}
	return t.policy.Backoff.Max(retry)
}

// begins is the latest start of the given attempt, from 1, whatever the deadline.
func (t timeline) begins(attempt int) time.Duration {
	sum := t.room
	for n := 1; n < attempt && sum < math.MaxInt64; n++ {
		sum = saturating.Add(sum, saturating.Add(t.attempt(), saturating.Add(t.own(n), t.room)))
	}
	return sum
}

func (t timeline) attempt() time.Duration {
	return choice.Either(t.policy.AttemptTimeout > 0, t.policy.AttemptTimeout, math.MaxInt64)
}

// total is the time of all attempts and waits, without the deadline.
func (t timeline) total() time.Duration { return saturating.Add(t.begins(t.attempts), t.attempt()) }

// asked is total with the longest waits that a server may ask for.
func (t timeline) asked() time.Duration {
	sum := t.total()
	for n := 1; n < t.attempts && sum < math.MaxInt64; n++ {
		sum = saturating.Add(sum, t.policy.LongestWait(n)-t.own(n))
	}
	return sum
}

// ownWorst is lull.Policy.WorstCase for a call in which the server asks for no wait.
func (t timeline) ownWorst() time.Duration { return min(t.total(), t.policy.WorstCase()) }

// fits is how many attempts can all take their full time within limit.
func (t timeline) fits(limit time.Duration) int { return t.useful(limit, t.attempt()) }

// each is the longest time for each of n attempts that fit into limit, with the waits between them.
func (t timeline) each(attempts int, limit time.Duration) time.Duration {
	left := limit - times(t.room, attempts)
	for n := 1; n < attempts && left > 0; n++ {
		left -= t.own(n)
	}
	return down(max(left, 0) / time.Duration(attempts))
}

// useful is how many attempts fit into limit if each takes its full time, and the last at least the given part of it.
func (t timeline) useful(limit, need time.Duration) int {
	return sort.Search(t.attempts, func(n int) bool { return saturating.Add(t.begins(n+1), need) > limit })
}

// starts is how many attempts begin before the deadline in any case.
func (t timeline) starts(limit time.Duration) int {
	return 1 + sort.Search(t.attempts-1, func(n int) bool { return t.begins(n+2) >= limit })
}

type ledger struct {
	steps []Step
	sum   time.Duration
}

func (l *ledger) add(d time.Duration, what string, args ...any) {
	l.sum = saturating.Add(l.sum, d)
	l.steps = append(l.steps, Step{fmt.Sprintf(what, args...), pretty(d), pretty(l.sum)})
}

// cut adds a line: something ends the sum at limit.
func (l *ledger) cut(limit time.Duration, what string, args ...any) {
	if l.sum > limit {
		l.sum = limit
		l.steps = append(l.steps, Step{What: fmt.Sprintf(what, args...), Total: pretty(limit)})
	}
}

func (l *ledger) note(what string, args ...any) {
	l.steps = append(l.steps, Step{What: fmt.Sprintf(what, args...)})
}

// explain lists the longest call: attempts, waits that a server may ask for, the deadline. Its last total is WorstCase.
func (t timeline) explain() []Step {
	var l ledger
	t.attemptByAttempt(&l, t.attempts)
	t.capNotReached(&l)
	if extra := t.asked() - l.sum; extra > 0 && l.sum < t.policy.WorstCase() {
		l.add(extra, "%s instead, if the server limits the rate or asks for them (rate_limited_base %s, hint_limit %s)",
			t.longerWaits(), pretty(t.policy.RateLimitedBase), pretty(t.policy.HintLimit))
	}
	if d := t.policy.Deadline; d > 0 {
		l.cut(d, "the deadline ends the call")
	}
	return l.steps
}

func (t timeline) attemptByAttempt(l *ledger, attempts int) {
	if t.policy.AttemptTimeout <= 0 {
		l.add(math.MaxInt64, "attempt 1, which nothing ends (attempt_timeout: none)")
		return
	}
	for n := 1; n <= attempts; n++ {
		if skip := attempts - n; n == shown && skip > 1 {
			end := t.begins(attempts)
			l.add(end-l.sum, "%d more attempts, and the waits between", skip)
			l.add(t.attempt(), "attempt %d", attempts)
			return
		}
		if n > 1 && t.own(n-1) > 0 {
			l.add(t.own(n-1), "wait %d, %s", n-1, t.waitWords(n-1))
		}
		if t.room > 0 {
			l.add(t.room, "for room before attempt %d", n)
		}
		l.add(t.attempt(), "attempt %d%s", n, choice.Either(n == 1, t.byItself, ""))
	}
}

func (t timeline) waitWords(retry int) string {
	s := t.policy.Backoff
	most := pretty(s.Max(retry))
	switch s.Jitter {
	case backoff.None:
		return "always " + most
	case backoff.Equal:
		return "half of it at random"
	case backoff.Decorrelated:
		return "at most 3 times the one before"
	case backoff.Proportional:
		return pretty(s.Ceiling(retry)) + " and up to a fifth more"
	}
	return "at random below " + most
}

// capNotReached adds that the waits do not reach the cap, which is often taken for the length of every wait.
func (t timeline) capNotReached(l *ledger) {
	s := t.policy.Backoff
	if s.Cap <= 0 || t.attempts < 2 || t.policy.Hedge.Attempts > 1 || t.policy.AttemptTimeout <= 0 || s.Kind == backoff.Immediate {
		return
	}
	if s.Ceiling(t.attempts-1) >= s.Cap {
		return
	}
	wrong := saturating.Add(times(t.attempt(), t.attempts), times(s.Cap, t.attempts-1))
	l.note("no wait reaches the cap of %s, so it is not %d × %s + %d × %s = %s",
		pretty(s.Cap), t.attempts, pretty(t.attempt()), t.attempts-1, pretty(s.Cap), pretty(wrong))
}

func (t timeline) longerWaits() string {
	first, last := t.policy.LongestWait(1), t.policy.LongestWait(t.attempts-1)
	if first == last {
		return fmt.Sprintf("waits of %s", pretty(first))
	}
	return fmt.Sprintf("waits of %s to %s", pretty(first), pretty(last))
}
