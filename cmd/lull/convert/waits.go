package convert

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/waits"
)

// Envoy waits for min(base × 2^(n-1), max) with full jitter, by its code; its documentation
// differs. Package preset has the figures of both defaults.
const (
	proxyBase   = 25 * time.Millisecond
	proxyGrowth = 10 // the default of the longest wait, in bases
)

// anyHint is the HintLimit that follows a hint of any length.
const anyHint = time.Duration(math.MaxInt64)

func proxyWaits(base, longest time.Duration) backoff.Schedule {
	return backoff.Schedule{Base: base, Cap: longest}
}

// toMillis is d rounded up to whole milliseconds, at least one: the proxies have no finer unit.
func toMillis(d time.Duration) time.Duration {
	if d > math.MaxInt64-time.Millisecond {
		return math.MaxInt64
	}
	return max((d+time.Millisecond-1)/time.Millisecond, 1) * time.Millisecond
}

// fit returns the base and the longest wait of a proxy that come nearest to the schedule of p. With
// a growth the longest wait is that many bases. Differences are recorded by the fields that cause
// them.
func fit(p lull.Policy, attempts int, growth time.Duration, system string, note noter) (base, longest time.Duration) {
	s := p.Backoff
	base, longest = s.Ceiling(1), s.Ceiling(cmp.Or(s.Limit(), 1000))
	if s.FastFirst {
		base = s.Ceiling(2)
	}
	base = toMillis(base)
	longest = max(toMillis(longest), base)
	if growth > 0 {
		longest = growth * base
		if longest/growth != base {
			longest = math.MaxInt64
		}
	}
	if waits.Same(s, proxyWaits(base, longest), attempts-1) {
		return base, longest
	}
	noted := false
	because := noter(func(kind Kind, field, why string) {
		note(kind, field, why)
		noted = true
	})
	because.changed(s.Kind > backoff.Exponential && s.Kind != backoff.Constant, "backoff.kind", system+" waits exponentially")
	because.changed(s.Jitter != backoff.Full, "backoff.jitter", system+" spreads a wait over all of it, from zero")
	because.changed(s.Kind == backoff.Exponential && s.Jitter != backoff.Decorrelated && attempts > 2 && s.Factor != 0 && s.Factor != 2, "backoff.factor",
		system+" doubles")
	because.lost(s.Floor > 0, "backoff.floor", system+" has no shortest wait")
	because.changed(s.FastFirst, "backoff.fast_first", system+" waits before the first retry as well")
	because.changed(!s.FastFirst && s.Ceiling(1) != base, "backoff.base", system+" counts in whole milliseconds, from 1")
	because.changed(growth > 0 && s.Ceiling(1000) != longest, "backoff.cap",
		system+" cannot say it: its longest wait is ten times the first")
	because.changed(!noted, "backoff", system+"'s waits are rounded otherwise")
	return base, longest
}

type noter func(k Kind, field, why string)

func (note noter) lost(is bool, field, why string) {
	if is {
		note(Lost, field, why)
	}
}

func (note noter) changed(is bool, field, why string) {
	if is {
		note(Changed, field, why)
	}
}
