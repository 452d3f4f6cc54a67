package tune

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/lab/scenario"
)

// goals are what the user accepts and wants.
type goals struct {
	slo           time.Duration // 0: none is given
	target        float64       // the share of calls that the SLO asks for
	falseTimeouts float64       // the share of healthy attempts that may be cut off
	hedgeLoad     float64       // the share of more attempts that hedging may cost
}

// A proposal is about one field of a policy.
type proposal struct {
	Field string // as in a policy file
	InUse string // the value of the policy in use, its default included
	Value string // the proposed value; empty: none, for the reason Why
	Why   string
	// Looser values are tried in turn if the one before is worse somewhere.
	Looser []string
	// Data, Formula and Price say where the value comes from, and what it costs.
	Data, Formula, Price string
	// Allowed is the interval of values that the data allows, Outside that the policy in use sets a value outside of it.
	Allowed string
	Outside bool
	// Verdict is what became of it.
	Verdict string
	Kept    bool
}

// none is a proposal without a value.
func (p proposal) none(format string, args ...any) proposal {
	p.Value, p.Why = "", fmt.Sprintf(format, args...)
	return p
}

// allow notes the interval that the data allows for the value in use. A bound of zero is none. The value counts only if the
// policy sets it: defaults are what the simulation judges.
func (p *proposal) allow(set bool, v, low, high time.Duration) {
	switch {
	case low > 0 && high > 0:
		p.Allowed = pretty.Duration(low) + " to " + pretty.Duration(high)
	case low > 0:
		p.Allowed = "at least " + pretty.Duration(low)
	case high > 0:
		p.Allowed = "at most " + pretty.Duration(high)
	}
	p.Outside = set && (low > 0 && v < low || high > 0 && v > high)
}

// propose returns a proposal for each field that tune knows, in the order in which they are tried.
func propose(f *facts, p lull.Policy, g goals) []proposal {
	return []proposal{
		f.attemptTimeout(p, g), f.deadline(p, g), f.attempts(p, g), f.base(p), f.cap(p), f.openMax(p), f.limit(p), f.stock(p), f.hedge(p, g),
	}
}

func inUse(field string, set bool, v any) proposal {
	text := fmt.Sprint(v)
	if d, ok := v.(time.Duration); ok {
		text = pretty.Duration(d)
	}
	if !set {
		text += " (default)"
	}
	return proposal{Field: field, InUse: text}
}

// quickParts is how much longer than a usual success an attempt timeout must be for the zero policy to repeat a timeout: more
// than four times (engine.TimeoutsWhenAnswered), and it knows the usual time to a quarter.
const quickParts = 5

func (f *facts) attemptTimeout(p lull.Policy, g goals) proposal {
	now := p.WithDefaults().AttemptTimeout
	r := inUse("attempt_timeout", p.AttemptTimeout != 0, now)
	if p.AttemptTimeout == 0 && f.patience > 0 {
		now = f.patience
		r.InUse = pretty.Duration(now) + " (seen)"
	}
	low, high, ok := f.times.Above(g.falseTimeouts)
	if !ok {
		return r.none("%s", f.tooFew(g.falseTimeouts))
	}
	_, median, _ := f.times.Above(0.5)
	low, high, median = low+f.network, high+f.network, median+f.network
	value := max(digits(max(high, quickParts*median, f.seenP99), true), 100*time.Microsecond)
	r.Data = fmt.Sprintf("%d healthy attempts: %s of them take longer than %v to %v (95 %%), half of them longer than %v",
		f.times.N, percent(g.falseTimeouts), short(low), short(high), short(median))
	r.Formula = "the upper bound of that quantile, and at least 5 × the median: below it the zero policy takes a timeout for a queue and does not repeat it. If that is worse in some world, 2 or 4 × as much is tried"
	if f.seenP99 > high && f.seenP99 > quickParts*median {
		r.Formula += fmt.Sprintf("; here it is the p99 that was seen while all was well, with waits in line, %v", short(f.seenP99))
	}
	r.Price = fmt.Sprintf("up to %s of healthy attempts are cut off", percent(g.falseTimeouts))
	r.allow(p.AttemptTimeout > 0, now, digits(low, false), g.slo)
	switch {
	case f.patience > 0 && high >= f.patience:
		return r.none("callers gave up after %v, so longer times were not seen", f.patience)
	case g.slo > 0 && value > g.slo:
		return r.none("%v is longer than the SLO of %v", value, g.slo)
	case now > 0 && now >= digits(low, false) && float64(value) > 0.8*float64(now):
		return r.none("%v is not much shorter than what is in use", value)
	}
	r.Value = pretty.Duration(value)
	for _, times := range []time.Duration{2, 4} { // room for times that are twice or four times as long
		if looser := times * value; float64(looser) <= 0.8*float64(now) && (g.slo == 0 || looser <= g.slo) {
			r.Looser = append(r.Looser, pretty.Duration(looser))
		}
	}
	return r
}

// counted says how many attempts the world has the times of.
func (f *facts) counted() string {
	if f.times.N == 0 {
		return "the times of the service are no histogram with numbers of attempts"
	}
	return fmt.Sprintf("the world has the times of %d healthy attempts", f.times.N)
}

// tooFew says why there is no upper bound of the time that a share of the attempts exceeds.
func (f *facts) tooFew(share float64) string {
	if n := scenario.Wanted(share); f.times.N < n {
		text := fmt.Sprintf("%s; for the time that %s of them exceed %d are wanted", f.counted(), percent(share), n)
		if f.times.N > 0 {
			text += fmt.Sprintf(", %d more", n-f.times.N)
		}
		return text
	}
	return fmt.Sprintf("the time that %s of the attempts exceed was not seen: %s", percent(share), f.learned.Asks(f.of("time")))
}

const noSLO = "no SLO is given (--slo 800ms@99.9)"

func (f *facts) deadline(p lull.Policy, g goals) proposal {
	now := p.WithDefaults().Deadline
	r := inUse("deadline", p.Deadline != 0, now)
	if g.slo == 0 {
		return r.none(noSLO)
	}
	r.allow(p.Deadline > 0, now, g.slo, 0)
	r.Data = fmt.Sprintf("the SLO: %s of the calls within %v", percent(g.target), g.slo)
	r.Formula = "the time of the SLO: what takes longer does not count. An attempt timeout is no longer than it"
	r.Price = "calls that would have succeeded later fail"
	if own := f.scenario.Fleets[f.fleet].Deadline; now == g.slo || own > 0 && own <= g.slo {
		return r.none("callers give up after that already")
	}
	r.Value = pretty.Duration(g.slo)
	return r
}

func (f *facts) attempts(p lull.Policy, g goals) proposal {
	now := p.WithDefaults().Attempts
	r := inUse("attempts", p.Attempts != 0, now)
	if g.slo == 0 {
		return r.none(noSLO)
	}
	needed := max(int(math.Ceil(math.Log(1-g.target)/math.Log(min(f.errors, 0.99)))), 2)
	r.Data = fmt.Sprintf("up to %s of the attempts fail while all is well (95 %%); the SLO leaves %s", percent(f.errors), percent(1-g.target))
	r.Formula = fmt.Sprintf("the least n with %.3g^n <= %.3g, and at least 2", f.errors, 1-g.target)
	r.Price = "each attempt more is a longer wait; the budget bounds what all of them cost"
	r.Allowed, r.Outside = fmt.Sprintf("at least %d", needed), p.Attempts > 0 && p.Hedge.Attempts < 2 && p.Attempts < needed
	if needed > 10 {
		return r.none("it would take %d attempts: the service does not allow this SLO", needed)
	}
	if needed <= now {
		return r.none("%d are enough", needed)
	}
	r.Value = strconv.Itoa(needed)
	return r
}

func (f *facts) base(p lull.Policy) proposal {
	now := cmp.Or(p.Backoff.Base, backoff.DefaultBase)
	r := inUse("backoff.base", p.Backoff.Base != 0, now)
	if p.Backoff.Kind != backoff.Exponential {
		return r.none("the schedule in use is %v", p.Backoff.Kind)
	}
	low, high, ok := f.times.Above(0.5)
	if !ok || f.times.N < 100 {
		return r.none("%s; 100 are wanted", f.counted())
	}
	value := max(digits(high+f.network, true), 100*time.Microsecond) // the least that a policy may have
	r.Data = fmt.Sprintf("%d healthy attempts: half of them take longer than %v to %v (95 %%)", f.times.N, short(low+f.network), short(high+f.network))
	r.Formula = "the healthy round trip: a retry does not come before the work of the attempt before it could have been done"
	r.Price = "a longer base is a later success after a short fault, a shorter one brings more retries in it"
	r.allow(p.Backoff.Base > 0, now, digits(low+f.network, false), f.lasted())
	if near(value, now) {
		return r.none("%v is not far from what is in use", value)
	}
	r.Value = pretty.Duration(value)
	return r
}

// near reports whether two times differ by less than a fifth.
func near(a, b time.Duration) bool { return math.Abs(math.Log(float64(a)/float64(b))) < 0.2 }

// pauses are a tenth of the incident: whoever waits longer comes back later by more than that.
const pauses = 10

func (f *facts) cap(p lull.Policy) proposal {
	now := cmp.Or(p.Backoff.Cap, max(backoff.DefaultCap, p.Backoff.Base))
	return f.pause(inUse("backoff.cap", p.Backoff.Cap != 0, now), p.Backoff.Cap > 0, now, max(p.Backoff.Base, backoff.DefaultBase))
}

func (f *facts) openMax(p lull.Policy) proposal {
	now := cmp.Or(p.Breaker.OpenMax, max(breaker.DefaultOpenMax, 2*p.Breaker.OpenFor))
	r := inUse("breaker.open_max", p.Breaker.OpenMax != 0, now)
	if p.Breaker.Off {
		return r.none("the breaker is off")
	}
	return f.pause(r, p.Breaker.OpenMax > 0, now, max(p.Breaker.OpenFor, time.Second))
}

func (f *facts) pause(r proposal, set bool, now, least time.Duration) proposal {
	if f.lasted() == 0 {
		return r.none("there is no incident in the data")
	}
	value := max(digits(f.lasted()/pauses, true), least)
	r.Data = fmt.Sprintf("the incident lasted %v", f.lasted())
	r.Formula = "a tenth of it: a longer pause makes the recovery longer by more than that"
	r.Price = "shorter pauses are more attempts while nothing works"
	r.allow(set, now, 0, f.lasted())
	if value >= now || near(value, now) {
		return r.none("%v is not shorter than what is in use", value)
	}
	r.Value = pretty.Duration(value)
	return r
}

func (f *facts) limit(p lull.Policy) proposal {
	now := "none"
	if p.Limit.InFlight > 0 {
		now = strconv.Itoa(p.Limit.InFlight)
	}
	r := inUse("limit.in_flight", p.Limit.InFlight > 0, now)
	switch {
	case f.busiest == 0 || f.times.N == 0:
		return r.none("the rate of the calls or their times are not known")
	case f.asks("processes") != "":
		return r.none("the number of processes is not known: %s", f.asks("processes"))
	}
	each := f.busiest / float64(f.processes())
	mean := f.times.Mean() + f.network
	peak := max(crowd(each*mean.Seconds()), 1)
	r.Data = fmt.Sprintf("%.3g calls/s in each of %d processes in the busiest moment, %v for each", each, f.processes(), short(mean))
	r.Formula = fmt.Sprintf("Little's law: %.3g in progress on average, %d in one moment of a million, and as many again for slower times; 2 or 4 × as many if that is worse in some world", each*mean.Seconds(), peak)
	r.Price = "calls beyond it fail at once"
	r.Allowed, r.Outside = fmt.Sprintf("at least %d", peak), p.Limit.InFlight > 0 && p.Limit.InFlight < peak
	if value := 2 * peak; p.Limit.InFlight == 0 || r.Outside || p.Limit.InFlight > 2*value {
		r.Value, r.Looser = strconv.Itoa(value), []string{strconv.Itoa(2 * value), strconv.Itoa(4 * value)}
		return r
	}
	return r.none("the limit in use is near enough")
}

func (f *facts) stock(p lull.Policy) proposal {
	now := cmp.Or(p.Budget.Stock, budget.DefaultStock)
	r := inUse("budget.stock", p.Budget.Stock != 0, now)
	switch {
	case p.Budget.Unlimited || p.Budget.Window > 0:
		return r.none("the budget in use has no stock")
	case f.capacity == 0 && f.learned.Asks(f.of("workers")) != "":
		return r.none("the capacity is not known: %s", f.learned.Asks(f.of("workers")))
	case f.capacity == 0 || f.load == 0:
		return r.none("the capacity or the load is not known")
	case f.asks("processes") != "":
		return r.none("the number of processes is not known: %s", f.asks("processes"))
	}
	spare := max(f.capacity-f.load, 0)
	most := max(math.Floor(spare/float64(f.processes())), 1)
	r.Data = fmt.Sprintf("the service can do at least %.4g attempts/s and gets up to %.4g; %d processes", f.capacity, f.load, f.processes())
	r.Formula = fmt.Sprintf("the stocks of all processes are no more than the service can do beside its load in a second: %.4g / %d, and at least 1", spare, f.processes())
	r.Price = "a process that calls seldom has fewer retries"
	r.Allowed = fmt.Sprintf("at most %.4g", most)
	r.Outside = p.Budget.Stock > most
	if most >= now {
		return r.none("all stocks together are less than the spare capacity")
	}
	r.Value = strconv.FormatFloat(most, 'f', -1, 64)
	return r
}

func (f *facts) hedge(p lull.Policy, g goals) proposal {
	now := "off"
	if p.Hedge.Attempts > 1 {
		now = fmt.Sprintf("%d attempts, delay %v", p.Hedge.Attempts, p.Hedge.Delay) // 0s: learned
	}
	r := inUse("hedge", p.Hedge.Attempts > 1, now)
	low, high, ok := f.times.Above(g.hedgeLoad)
	switch {
	case f.scenario.Fleets[f.fleet].NotIdempotent:
		return r.none("the calls may not run twice")
	case f.asks("not_idempotent") != "":
		return r.none("it is not known whether the calls may run twice: %s", f.asks("not_idempotent"))
	case !ok:
		return r.none("%s", f.tooFew(g.hedgeLoad))
	}
	r.Data = fmt.Sprintf("%d healthy attempts: %s of them take longer than %v to %v (95 %%)", f.times.N, percent(g.hedgeLoad), short(low+f.network), short(high+f.network))
	r.Formula = fmt.Sprintf("a second attempt after the percentile that leaves %s; a policy hedges or retries, not both", percent(g.hedgeLoad))
	r.Price = fmt.Sprintf("%s more attempts while all is well, and no other retries. The calls must be safe to run twice", percent(g.hedgeLoad))
	r.allow(p.Hedge.Delay > 0, p.Hedge.Delay, digits(low+f.network, false), 0)
	if p.Hedge.Attempts > 1 {
		return r.none("it is on already")
	}
	r.Value = fmt.Sprintf("{attempts: 2, percentile: %v}", math.Round((1-g.hedgeLoad)*1e6)/1e6)
	return r
}

// with returns p with the value of r, and what goes with it.
func (r *proposal) with(p lull.Policy) (lull.Policy, error) {
	if r.Field == "hedge" {
		p.Attempts = min(p.Attempts, 1)
	}
	if err := config.SetPolicy(&p, r.Field+"="+r.Value); err != nil {
		return p, err
	}
	if p.Deadline > 0 && p.AttemptTimeout > p.Deadline {
		p.AttemptTimeout = p.Deadline
	}
	return p, p.Validate()
}

// percent is a share in words, such as 0.1 %.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 4, 64) + " %" }

// short is a time with three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// crowd returns the least m with P(X > m) <= 1e-6, where X is the number of attempts in progress: Poisson of that mean.
func crowd(mean float64) int {
	if mean > 500 {
		return int(math.Ceil(mean + 4.76*math.Sqrt(mean)))
	}
	term := math.Exp(-mean)
	sum, m := term, 0
	for ; sum < 1-1e-6 && m < 10_000; m++ {
		term *= mean / float64(m+1)
		sum += term
	}
	return m
}

// digits rounds a time up or down to two digits.
func digits(d time.Duration, up bool) time.Duration {
	if d <= 0 {
		return 0
	}
	unit := max(time.Duration(math.Pow(10, math.Floor(math.Log10(float64(d)))-1)), 1)
	down := d / unit * unit
	if up && down < d {
		return down + unit
	}
	return down
}
