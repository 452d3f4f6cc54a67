package lint

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
)

// How much of a wait must be random, and below which length a wait does not matter.
const (
	leastSpread = 0.1
	leastWait   = time.Millisecond
	mostAtCap   = 0.5
)

func (d *dependency) retries() bool { return d.attempts() > 1 && !d.hedged() }

func backoffMissing(p *pass, d *dependency) {
	s := d.Policy.Backoff
	if !d.retries() || s.FastFirst && d.attempts() == 2 {
		return // exactly one quick retry was asked for
	}
	if s.Floor > 0 && s.Floor < leastWait {
		p.reportAs(Note, d.in, d.at("backoff.floor"),
			fmt.Sprintf("the floor of the waits for %s is %s: timers may take a millisecond, however short the wait", d.Name, pretty(s.Floor)),
			nil, d.write("or leave it out: it means the same", "backoff.floor", "0"))
	}
	first := choice.Either(s.FastFirst, 2, 1)
	if s.Max(first) >= leastWait {
		return
	}
	var l ledger
	l.add(s.Max(first), "the longest wait before retry %d (backoff.kind: %s)", first, s.Kind)
	fields := []string{"backoff.base", pretty(backoff.DefaultBase)}
	if s.Kind != backoff.Exponential {
		fields = append([]string{"backoff.kind", "exponential"}, fields...)
	}
	if s.Cap > 0 && s.Cap < backoff.DefaultBase {
		fields = append(fields, "backoff.cap", "0")
	}
	p.report(d.in, d.at("backoff.kind"),
		fmt.Sprintf("failed calls to %s are retried at once: %s without a wait", d.Name, term.Counted(d.attempts(), "attempt")),
		l.steps, d.write("or leave backoff out: it means the same", fields...))
}

func jitterMissing(p *pass, d *dependency) {
	s := d.Policy.Backoff
	if !d.retries() || s.Jitter != backoff.None {
		return
	}
	var l ledger
	for n := 1; n < d.attempts(); n++ {
		if hi := s.Max(n); hi >= leastWait && len(l.steps) < shown {
			l.steps = append(l.steps, Step{fmt.Sprintf("wait %d, for every call that failed", n), "exactly " + pretty(hi), ""})
		}
	}
	if len(l.steps) == 0 {
		return // there is no wait; another rule reports that
	}
	fields := []string{"backoff.jitter", "full"}
	s.Jitter = backoff.Full
	if s.Validate() != nil { // the floor leaves no room for jitter
		fields = append(fields, "backoff.floor", "0")
	}
	p.report(d.in, d.at("backoff.jitter"),
		fmt.Sprintf("calls to %s that failed together are retried together: their waits have no jitter", d.Name),
		l.steps, d.write("or leave it out: it means the same", fields...))
}

func jitterUseless(p *pass, d *dependency) {
	s := d.Policy.Backoff
	if !d.retries() || s.Jitter == backoff.None {
		return
	}
	first := true
	for n := 1; n < d.attempts(); n++ {
		lo, hi := shortest(s, n), s.Max(n)
		if hi < leastWait {
			continue
		}
		if first && s.Jitter == backoff.Decorrelated && p.mostlyCapped(d, lo, hi) {
			return
		}
		first = false
		if float64(hi-lo) >= leastSpread*float64(hi) {
			continue
		}
		p.report(d.in, d.at("backoff.floor"),
			fmt.Sprintf("the jitter of calls to %s spreads %s of a wait of %s: the retries come together all the same", d.Name, pretty(hi-lo), pretty(hi)),
			[]Step{
				{What: fmt.Sprintf("longest wait %d", n), Value: pretty(hi)},
				{What: fmt.Sprintf("shortest wait %d", n), Value: pretty(lo)},
				{What: "left to chance", Value: pretty(hi - lo), Total: roughly(float64(hi-lo) / float64(hi))},
			},
			d.write("then jitter has the whole wait", "backoff.floor", "0"))
		return
	}
}

func (p *pass) mostlyCapped(d *dependency, lo, hi time.Duration) bool {
	top := times(lo, 3)
	if top <= lo || hi >= top {
		return false
	}
	share := float64(top-hi) / float64(top-lo)
	if share <= mostAtCap {
		return false
	}
	better := d.Policy
	better.Backoff.Cap = max(up(times(lo, 30)), lo)
	fix := d.write("or take jitter: full, which needs no such care", "backoff.cap", pretty(better.Backoff.Cap))
	if t := newTimeline(better); deadline(better) > 0 && t.total() > deadline(better) {
		fix = d.write("with a longer cap not all attempts would fit before the deadline", "backoff.jitter", "full")
	}
	p.report(d.in, d.at("backoff.cap"),
		fmt.Sprintf("%s of the first waits for %s end at the cap of %s, all at the same time", roughly(share), d.Name, pretty(hi)),
		[]Step{
			{What: "drawn from base to 3 × base", Value: pretty(lo) + " to " + pretty(top)},
			{What: "of which above the cap", Value: pretty(hi) + " to " + pretty(top), Total: roughly(share)},
		},
		fix)
	return true
}

func capBelowBase(p *pass, d *dependency) {
	s := d.Policy.Backoff
	if !d.retries() || s.Cap <= 0 || s.Kind == backoff.Immediate || s.Kind == backoff.Ethernet {
		return
	}
	if s.Base == 0 && s.Cap < backoff.DefaultBase && s.Kind != backoff.Constant {
		p.report(d.in, d.at("backoff.cap"),
			fmt.Sprintf("the cap of %s is below the base of the waits for %s, which is %s where none is written: every wait is below %s",
				pretty(s.Cap), d.Name, pretty(backoff.DefaultBase), pretty(s.Cap)),
			[]Step{
				{What: "backoff.base, the default", Value: pretty(backoff.DefaultBase)},
				{What: "backoff.cap", Value: pretty(s.Cap)},
			},
			d.write("the cap has a meaning where waits grow towards it", "backoff.base", pretty(s.Cap), "backoff.cap", pretty(max(times(s.Cap, 20), engine.DefaultRateLimitedBase))))
		return
	}
	base := d.Policy.WithDefaults().RateLimitedBase
	if s.Cap < base {
		p.reportAs(Note, d.in, d.at("backoff.cap"),
			fmt.Sprintf("the cap of %s does not hold for calls to %s that were rate-limited: their waits begin at rate_limited_base, %s", pretty(s.Cap), d.Name, pretty(base)),
			[]Step{
				{What: "rate_limited_base", Value: pretty(base)},
				{What: "backoff.cap", Value: pretty(s.Cap)},
			},
			d.write("or rate_limited_base: "+pretty(s.Cap)+", if what refuses calls for being too many can bear that", "backoff.cap", pretty(base)))
	}
}

// mostRatio is the largest share of retries that is accepted without a finding.
const mostRatio = 0.2

func budgetMissing(p *pass, d *dependency) {
	if !d.Policy.Budget.Unlimited || !d.retries() {
		return
	}
	n := d.attempts()
	steps := []Step{
		{"calls, while it is down", "1000", "1000"},
		{"their retries, each as often as attempts say", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)},
	}
	if b := d.Policy.Budget; b.Window == 0 {
		stock := min(cmp.Or(b.Stock, budget.DefaultStock), float64(1000*(n-1)))
		steps = append(steps, Step{
			fmt.Sprintf("with a budget of %s of the calls that succeed: none does, and beside what those before have earned there is only what is in stock", percent(ratio(b))),
			"+ " + number(stock), number(1000 + stock),
		})
	}
	p.report(d.in, d.at("budget.unlimited"),
		fmt.Sprintf("the retries of calls to %s have no budget: when it is down it gets up to %d attempts for each call", d.Name, n),
		steps, d.write("or leave budget out: it means the same", "budget.unlimited", "false", "budget.ratio", percent(ratio(d.Policy.Budget))))
}

// ratio is the ratio of a budget, or its default, and not more than is sound.
func ratio(c budget.Config) float64 {
	if r := cmp.Or(c.Ratio, budget.DefaultRatio); r <= mostRatio {
		return r
	}
	return budget.DefaultRatio
}

func budgetTooLarge(p *pass, d *dependency) {
	c := d.Policy.Budget
	if c.Unlimited || d.attempts() < 2 {
		return
	}
	share := cmp.Or(c.Ratio, budget.DefaultRatio)
	steps := []Step{
		{"calls that earn", "1000", "1000"},
		{"the retries that they pay for, " + percent(share), "+ " + number(1000*share), number(1000 + 1000*share)},
	}
	field := "budget.ratio"
	whole := share
	fields := []string{"budget.ratio", percent(budget.DefaultRatio)}
	if c.Floor > 0 && d.Rate > 0 {
		extra := c.Floor / d.Rate
		whole += extra
		steps = append(steps, Step{fmt.Sprintf("the floor, %s of %s calls a second", number(c.Floor), number(d.Rate)), "+ " + number(1000*extra), number(1000 + 1000*whole)})
		if share <= mostRatio {
			field, fields = "budget.floor", []string{"budget.floor", "0"}
		} else {
			fields = append(fields, "budget.floor", "0")
		}
	}
	if whole <= mostRatio+1e-9 {
		return
	}
	steps = append(steps, Step{What: "with the most that is sound, " + percent(mostRatio), Total: number(1000 + 1000*mostRatio)})
	p.report(d.in, d.at(field),
		fmt.Sprintf("the budget for %s lets retries add %s to the calls, more than %s", d.Name, percent(whole), percent(mostRatio)),
		steps, d.write("20% at the most", fields...))
}

func hedgeWithoutBudget(p *pass, d *dependency) {
	h := d.Policy.Hedge
	if !d.hedged() || !d.Policy.Budget.Unlimited {
		return
	}
	n := h.Attempts
	fields := []string{"budget.unlimited", "false", "budget.ratio", percent(ratio(d.Policy.Budget))}
	steps := []Step{{"calls, all of them late", "1000", "1000"}}
	message := "%s bounds the hedges of calls to %s: when it is slow for all, it gets up to %d attempts for each call"
	bound := "nothing"
	if h.Share < 0 {
		if h.InFlight >= 0 {
			bound = fmt.Sprintf("only hedge.in_flight, %d at a time,", cmp.Or(h.InFlight, hedge.DefaultInFlight))
		}
		steps = append(steps, Step{"their hedges", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)})
		if h.Delay == hedge.AtOnce { // then every call is late
			fields = append(fields, "hedge.delay", "0")
		}
		fields = append(fields, "hedge.share", "0")
	} else {
		bound, message = "no budget", "%s bounds what follows a failure of a hedged call to %s: when it is down, it gets up to %d attempts for each call"
		share := cmp.Or(h.Share, hedge.DefaultShare)
		steps = []Step{
			{"calls, while it is down", "1000", "1000"},
			{"attempts that follow a failure at once", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)},
			{What: "hedge.share, " + percent(share) + ", bounds only what is sent beside a slow attempt"},
		}
	}
	p.report(d.in, d.at("budget.unlimited"), fmt.Sprintf(message, bound, d.Name, n), steps,
		d.write("or leave budget out: it means the same", fields...))
}
