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
	"github.com/lullgo/lull/internal/choice"
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

// unless notes why there is no value, if it is so. The first reason stays.
func (r *proposal) unless(so bool, why string, args ...any) {
	if so && r.Why == "" {
		r.Why = fmt.Sprintf(why, args...)
	}
}

// with returns the proposal with its values, unless there is a reason for none.
func (r proposal) with(values ...string) proposal {
	if r.Why == "" {
		r.Value, r.Looser = values[0], values[1:]
	}
	return r
}

// An amount is what most fields are: a time, or a number.
type amount interface{ ~int | ~int64 | ~float64 }

// about is a proposal without a value: what the policy in use sets, or otherwise has, and the interval that the data allows. Zero
// is none. What is not set is not outside: the simulation judges defaults.
func about[T amount](field string, set, otherwise, low, high T) proposal {
	high = choice.Either(high < low, 0, high) // the SLO cannot be met
	r := proposal{Field: field, InUse: text(set), Outside: set > 0 && (low > 0 && set < low || high > 0 && set > high)}
	if set == 0 {
		r.InUse = text(otherwise) + " (default)"
	}
	switch {
	case low > 0 && high > 0:
		r.Allowed = text(low) + " to " + text(high)
	case low > 0:
		r.Allowed = "at least " + text(low)
	case high > 0:
		r.Allowed = "at most " + text(high)
	}
	return r
}

// text is an amount as in a policy file.
func text[T amount](v T) string {
	d, isTime := any(v).(time.Duration)
	return choice.Either(v <= 0, "none", choice.Either(isTime, pretty.Duration(d), strconv.FormatFloat(float64(v), 'f', -1, 64)))
}

// propose returns a proposal for each field that tune knows, in the order in which they are tried.
func propose(f *facts, p lull.Policy, g goals) []proposal {
	return []proposal{
		f.attemptTimeout(p, g), f.deadline(p, g), f.attempts(p, g), f.base(p),
		f.pause("backoff.cap", p.Backoff.Cap, max(backoff.DefaultCap, p.Backoff.Base), max(p.Backoff.Base, backoff.DefaultBase)),
		f.pause("breaker.open_max", p.Breaker.OpenMax, max(breaker.DefaultOpenMax, 2*p.Breaker.OpenFor), max(p.Breaker.OpenFor, time.Second)),
		f.limit(p), f.stock(p), f.hedge(p, g),
	}
}

// exceeded returns the bounds (95 %) of the time that a share of the healthy attempts exceeds, with their data, or why not.
func (f *facts) exceeded(share float64) (low, high time.Duration, data, refused string) {
	low, high, ok := f.times.Above(share)
	wanted := scenario.Wanted(share)
	switch low, high = low+f.network, high+f.network; {
	case ok:
		data = fmt.Sprintf("%d healthy attempts: %s of them take longer than %v to %v (95 %%)", f.times.N, percent(share), digits(low, false), digits(high, true))
		return low, high, data, ""
	case f.times.N < wanted:
		refused = fmt.Sprintf("the world has the times of %d healthy attempts; for the time that %s of them exceed %d are wanted, %d more",
			f.times.N, percent(share), wanted, wanted-f.times.N)
	default:
		refused = fmt.Sprintf("the time that %s of the attempts exceed was not seen: %s", percent(share), f.learned.Asks(f.of("time")))
	}
	return 0, 0, "", refused
}

// quickParts is how much longer than a usual success an attempt timeout must be for the zero policy to repeat a timeout: more
// than four times (engine.TimeoutsWhenAnswered), and it knows the usual time to a quarter.
const quickParts = 5

func (f *facts) attemptTimeout(p lull.Policy, g goals) proposal {
	low, high, data, refused := f.exceeded(g.falseTimeouts)
	_, median, _, _ := f.exceeded(0.5)
	now := p.WithDefaults().AttemptTimeout
	r := about("attempt_timeout", p.AttemptTimeout, now, digits(low, false), g.slo)
	if p.AttemptTimeout == 0 && f.patience > 0 {
		now, r.InUse = f.patience, pretty.Duration(f.patience)+" (seen)"
	}
	value := max(digits(max(high, quickParts*median, f.seenP99), true), 100*time.Microsecond)
	r.Data = fmt.Sprintf("%s, half of them longer than %v", data, digits(median, true))
	r.Formula = "the upper bound of that quantile, and at least 5 × the median: below it the zero policy takes a timeout for a queue and does not repeat it"
	if f.seenP99 > high && f.seenP99 > quickParts*median {
		r.Formula += fmt.Sprintf("; here it is the p99 that was seen while all was well, with waits in line, %v", digits(f.seenP99, true))
	}
	r.Formula += ". If that is worse in some world, 2 or 4 × as much is tried"
	r.Price = fmt.Sprintf("up to %s of healthy attempts are cut off", percent(g.falseTimeouts))
	r.unless(refused != "", "%s", refused)
	r.unless(f.patience > 0 && high >= f.patience, "callers gave up after %v, so longer times were not seen", f.patience)
	r.unless(g.slo > 0 && value > g.slo, "%v is longer than the SLO of %v", value, g.slo)
	now = choice.Either(now > 0, now, math.MaxInt64)
	r.unless(now >= digits(low, false) && float64(value) > 0.8*float64(now), "%v is not much shorter than what is in use", value)
	values := []string{text(value)}
	for _, looser := range []time.Duration{2 * value, 4 * value} {
		if float64(looser) <= 0.8*float64(now) && (g.slo == 0 || looser <= g.slo) {
			values = append(values, text(looser))
		}
	}
	return r.with(values...)
}

const noSLO = "no SLO is given (--slo 800ms@99.9)"

func (f *facts) deadline(p lull.Policy, g goals) proposal {
	now, own := p.WithDefaults().Deadline, f.scenario.Fleets[f.fleet].Deadline
	r := about("deadline", p.Deadline, now, g.slo, 0)
	r.Data = fmt.Sprintf("the SLO: %s of the calls within %v", percent(g.target), g.slo)
	r.Formula = "the time of the SLO: what takes longer does not count. An attempt timeout is no longer than it"
	r.Price = "calls that would have succeeded later fail"
	r.unless(g.slo == 0, noSLO)
	r.unless(now == g.slo || own > 0 && own <= g.slo, "callers give up after that already")
	return r.with(text(g.slo))
}

func (f *facts) attempts(p lull.Policy, g goals) proposal {
	now, needed := p.WithDefaults().Attempts, 0
	if g.slo > 0 {
		needed = max(int(math.Ceil(math.Log(1-g.target)/math.Log(min(f.errors, 0.99)))), 2)
	}
	r := about("attempts", p.Attempts, now, needed, 0)
	r.Outside = r.Outside && p.Hedge.Attempts < 2
	r.Data = fmt.Sprintf("up to %s of the attempts fail while all is well (95 %%); the SLO leaves %s", percent(f.errors), percent(1-g.target))
	r.Formula = fmt.Sprintf("the least n with %.3g^n <= %.3g, and at least 2", f.errors, 1-g.target)
	r.Price = "each attempt more is a longer wait; the budget bounds what all of them cost"
	r.unless(g.slo == 0, noSLO)
	r.unless(needed > 10, "it would take %d attempts: the service does not allow this SLO", needed)
	r.unless(needed <= now, "%d are enough", needed)
	return r.with(text(needed))
}

func (f *facts) base(p lull.Policy) proposal {
	low, high, data, refused := f.exceeded(0.5)
	value := max(digits(high, true), 100*time.Microsecond) // the least that a policy may have
	r := about("backoff.base", p.Backoff.Base, backoff.DefaultBase, digits(low, false), f.lasted())
	r.Data = data
	r.Formula = "the healthy round trip: a retry does not come before the work of the attempt before it could have been done"
	r.Price = "a longer base is a later success after a short fault, a shorter one brings more retries in it"
	r.unless(p.Backoff.Kind != backoff.Exponential, "the schedule in use is %v", p.Backoff.Kind)
	r.unless(refused != "", "%s", refused)
	r.unless(near(value, cmp.Or(p.Backoff.Base, backoff.DefaultBase)), "%v is not far from what is in use", value)
	return r.with(text(value))
}

// near reports whether two times differ by less than a fifth.
func near(a, b time.Duration) bool { return math.Abs(math.Log(float64(a)/float64(b))) < 0.2 }

func (f *facts) pause(field string, set, otherwise, least time.Duration) proposal {
	now, value := cmp.Or(set, otherwise), max(digits(f.lasted()/10, true), least)
	r := about(field, set, otherwise, 0, f.lasted())
	r.Data = fmt.Sprintf("the incident lasted %v", f.lasted())
	r.Formula = "a tenth of it: a longer pause makes the recovery longer by more than that"
	r.Price = "shorter pauses are more attempts while nothing works"
	r.unless(f.lasted() == 0, "there is no incident in the data")
	r.unless(value >= now || near(value, now), "%v is not shorter than what is in use", value)
	return r.with(text(value))
}

func (f *facts) limit(p lull.Policy) proposal {
	each, mean := f.busiest/float64(f.processes()), f.times.Mean()+f.network
	open := f.asks("processes")
	peak := crowd(each * mean.Seconds())
	if f.busiest == 0 || f.times.N == 0 || open != "" {
		peak = 0
	}
	r := about("limit.in_flight", p.Limit.InFlight, 0, peak, 0)
	r.Data = fmt.Sprintf("%.3g calls/s in each of %d processes in the busiest moment, %v for each", each, f.processes(), digits(mean, true))
	r.Formula = fmt.Sprintf("Little's law: %.3g in progress on average, %d in one moment of a million, and as many again for slower times; 2 or 4 × as many if that is worse in some world", each*mean.Seconds(), peak)
	r.Price = "calls beyond it fail at once"
	r.unless(f.busiest == 0 || f.times.N == 0, "the rate of the calls or their times are not known")
	r.unless(open != "", "the number of processes is not known: %s", open)
	r.unless(p.Limit.InFlight > 0 && !r.Outside && p.Limit.InFlight <= 4*peak, "the limit in use is near enough")
	return r.with(text(2*peak), text(4*peak), text(8*peak))
}

func (f *facts) stock(p lull.Policy) proposal {
	now, open := cmp.Or(p.Budget.Stock, budget.DefaultStock), f.asks("processes")
	spare := max(f.capacity-f.load, 0)
	most := max(math.Floor(spare/float64(f.processes())), 1)
	unknown := f.capacity == 0 || f.load == 0
	r := about("budget.stock", p.Budget.Stock, now, 0, choice.Either(unknown || open != "", 0, most))
	r.Data = fmt.Sprintf("the service can do at least %.4g attempts/s and gets up to %.4g; %d processes", f.capacity, f.load, f.processes())
	r.Formula = fmt.Sprintf("the stocks of all processes are no more than the service can do beside its load in a second: %.4g / %d, and at least 1", spare, f.processes())
	r.Price = "a process that calls seldom has fewer retries"
	r.unless(p.Budget.Unlimited || p.Budget.Window > 0, "the budget in use has no stock")
	r.unless(unknown, "the capacity or the load is not known. %s", f.learned.Asks(f.of("workers")))
	r.unless(open != "", "the number of processes is not known: %s", open)
	r.unless(most >= now, "all stocks together are less than the spare capacity")
	return r.with(text(most))
}

func (f *facts) hedge(p lull.Policy, g goals) proposal {
	low, _, data, refused := f.exceeded(g.hedgeLoad)
	open, on := f.asks("not_idempotent"), p.Hedge.Attempts > 1
	r := about("hedge", p.Hedge.Delay, 0, digits(low, false), 0)
	r.InUse = choice.Either(on, fmt.Sprintf("%d attempts, delay %v", p.Hedge.Attempts, p.Hedge.Delay), "off (default)") // 0s: learned
	r.Data = data
	r.Formula = fmt.Sprintf("a second attempt after the percentile that leaves %s; a policy hedges or retries, not both", percent(g.hedgeLoad))
	r.Price = fmt.Sprintf("%s more attempts while all is well, and no other retries. The calls must be safe to run twice", percent(g.hedgeLoad))
	r.unless(f.scenario.Fleets[f.fleet].NotIdempotent, "the calls may not run twice")
	r.unless(open != "", "it is not known whether the calls may run twice: %s", open)
	r.unless(refused != "", "%s", refused)
	r.unless(on, "it is on already")
	return r.with(fmt.Sprintf("{attempts: 2, percentile: %v}", math.Round((1-g.hedgeLoad)*1e6)/1e6))
}

// in returns p with the value of r, and what goes with it.
func (r *proposal) in(p lull.Policy) (lull.Policy, error) {
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

// crowd returns how many attempts are in progress in one moment of a million, if they are mean on average: the quantile of
// Poisson's distribution by the expansion of Cornish and Fisher (1938), which is up to two too many.
func crowd(mean float64) int {
	const z = 4.7534
	return int(math.Ceil(mean + z*math.Sqrt(mean) + (z*z-1)/6))
}

// digits rounds a time up or down to two digits.
func digits(d time.Duration, up bool) time.Duration {
	unit := max(time.Duration(math.Pow(10, math.Floor(math.Log10(float64(max(d, 1))))-1)), 1)
	down := d / unit * unit
	return choice.Either(up && down < d, down+unit, down)
}
