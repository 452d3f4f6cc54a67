package lint

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

func eachPolicy(check func(*pass, *dependency)) func(*pass) {
	return func(p *pass) {
		for _, p.about = range p.dependencies {
			check(p, p.about)
		}
		p.about = nil
	}
}

func with(p lull.Policy, fields []string) (lull.Policy, error) {
	for i := 0; i+1 < len(fields); i += 2 {
		if err := config.SetPolicy(&p, fields[i]+"="+fields[i+1]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// write is a fix that consists of changes to fields of d; rest explains it.
func (d *dependency) write(rest string, fields ...string) Fix {
	if d.in.set != nil {
		return d.writeForOtherSystem(fields)
	}
	var f Fix
	for i := 0; i+1 < len(fields); i += 2 {
		path, value := d.at(fields[i]), fields[i+1]
		f.Changes = append(f.Changes, Change{Path: path, Value: value})
		switch {
		case i == 0:
			f.Text = "write "
		case i+2 >= len(fields):
			f.Text += " and "
		default:
			f.Text += ", "
		}
		f.Text += fields[i] + ": " + value
	}
	f.Text += " in " + d.path
	if rest != "" {
		f.Text += "; " + rest
	}
	return f
}

func noTimeLimit(p *pass, d *dependency) {
	if d.Policy.AttemptTimeout != lull.NoTimeout || d.Policy.Deadline != lull.NoTimeout {
		return
	}
	end := engine.DefaultDeadline
	if d.hedged() { // there must be time for a hedge
		end = max(end, up(times(d.Policy.Hedge.Delay, 1+d.attempts())))
	}
	fields := []string{"attempt_timeout", pretty(engine.DefaultAttemptTimeout), "deadline", pretty(end)}
	if d.in.set != nil { // one of the two is enough, and with both not all attempts may fit
		first, second := fields[:2], fields[2:]
		if d.attempts() < 2 {
			first, second = second, first
		}
		if fields = first; d.writeForOtherSystem(first).unable {
			fields = second
		}
	}
	p.report(d.in, d.at("attempt_timeout"),
		fmt.Sprintf("nothing ends a call to %s: it has no deadline, and its attempts no timeout", d.Name),
		newTimeline(d.Policy).explain(),
		d.write("or say which times you mean: with one of the two a call ends", fields...))
}

func attemptTimeoutMissing(p *pass, d *dependency) {
	end, n := deadline(d.Policy), d.attempts()
	if d.Policy.AttemptTimeout != lull.NoTimeout || end == 0 || !d.retries() || d.Policy.Timeouts == lull.TimeoutsNever {
		return
	}
	if d.in.set != nil && d.writeForOtherSystem([]string{"attempt_timeout", pretty(end)}).unable {
		return // its system has no such time
	}
	var l ledger
	others := choice.Either(d.endless(), "no other can begin", attemptsFrom(2, n)+" cannot begin")
	l.add(end, "attempt 1, until the deadline")
	l.note("no time is left: %s", others)
	t := newTimeline(d.Policy)
	fields := []string{}
	if n > fewAttempts {
		if n = fewAttempts; !d.endless() {
			fields = d.attemptFields(n)
		}
	}
	each := t.each(n, end)
	fix := d.write(fmt.Sprintf("then %d attempts and the waits between fit before the deadline", n), append(fields, "attempt_timeout", pretty(each))...)
	if each < time.Millisecond {
		fix = d.write("there is no time for another", d.attemptFields(1)...)
	}
	message := fmt.Sprintf("one attempt at %s that hangs takes all of the deadline of %s: %s", d.Name, pretty(end), others)
	if d.in.set != nil {
		if long := d.in.set.Facts(d.Name).LongAttempt; long > 0 {
			message = fmt.Sprintf("the timeout of %s for an attempt at %s has no effect, since the call ends after %s: %s after one that hangs", pretty(long), d.Name, pretty(end), others)
		}
	}
	p.report(d.in, d.at("attempt_timeout"), message, l.steps, fix)
}

// fewAttempts is the number of attempts for which there should be time, if the file gives none.
const fewAttempts = 3

func shortest(s backoff.Schedule, retry int) time.Duration {
	return s.Delay(retry, 0, func() uint64 { return 0 })
}

func attemptNeverMade(p *pass, d *dependency) {
	end := deadline(d.Policy)
	switch {
	case d.hedged():
		p.neverHedged(d)
		return
	case end == 0 || d.Policy.AttemptTimeout == lull.NoTimeout || d.attempts() < 2 || p.neverAtAll(d, end):
		return
	}
	t := newTimeline(d.Policy)
	begun := t.starts(end)
	if begun >= t.attempts || (d.Policy.Attempts == 0 || d.endless()) && begun > 1 {
		return
	}
	var l ledger
	t.attemptByAttempt(&l, begun)
	next := t.begins(begun + 1)
	l.add(next-l.sum, "the wait before attempt %d", begun+1)
	l.note("attempt %d would begin after %s, and the deadline is %s", begun+1, pretty(next), pretty(end))
	rest := ""
	if t.total() < longest {
		rest = fmt.Sprintf("or give it time: deadline: %s, if its callers can wait so long", pretty(up(t.total())))
	}
	need, _ := d.least(t)
	fields := d.attemptFields(t.useful(end, need))
	if t.useful(end, need) < 2 {
		fields = d.fitting(t, end)
	}
	p.report(d.in, d.at(d.attemptsField()),
		fmt.Sprintf("when attempts at %s take as long as they may, and waits are the longest, %s cannot happen: only %d of %d begin before the deadline of %s",
			d.Name, attemptsFrom(begun+1, t.attempts), begun, t.attempts, pretty(end)),
		l.steps, d.orLonger(d.write(rest, fields...), t))
}

// orLonger adds to a fix for the file of another system that the call may take longer instead.
func (d *dependency) orLonger(fix Fix, t timeline) Fix {
	if d.in.set == nil || t.total() >= longest {
		return fix
	}
	if more := d.writeForOtherSystem([]string{"deadline", pretty(up(t.total()))}); !more.unable && !fix.unable {
		fix.Text += "; or, if its callers can wait so long, " + more.Text
	}
	return fix
}

const longest = 1000 * time.Hour

func (p *pass) neverAtAll(d *dependency, end time.Duration) bool {
	n, retry := choice.Either(d.endless(), 2, d.attempts()), 1
	for sum := time.Duration(0); retry < n; retry++ {
		if sum = saturating.Add(sum, shortest(d.Policy.Backoff, retry)); sum >= end {
			break
		}
	}
	if retry == n {
		return false
	}
	var l ledger
	for i := 1; i <= retry; i++ {
		l.add(shortest(d.Policy.Backoff, i), "the shortest wait before attempt %d", i+1)
	}
	l.note("attempt %d would begin after %s, and the deadline is %s", retry+1, pretty(l.sum), pretty(end))
	p.report(d.in, d.at("attempts"),
		fmt.Sprintf("%s at %s cannot happen, even if those before fail at once: the shortest waits cross the deadline of %s",
			attemptsFrom(retry+1, n), d.Name, pretty(end)),
		compact(l.steps), d.write("or shorten the waits (backoff.base, backoff.cap)", d.fitting(newTimeline(d.Policy), end)...))
	return true
}

// neverHedged reports hedges that are not sent before the attempt that they should accompany is over.
func (p *pass) neverHedged(d *dependency) {
	h := d.Policy.Hedge
	field, delay := "hedge.delay", h.Delay
	if h.Delay == 0 {
		field, delay = "hedge.min_delay", h.MinDelay
	}
	end, ends := patience(d.Policy)
	if end == 0 || delay < end {
		return
	}
	p.report(d.in, d.at(field),
		fmt.Sprintf("no hedge is ever sent beside an attempt at %s: it would be after %s, and the attempt is over after %s", d.Name, pretty(delay), pretty(end)),
		[]Step{{field, pretty(delay), ""}, {ends, pretty(end), ""}},
		d.write("then the delay is learned, as the 95th percentile of recent latencies", field, "0"))
}

// fitting are the fields with which all attempts fit into limit: fewer attempts or, if no retry would be left, shorter ones.
func (d *dependency) fitting(t timeline, limit time.Duration) []string {
	if n := t.fits(limit); n >= min(2, t.attempts) {
		return d.attemptFields(n)
	}
	for n := min(2, t.attempts); n > 1; n-- {
		each := t.each(n, limit)
		if p99, _, _ := d.p99s(); each >= max(p99, time.Millisecond) {
			if n == t.attempts {
				return []string{"attempt_timeout", pretty(each)}
			}
			return append(d.attemptFields(n), "attempt_timeout", pretty(each))
		}
	}
	fields := d.attemptFields(1)
	if t.attempt() > limit {
		fields = append(fields, "attempt_timeout", pretty(limit))
	}
	return fields
}

func compact(steps []Step) []Step {
	if len(steps) <= 2*shown {
		return steps
	}
	left := len(steps) - 2*shown + 1
	out := append([]Step(nil), steps[:shown]...)
	out = append(out, Step{What: fmt.Sprintf("%d more lines", left), Total: steps[shown+left-1].Total})
	return append(out, steps[shown+left:]...)
}

func attemptsFrom(first, last int) string {
	switch last {
	case first:
		return "attempt " + strconv.Itoa(first)
	case first + 1:
		return fmt.Sprintf("attempts %d and %d", first, last)
	}
	return fmt.Sprintf("attempts %d to %d", first, last)
}

func worstCaseOverDeadline(p *pass, d *dependency) {
	end := deadline(d.Policy)
	t := newTimeline(d.Policy)
	if end == 0 || d.Policy.AttemptTimeout == lull.NoTimeout || !d.retries() || t.starts(end) < t.attempts || t.total() <= end || t.begins(t.attempts) >= end {
		return
	}
	left := end - t.begins(t.attempts)
	need, of := d.least(t)
	if left >= need {
		return
	}
	var l ledger
	t.attemptByAttempt(&l, t.attempts)
	t.capNotReached(&l)
	l.cut(end, "the deadline ends the call")
	value := up(t.total())
	if value >= longest {
		value = end
	}
	fix := d.write(fmt.Sprintf("or drop the last attempt: %s: %d", d.attemptsField(), t.attempts-1), "deadline", pretty(value))
	p.report(d.in, d.at("deadline"),
		fmt.Sprintf("the worst case of a call to %s is %s and its deadline %s: attempt %d is left with %s, less than %s",
			d.Name, pretty(t.total()), pretty(end), t.attempts, pretty(left), of),
		l.steps, fix)
}

// least is the shortest useful time of an attempt, and the reason.
func (d *dependency) least(t timeline) (need time.Duration, of string) {
	if p99, _, _ := d.p99s(); p99 > 0 && p99 <= t.attempt() {
		return p99, "the p99 of " + pretty(p99)
	}
	return t.attempt()/2 + t.attempt()%2, "half of its " + pretty(t.attempt())
}

func attemptTimeoutBelowP99(p *pass, d *dependency) {
	limit, field := patience(d.Policy)
	p99, _, operation := d.p99s()
	if limit == 0 || p99 <= limit {
		return
	}
	what := d.Name
	if operation != "" {
		what += "'s " + operation
	}
	fix := p.longEnough(d, p99)
	p.report(d.in, d.at(field),
		fmt.Sprintf("attempts at %s are given up after %s, and 1 in 100 takes %s or longer when all is well", what, pretty(limit), pretty(p99)),
		[]Step{
			{What: "p99 of " + what, Value: pretty(p99)},
			{What: field, Value: pretty(limit)},
			{What: "missing", Value: pretty(p99 - limit)},
		},
		fix)
}

// longEnough gives attempts at d the time for their p99, or twice that if there is room.
func (p *pass) longEnough(d *dependency, p99 time.Duration) Fix {
	const rest = "twice the p99 will do until its p99.9 is measured"
	better := func(attempt time.Duration) *plan {
		pl := p.plan()
		policy := d.Policy
		policy.AttemptTimeout = attempt
		t := newTimeline(policy)
		if end := deadline(policy); end > 0 && t.total() > end {
			if n := t.fits(end); n >= min(2, t.attempts) {
				policy, _ = with(policy, d.attemptFields(n)) // such a number is always valid
			} else {
				policy.Deadline = up(t.total())
			}
		}
		pl.change(d, policy)
		return pl
	}
	twice := better(up(times(p99, 2)))
	promises := twice.settle()
	if promises.Text == "" {
		return twice.fix(rest, promises)
	}
	if once := better(up(p99 + p99/10)); once.settle().Text == "" {
		return once.fix("more does not fit into what its callers promise", Fix{})
	}
	return twice.fix(rest, promises)
}
