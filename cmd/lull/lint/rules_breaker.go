package lint

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// slowCallUnseen reports a share of slow calls that cannot be reached, where another rule of the breaker can.
func slowCallUnseen(p *pass, d *dependency) {
	c := d.Policy.Breaker
	if c.Off || c.MetricsOnly || !(c.SlowRate > 0) || c.Consecutive < 0 && !(c.FailureRate > 0) {
		return
	}
	longest, field, what := d.Policy.WorstCase(), "deadline", "a call"
	if d.in.set != nil { // the breakers of others are below the retries
		longest, field, what = attemptTimeout(d.Policy), "attempt_timeout", "an attempt"
		if !d.in.set.Says(d.Name, "breaker.slow_call") || !d.hasField("attempt_timeout") {
			return
		}
	}
	if longest == 0 || c.SlowCall < longest || d.in.set == nil && c.SlowCall == longest {
		return
	}
	p.report(d.in, d.at("breaker.slow_call"),
		fmt.Sprintf("the circuit breaker of %s cannot see a slow call: slow is more than %s, and %s takes no longer than %s", d.Name, pretty(c.SlowCall), what, pretty(longest)),
		[]Step{
			{"slow is what takes longer than (breaker.slow_call)", pretty(c.SlowCall), ""},
			{fmt.Sprintf("the longest that %s can take (%s)", what, field), pretty(longest), ""},
		},
		d.write("a call is slow well before it is given up", "breaker.slow_call", pretty(max(down(longest/2), time.Millisecond))))
}

func breakerCannotTrip(p *pass, d *dependency) {
	c := d.Policy.Breaker
	worst := d.Policy.WorstCase()
	minCalls := cmp.Or(c.MinCalls, breaker.DefaultMinCalls)
	window := cmp.Or(c.Window, breaker.DefaultWindow)
	report := func(s Severity, field, message string, steps []Step, fix Fix) {
		p.reportAs(s, d.in, d.at(field), message, steps, fix)
	}
	switch {
	case c.Off:
		report(Warning, "breaker.off", fmt.Sprintf("the circuit breaker of %s is off: calls go on while there is nothing but failures", d.Name), nil,
			d.write("or leave breaker out: the default opens after 3 failures in a row that last 2s", "breaker.off", "false"))
		return
	case c.MetricsOnly:
		report(Note, "breaker.metrics_only", fmt.Sprintf("the circuit breaker of %s only counts: it refuses no call", d.Name), nil,
			Fix{Text: "has it been watched for long enough? Then " + d.write("", "breaker.metrics_only", "false").Text})
		return
	case c.Consecutive >= 0:
		return
	}
	fix := d.write("then it opens after 3 failures in a row that last 2s", "breaker.consecutive", "0")
	never := fmt.Sprintf("the circuit breaker of %s can never open: ", d.Name)
	most := d.Rate * window.Seconds()
	switch {
	case !(c.FailureRate > 0) && !(c.SlowRate > 0):
		report(Warning, "breaker.consecutive", never+"all its rules are off",
			[]Step{
				{"failures in a row that open it (breaker.consecutive)", "none", ""},
				{"share of failures (breaker.failure_rate)", "none", ""},
				{"share of slow calls (breaker.slow_rate)", "none", ""},
			}, fix)
	case d.Rate > 0 && most < float64(minCalls):
		report(Warning, "breaker.min_calls", fmt.Sprintf("%sa process makes %s calls in its window of %s, and it needs %d", never, number(most), pretty(window), minCalls),
			[]Step{
				{"calls in a window: " + number(d.Rate) + " a second for " + pretty(window), number(most), ""},
				{"of which a rate needs (breaker.min_calls)", strconv.Itoa(minCalls), ""},
			}, fix)
	case !(c.FailureRate > 0) && c.SlowCall >= worst:
		seen := []string{"breaker.consecutive", "0"}
		if c.SlowCall > worst { // and slow calls are seen
			seen = append(seen, "breaker.slow_call", pretty(max(down(worst/2), time.Millisecond)))
		}
		report(Warning, "breaker.slow_call", fmt.Sprintf("%sno call takes longer than %s, and slow is more than %s", never, pretty(worst), pretty(c.SlowCall)),
			[]Step{
				{"slow is what takes longer than", pretty(c.SlowCall), ""},
				{"the longest that a call can take", pretty(worst), ""},
			}, d.write("then it opens after 3 failures in a row that last 2s", seen...))
	}
}

func breakerTripsOnOne(p *pass, d *dependency) {
	c := d.Policy.Breaker
	if c.Off || c.MetricsOnly {
		return
	}
	r, ok := tripsOnShare(c)
	if c.Consecutive == 1 && c.ConsecutiveFor < 0 {
		if d.in.set != nil && d.in.set.Facts(d.Name).Ejected > 0 {
			p.ejectsOnOne(d, d.in.set.Facts(d.Name).Ejected, r.better)
			return
		}
		p.report(d.in, d.at("breaker.consecutive"),
			fmt.Sprintf("one failed call to %s opens its circuit breaker", d.Name),
			[]Step{
				{"failures in a row that open it (breaker.consecutive)", "1", ""},
				{"and for how long there must be nothing else (breaker.consecutive_for)", "no time", ""},
			},
			d.write("then it takes 3 failures in a row that last 2s", append([]string{"breaker.consecutive", "0", "breaker.consecutive_for", "0"}, r.better...)...))
		return
	}
	if ok {
		p.report(d.in, d.at(r.at),
			fmt.Sprintf("one %s call to %s opens its circuit breaker: it is %s of the %s that are enough to judge by", r.what, d.Name, roughly(1/float64(r.minCalls)), term.Counted(r.minCalls, "call")),
			[]Step{
				{"calls that are enough (breaker.min_calls)", strconv.Itoa(r.minCalls), ""},
				{r.what + " calls that open it: " + percent(r.rate) + " of them", "× " + number(r.rate), number(r.rate * float64(r.minCalls))},
			},
			d.write("a share means something only over enough calls", r.better...))
	}
}

// mostEjected is the share of endpoints, in per cent, of which single failures may eject without a warning.
const mostEjected = 50

// ejectsOnOne reports ejection after one failure, of up to most per cent of the endpoints. rates are fields of rules that it meets, too.
func (p *pass) ejectsOnOne(d *dependency, most int, rates []string) {
	severity, rest := Warning, fmt.Sprintf("and up to %d %% of them may be ejected at a time (maxEjectionPercent)", most)
	switch {
	case most >= 100:
		rest = "and all of them may be ejected at a time (maxEjectionPercent: 100)"
	case most < mostEjected:
		severity = Note
	}
	if d.in.set.Format(d.Name) == convert.Envoy {
		rest = strings.ReplaceAll(rest, "maxEjectionPercent", "max_ejection_percent")
	}
	p.reportAs(severity, d.in, d.at("breaker.consecutive"),
		fmt.Sprintf("one failed request ejects an endpoint of %s, %s", d.Name, rest),
		[]Step{
			{"failures in a row that eject an endpoint (breaker.consecutive)", "1", ""},
			{"endpoints that may be ejected at a time, of 100", strconv.Itoa(most), ""},
		},
		d.write("", append([]string{"breaker.consecutive", "5"}, rates...)...))
}

// A shareRule is a rule of a breaker about a share of calls that one call meets.
type shareRule struct {
	at, what string // the field to be changed first, and what such calls are
	rate     float64
	minCalls int
	better   []string // the fields with which it takes more calls
}

func tripsOnShare(c breaker.Config) (shareRule, bool) {
	minCalls := cmp.Or(c.MinCalls, breaker.DefaultMinCalls)
	for _, r := range []shareRule{{at: "breaker.failure_rate", what: "failed", rate: c.FailureRate}, {at: "breaker.slow_rate", what: "slow", rate: c.SlowRate}} {
		if !(r.rate > 0) || r.rate*float64(minCalls) > 1+1e-9 {
			continue
		}
		r.minCalls = minCalls
		if r.rate >= 0.1 {
			r.at, r.better = "breaker.min_calls", []string{"breaker.min_calls", strconv.Itoa(max(breaker.DefaultMinCalls, int(10/r.rate+0.5)))} // ten of them
			return r, true
		}
		r.better = []string{r.at, "50%"}
		if minCalls < breaker.DefaultMinCalls {
			r.better = append(r.better, "breaker.min_calls", strconv.Itoa(breaker.DefaultMinCalls))
		}
		return r, true
	}
	return shareRule{}, false
}
