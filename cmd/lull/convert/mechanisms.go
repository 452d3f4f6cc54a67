package convert

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Mechanisms that policies and proxies both have, with differences.

// unlimited is the number that means no limit in Envoy.
const unlimited = math.MaxUint32

// proxyBudget is a retry_budget of Envoy, or Istio's retryBudget: concurrent retries as a share of the concurrent requests.
type proxyBudget struct {
	percent  float64
	least    int           // retries that are always allowed
	interval time.Duration // how long a request counts from its start; zero: until its end
}

const budgetWhy = "a proxy bounds the retries that are under way, a budget those that are made"

// policy is the budget that comes nearest. ok is false if it pays for no retry at all.
func (b proxyBudget) policy() (c budget.Config, ok bool) {
	c = budget.Config{Earn: budget.Arrivals, Ratio: max(math.Round(b.percent*1e3)/1e5, budget.MinRatio)}
	if b.interval > 0 {
		c.Window = min(max(b.interval, budget.MinWindow), budget.MaxWindow)
		c.Floor = min(float64(b.least)/c.Window.Seconds(), budget.MaxFloor)
	} else {
		c.Stock = min(max(float64(b.least), 1), budget.MaxStock)
	}
	return c, b.percent > 0 || b.least > 0
}

// proxyBudgetOf is the inverse, for a budget that is not Unlimited.
func proxyBudgetOf(c budget.Config) proxyBudget {
	b := proxyBudget{percent: min(math.Round(cmp.Or(c.Ratio, budget.DefaultRatio)*1e5)/1e3, 100), interval: c.Window}
	stock := c.Stock
	if c.Window == 0 {
		stock = cmp.Or(stock, budget.DefaultStock)
	}
	b.least = int(math.Round(math.Ceil(stock) + c.Floor*c.Window.Seconds()))
	return b
}

// A bound is a setting that bounds retries. Nil: there is none. It has no path once it was recorded.
type bound struct {
	d         *document
	path, why string
}

// on records that the bound became the budget of p, if p has retries.
func (b *bound) on(p *lull.Policy) {
	if b != nil && b.path != "" && p.MaxAttempts() > 1 {
		b.d.noteAbout(true, bounds, Changed, b.path, b.why)
		b.path = ""
	}
}

func (b *bound) unused() {
	if b != nil && b.path != "" {
		b.d.noteAbout(true, bounds, Lost, b.path,
			"nothing that leads there in these files is retried, so there is nothing to bound")
	}
}

func limitOf(n int64) bulkhead.Config {
	if n > bulkhead.MaxLimit {
		return bulkhead.Config{}
	}
	return bulkhead.Config{InFlight: max(int(n), 1)}
}

func maxRetries(n int64) budget.Config {
	switch {
	case n >= math.MaxInt32:
		return budget.Config{Unlimited: true}
	case n == 0:
		return budget.Config{Ratio: budget.MinRatio, Stock: 1}
	}
	return budget.Config{Stock: min(float64(n), budget.MaxStock), Earn: budget.Arrivals}
}

// A guard is what bounds calls in Envoy and in what configures it: circuit breakers and outlier detection.
type guard struct {
	calls, retries   int64        // at a time
	limited, bounded bool         // calls and retries count: a file has them, or there is no base
	budget           *proxyBudget // nil: retries counts
	bound            *bound       // of retries
	ejection         *ejection    // nil: none
	ejectsNone       bool         // a file says so
}

func (g guard) apply(p *lull.Policy) {
	if g.limited {
		p.Limit = limitOf(g.calls)
	}
	g.bound.on(p)
	paid := true
	if g.budget != nil {
		p.Budget, paid = g.budget.policy()
	} else if g.bounded && p.MaxAttempts() > 1 {
		p.Budget, paid = maxRetries(g.retries), g.retries > 0
	}
	if !paid {
		p.Attempts, p.Hedge = 1, hedge.Config{}
	}
	if g.ejection != nil {
		p.Breaker = g.ejection.policy()
	}
	p.Breaker.Off = p.Breaker.Off || g.ejectsNone
}

// addTo adds what no policy can hold.
func (g guard) addTo(f *foreign) { f.budget, f.retries, f.ejection = g.budget, g.retries, g.ejection }

// An ejection is the part of outlier detection that corresponds to a breaker.
type ejection struct {
	five, gateway     int           // 5xx in a row, and gateway errors in a row; 0: off
	base, max, jitter time.Duration // max: zero is none
	percent           int           // of failures; 0: off
	volume, hosts     int           // the least calls of an endpoint, and endpoints with as many
	interval          time.Duration
	most              int // percent of the endpoints that may be ejected
	panic             int // percent of the endpoints that must be healthy for an ejection to count
}

const breakerWhy = "outlier detection ejects single endpoints, and sends to the others; a breaker stops all calls to the dependency"

const panicWhy = "a breaker does not know endpoints; outlier.Config of lullhttp.NewEndpoints does (Panic)"

// consecutive is the number of failures in a row that eject an endpoint. A gateway error is a 5xx, too.
func (e ejection) consecutive() int {
	return choice.Either(e.five > 0 && e.gateway > 0, min(e.five, e.gateway), e.five+e.gateway)
}

func (e ejection) ejects() bool { return e.consecutive() > 0 || e.percent > 0 }

// An unsaid is what a system decides where a file says nothing, in words.
type unsaid []string

func (u *unsaid) add(is bool, what string) {
	if is {
		*u = append(*u, what)
	}
}

// becomesBreaker records that the outlier detection o becomes a breaker, and returns it. Nil: it ejects nothing, and the idle fields have
// no effect. implied is what its system has by default.
func (e ejection) becomesBreaker(d *document, o *tree.Object, system string, implied unsaid, idle ...string) *ejection {
	if !e.ejects() {
		d.idle(o, "nothing is left for which a breaker would open", idle...)
		return nil
	}
	d.noteAbout(o.Has("interval") && e.percent == 0, ejected, Lost, o.At("interval"),
		"a breaker does not sweep: it opens when the last failure is known, and closes by a probe")
	d.noteIf(len(implied) > 0, Assumed, o.Path, "what is not said is as "+system+" has it: "+strings.Join(implied, ", "))
	d.noteAbout(true, ejected, Changed, o.Path, breakerWhy)
	return &e
}

func (e ejection) readMost(d *document, path string) {
	d.noteAbout(e.most < 100 && e.ejects(), ejected, Lost, path,
		fmt.Sprintf("at most %d %% of the endpoints are ejected; a breaker stops all calls", e.most))
}

func upTo(most int64, o *tree.Object, name string, otherwise int64) int64 {
	n, ok := o.Whole(name, 0, most, fmt.Sprintf("a whole number from 0 to %d", most))
	return choice.Either(ok, n, otherwise)
}

// count is a number of failures, calls or endpoints.
func count(o *tree.Object, name string, otherwise int64) int {
	return int(min(upTo(unlimited, o, name, otherwise), math.MaxInt32))
}

// pathIn is the path of a field of o, or that of o if it has none.
func pathIn(o *tree.Object, name string) string {
	path, _ := o.PathOf(name)
	return cmp.Or(path, o.Path)
}

func (e ejection) read(d *document, five, gateway string) {
	switch {
	case e.gateway > 0 && e.gateway < e.five:
		d.noteAbout(true, ejected, Lost, five,
			"a breaker has one number, and counts 502, 503, 504 and failures without an answer; that of gateway errors is taken, which is less")
	case e.gateway > 0 && e.five > 0:
		d.noteAbout(true, ejected, Lost, gateway, "a breaker has one number, and gateway errors count as 5xx, of which fewer do")
	}
}

func (e ejection) policy() breaker.Config {
	c := breaker.Config{Consecutive: -1, ConsecutiveFor: -1, OpenFor: e.base, OpenMax: e.base, OpenJitter: -1}
	if n := e.consecutive(); n > 0 {
		c.Consecutive = n
	}
	if e.percent > 0 {
		c.FailureRate = float64(e.percent) / 100
		c.MinCalls = e.volume
		c.Window = max(e.interval, time.Millisecond)
	}
	c.OpenMax = max(e.max, e.base)
	if e.jitter > 0 {
		c.OpenJitter = min(float64(e.jitter)/float64(e.base), 10)
		if c.OpenMax > math.MaxInt64-e.jitter {
			e.jitter = 0
		}
		c.OpenMax += e.jitter // OpenMax includes the jitter
	}
	return c
}

// unsaid records what a system that has neither the longest time, nor the jitter, nor a share cannot say.
func (e ejection) unsaid(system string, note noter) {
	note.lost(e.max != max(300*time.Second, e.base), "breaker.open_max",
		system+" cannot say it: it is 300s, or the first if that is longer")
	note.lost(e.jitter > 0, "breaker.open_jitter", system+" cannot say it")
	note.lost(e.percent > 0, "breaker.failure_rate", system+" cannot say it")
}

// ejectionOf is what comes nearest to a breaker. ok is false if it would open for much less. rates: the format has percentages.
func ejectionOf(c breaker.Config, rates bool) (e ejection, ok bool) {
	if c.Off || c.MetricsOnly {
		return e, false
	}
	if c.ConsecutiveFor < 0 && c.Consecutive >= 0 {
		e.five = cmp.Or(c.Consecutive, breaker.DefaultConsecutive)
	}
	if percent := int(math.Round(c.FailureRate * 100)); rates && c.FailureRate > 0 {
		e.percent = min(max(percent, 1), 100)
		e.hosts = 1 // a breaker knows one endpoint
		e.volume = cmp.Or(c.MinCalls, breaker.DefaultMinCalls)
		e.interval = toMillis(cmp.Or(c.Window, breaker.DefaultWindow))
	}
	longest := cmp.Or(c.OpenMax, max(breaker.DefaultOpenMax, 2*c.OpenFor))
	jitter := cmp.Or(c.OpenJitter, breaker.DefaultOpenJitter)
	e.base = cmp.Or(c.OpenFor, longest)
	if jitter > 0 {
		e.jitter = toMillis(time.Duration(math.Min(jitter*float64(e.base), math.MaxInt64/4)))
		longest = max(longest-e.jitter, min(e.base, longest))
	}
	e.base = toMillis(min(e.base, longest))
	e.max = max(toMillis(longest), e.base)
	e.most = 100 // a breaker stops all calls
	return e, e.five > 0 || e.percent > 0
}

func breakerLost(c breaker.Config, system string) string {
	switch {
	case c.MetricsOnly:
		return "it only counts, and " + system + " would eject"
	case c.ConsecutiveFor >= 0 && c.Consecutive >= 0:
		return fmt.Sprintf("%s has no breaker. Its outlier detection would eject after %d failures in a row however close together they come, which a breaker takes for nothing; it is written if consecutive_for is negative", system, cmp.Or(c.Consecutive, breaker.DefaultConsecutive))
	}
	return system + " has no breaker, and its outlier detection no such rule"
}

// Envoy waits for min(base × 2^(n-1), max) with full jitter, by its code; its documentation differs.
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

// fit returns the waits of a proxy that come nearest to those of p. With a growth the longest is that many bases. It notes differences.
func fit(p lull.Policy, attempts int, growth time.Duration, system string, note noter) (base, longest time.Duration) {
	s := p.Backoff
	base = toMillis(s.Ceiling(choice.Either(s.FastFirst, 2, 1)))
	longest = max(toMillis(s.Ceiling(cmp.Or(s.Limit(), 1000))), base)
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
