package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Dapr's targets name its policies. Its retries are those of cenkalti/backoff, its breaker is gobreaker, around each attempt.

const daprVersion = "dapr.io/v1alpha1"

// What Dapr does where nothing is said, and cannot be told otherwise.
const (
	daprConstant   = 5 * time.Second
	daprBase       = 500 * time.Millisecond
	daprFactor     = 1.5
	daprLongest    = time.Minute
	daprElapsed    = 15 * time.Minute
	daprOpen       = time.Minute
	daprFailures   = 6 // consecutiveFailures > 5
	allowedGo      = "a duration such as 200ms, 15s or 1m30s"
	daprOwnRetries = "DaprBuiltIn"
)

// targetKinds are in the order of reading. prefix is of the dependencies' names, and levels are parts of the names of default policies.
var targetKinds = []struct {
	field, prefix string
	levels        []string
}{
	{"apps", "", []string{"App", ""}},
	{"actors", "actor/", []string{"Actor", ""}},
	{"components", "component/", []string{"ComponentOutbound", "Component", ""}},
}

const (
	inbound       = "/inbound"
	defaultTarget = "default" // what the dependency is called that stands for targets that are not listed
)

// A daprReader has the policies of all documents, by field and name: targets may name those of another document.
type daprReader struct {
	r     *reading
	parts map[string]map[string]*daprPart
	order []*daprPart
}

type daprPart struct {
	d     *document
	path  string
	node  *tree.Node
	used  bool
	wait  time.Duration // of a timeout
	retry *daprRetry
	opens *breaker.Config
}

type daprRetry struct {
	attempts int
	waits    backoff.Schedule
	deadline time.Duration
	matching *failures // nil: everything is retried
	at       string    // the path of matching
}

func (r *reading) dapr(docs []*document) {
	all := &daprReader{r: r, parts: map[string]map[string]*daprPart{"timeouts": {}, "retries": {}, "circuitBreakers": {}}}
	var targets []func()
	for d, o := range mappings(docs) {
		if kind, _ := d.object(o, "dapr.io", "v1alpha1"); kind != "Resiliency" {
			d.unreadObject()
			continue
		}
		d.lost(o, Aside, "which applications have it", "scopes")
		d.lost(o, Aside, "a version", "version")
		spec := o.Object("spec")
		policies := spec.Object("policies")
		all.read(d, policies, "timeouts", func(p *daprPart) { p.wait, _ = d.daprDuration(p.node, p.path) })
		all.read(d, policies, "retries", func(p *daprPart) { p.retry = d.daprRetry(d.Object(p.node, p.path)) })
		all.read(d, policies, "circuitBreakers", func(p *daprPart) { p.opens = d.daprBreaker(d.Object(p.node, p.path)) })
		if t := spec.Object("targets"); t != nil {
			targets = append(targets, func() { all.targets(d, t) })
		}
	}
	for _, read := range targets { // once all policies are known
		read()
	}
	all.defaults()
	for _, p := range all.order {
		if !p.used {
			why := choice.Either(strings.HasPrefix(lastOf(p.path), daprOwnRetries), "it is for the retries that Dapr makes by itself, which no policy here has", "no target in these files has it")
			p.d.noteWhole(Lost, p.node, p.path, why)
		}
	}
}

func (all *daprReader) read(d *document, policies *tree.Object, field string, read func(*daprPart)) {
	policies.Object(field).Each(func(name string, n *tree.Node, path string) {
		p := &daprPart{d: d, path: path, node: n}
		read(p)
		all.parts[field][name] = p
		all.order = append(all.order, p)
	})
}

func (d *document) daprDuration(n *tree.Node, path string) (time.Duration, bool) {
	if n == nil {
		return 0, false
	}
	if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil && n.Scalar() && i >= 0 && i < math.MaxInt64/int64(time.Millisecond) {
		n.Use = max(n.Use, tree.Read)
		d.noteIf(i > 0, Assumed, path, "a number without a unit is of milliseconds")
		return time.Duration(i) * time.Millisecond, true
	}
	return d.Duration(n, path, 0, allowedGo, tree.ParseGo)
}

func (d *document) daprRetry(o *tree.Object) *daprRetry {
	if o == nil {
		return nil
	}
	r := &daprRetry{attempts: mostAttempts}
	most, given := o.Whole("maxRetries", math.MinInt32, math.MaxInt32, "a whole number; -1 is no limit")
	if most >= 0 && given {
		r.attempts = d.attempts(most, o.At("maxRetries"))
	}
	d.noteIf(!given, Assumed, o.Path, "without maxRetries Dapr retries without end; here there are up to 1000 attempts")
	d.noteIf(given && most < 0, Changed, o.At("maxRetries"), "a policy makes at most 1000 attempts")
	exponential := false
	if n, path := o.Get("policy"); n != nil {
		exponential = strings.EqualFold(n.Text, "exponential")
		d.Check(exponential || strings.EqualFold(n.Text, "constant"), n, path, "constant or exponential")
	}
	each, constant := d.daprDuration(o.Get("duration"))
	longest, capped := d.daprDuration(o.Get("maxInterval"))
	if !exponential {
		if !constant {
			each = daprConstant
			d.note(Assumed, o.Path, "without duration Dapr waits for 5s each time")
		}
		d.noteIf(capped, Lost, o.At("maxInterval"), "it is for exponential waits")
		r.waits = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: atLeastMillisecond(each), Cap: atLeastMillisecond(each)}
	} else {
		d.noteIf(constant, Lost, o.At("duration"), "it is for constant waits")
		if !capped || longest == 0 {
			longest = daprLongest
			d.note(Assumed, o.Path, "without maxInterval Dapr waits for up to a minute before jitter")
		}
		r.waits = daprWaits(longest)
		d.note(Changed, o.Path, "Dapr spreads a wait from half of it to one and a half; here it is a fifth up and down, with the same mean")
		if !given || most < 0 {
			r.deadline = daprElapsed
			d.note(Changed, o.Path, "Dapr begins no retry 15 minutes after the first attempt; here that is the deadline of the call")
		}
	}
	if m := o.Object("matching"); m != nil {
		r.at = m.Path
		r.matching = d.daprMatching(m)
	}
	return r
}

func atLeastMillisecond(t time.Duration) time.Duration {
	if t == 0 {
		return 0
	}
	return max(t, time.Millisecond)
}

// daprWaits are the waits of an exponential policy, before jitter of 500ms and half more each time.
func daprWaits(longest time.Duration) backoff.Schedule {
	return serviceconfig.Reading{}.Waits(serviceconfig.RetryPolicy{InitialBackoff: daprBase, MaxBackoff: atLeastMillisecond(longest), BackoffMultiplier: daprFactor})
}

// daprMatching reads which statuses are retried. Failures without a status are retried in any case.
func (d *document) daprMatching(o *tree.Object) *failures {
	f := &failures{on: []string{"reset", "connect-failure", "refused-stream", statusCodes}}
	ranges := func(name string, least, most int, take func(code int)) (given bool) {
		n, path := o.Get(name)
		if n == nil || n.Text == "" {
			return false
		}
		allowed := fmt.Sprintf("statuses from %d to %d, and ranges of them, such as %q", least, most, "429,500-504")
		for part := range strings.SplitSeq(n.Text, ",") {
			from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
			first, err := strconv.Atoi(strings.TrimSpace(from))
			last := first
			if isRange && err == nil {
				last, err = strconv.Atoi(strings.TrimSpace(to))
			}
			if !n.Scalar() || err != nil || first < least || last > most || last < first {
				d.Wrong(n, path, n.Found(), allowed, "")
				return true
			}
			for code := first; code <= last; code++ {
				take(code)
			}
		}
		return true
	}
	http := ranges("httpStatusCodes", 100, 599, func(code int) { f.statuses = append(f.statuses, code) })
	slices.Sort(f.statuses)
	f.statuses = slices.Compact(f.statuses)
	f.wholeClass()
	if !http {
		f.statuses = append(slices.Clone(transient), rateLimited)
		slices.Sort(f.statuses)
		d.note(Changed, o.Path, "without httpStatusCodes Dapr retries every answer that is an error, 404 and 400 as well; lull those that may be transient")
	}
	var codes []serviceconfig.Code
	if !ranges("gRPCStatusCodes", 0, 16, func(c int) { codes = append(codes, serviceconfig.Code(c)) }) {
		f.on = append(f.on, "unavailable", "resource-exhausted", "deadline-exceeded")
	} else {
		known, left := failuresOfCodes(slices.DeleteFunc(codes, func(c code) bool { return c == serviceconfig.OK }))
		f.on = append(f.on, known.on...)
		why := "a policy has no list of codes: lullgrpc retries UNAVAILABLE, and RESOURCE_EXHAUSTED where 429 is retried"
		if len(left) > 0 {
			why += "; not retried here: " + strings.Join(left, ", ")
		}
		d.note(Changed, o.At("gRPCStatusCodes"), why)
	}
	return f
}

var consecutiveTrip = regexp.MustCompile(`^\s*consecutiveFailures\s*(>=?)\s*([0-9]{1,9})\s*$`)

func (d *document) daprBreaker(o *tree.Object) *breaker.Config {
	if o == nil {
		return nil
	}
	c := &breaker.Config{Consecutive: daprFailures, ConsecutiveFor: -1, OpenFor: daprOpen, OpenJitter: -1}
	if n, ok := o.Whole("maxRequests", 0, math.MaxInt32, "a whole number from 0"); ok && n > 0 {
		c.Probes = int(min(n, 1000))
		d.noteIf(n > 1000, Changed, o.At("maxRequests"), "at most 1000 probes")
	}
	if t, ok := d.daprDuration(o.Get("timeout")); ok && t > 0 {
		c.OpenFor = atLeastMillisecond(t)
	} else {
		d.note(Assumed, o.Path, "without timeout Dapr's breaker is open for a minute")
	}
	c.OpenMax = c.OpenFor
	if t, ok := d.daprDuration(o.Get("interval")); ok {
		d.noteIf(t == 0, Aside, o.At("interval"), offWhy)
		d.noteIf(t > 0, Lost, o.At("interval"),
			"the counts start anew after each interval; a breaker of lull has none for failures in a row")
	}
	trip, path := o.Get("trip")
	if trip == nil {
		d.note(Assumed, o.Path, "without trip Dapr's breaker opens after more than five failures in a row")
	} else if m := consecutiveTrip.FindStringSubmatch(trip.Text); m != nil {
		n, _ := strconv.Atoi(m[2])
		if m[1] == ">" {
			n++
		}
		c.Consecutive = max(n, 1)
	} else {
		d.Check(trip.Kind == tree.Text, trip, path, "an expression such as consecutiveFailures > 5")
		c = nil
	}
	if c == nil {
		d.noteWhole(Lost, o.Node, o.Path, "of the expressions of trip only consecutiveFailures > N is read here, so there is no breaker")
	}
	return c
}

func (all *daprReader) targets(d *document, o *tree.Object) {
	for _, kind := range targetKinds {
		o.Object(kind.field).Each(func(name string, n *tree.Node, path string) {
			if all.r.full {
				return
			}
			t := d.Object(n, path)
			if t == nil {
				return
			}
			if kind.field == "components" {
				for _, way := range []string{"outbound", "inbound"} {
					own := t.Object(way)
					all.target(d, own, kind.prefix+name+choice.Either(way == "inbound", inbound, ""), false)
				}
			} else {
				all.target(d, t, kind.prefix+name, kind.field == "apps")
				d.lost(t, Lost, "a dependency has one breaker", "circuitBreakerScope", "circuitBreakerCacheSize")
			}
		})
	}
}

func (all *daprReader) target(d *document, t *tree.Object, name string, app bool) {
	if t == nil {
		return
	}
	part := func(field, list, kind string) *daprPart { // that the target names; nil: none
		name := t.String(field)
		if name == "" {
			return nil
		}
		p := all.parts[list][name]
		if p != nil {
			p.used = true
		} else {
			d.note(Lost, t.At(field), "no "+kind+" of that name is in these files, and Dapr goes on without one")
		}
		return p
	}
	all.add(d, t.Path, name, app, part("timeout", "timeouts", "timeout"), part("retry", "retries", "retry policy"),
		part("circuitBreaker", "circuitBreakers", "circuit breaker"))
}

func (all *daprReader) add(d *document, path, name string, app bool, timeout, retry, opens *daprPart) {
	r := all.r
	p := r.base.of(Dapr).policy
	extras := Dapr.known()
	extras.ignoresHints = true
	if app {
		extras.facts.Service, extras.facts.Namespace = name, textOf(d.root.Get("metadata").Get("namespace"))
	}
	var rest []source
	use := func(part *daprPart, fields ...string) {
		rest = append(rest, part.d.source(part.path))
		for _, field := range fields {
			extras.places[field] = part.d.at(part.path).Position
		}
	}
	if timeout != nil {
		use(timeout, "attempt_timeout")
		p.AttemptTimeout = cmp.Or(atLeastMillisecond(timeout.wait), lull.NoTimeout)
	}
	if retry != nil && retry.retry != nil {
		use(retry, "attempts", "backoff.base")
		from := retry.retry
		p.Attempts, p.Backoff, p.Deadline = from.attempts, from.waits, cmp.Or(from.deadline, p.Deadline)
		switch {
		case p.Attempts == 1:
			p.Backoff = backoff.Schedule{}
			retry.d.note(Changed, retry.path, "there are no retries")
		case from.matching == nil:
			p.Timeouts, p.RateLimitedBase = lull.TimeoutsAlways, waits.SameWhenRateLimited
			retry.d.note(Changed, retry.path, "Dapr retries every failure, 404 and 400 as well; lull those that may be transient")
		default:
			why := from.matching.apply(&p)
			retry.d.noteSelection(from.at, why, name)
			extras.retried = from.matching
		}
		retry.d.noteAbout(p.Attempts > 1, hints, Changed, retry.path,
			"Dapr does not look at Retry-After; lull does, and waits for up to 30s")
	}
	if opens != nil && opens.opens != nil {
		use(opens, "breaker")
		p.Breaker = *opens.opens
		opens.d.note(Changed, opens.path, "Dapr's breaker counts attempts; lull's counts calls, and ends the retries of a call when it opens")
	}
	d.noteIf(app && !r.base.given, Assumed, path,
		"beside this policy Dapr repeats what the other sidecar did not get, three times and a second apart (DaprBuiltInServiceRetries)")
	r.add(d, name, []string{name + " (target)"}, path, p, extras, rest...)
}

// defaults adds dependencies for the targets that no document lists, if there are default policies for them.
func (all *daprReader) defaults() {
	for _, kind := range targetKinds {
		all.addDefault(kind.prefix+defaultTarget, kind.levels)
	}
	all.addDefault("component/"+defaultTarget+inbound, []string{"ComponentInbound", "Component", ""})
}

func (all *daprReader) addDefault(name string, levels []string) {
	find := func(list, what string) *daprPart {
		for _, level := range levels {
			if p := all.parts[list]["Default"+level+what]; p != nil {
				p.used = true
				return p
			}
		}
		return nil
	}
	timeout, retry, opens := find("timeouts", "TimeoutPolicy"), find("retries", "RetryPolicy"), find("circuitBreakers", "CircuitBreakerPolicy")
	if p := cmp.Or(timeout, retry, opens); p != nil {
		p.d.note(Changed, p.path,
			"it is for targets that are not listed; here it is a dependency called "+tree.Quote(name)+", and each that is called is to be listed")
		all.add(p.d, p.path, name, false, timeout, retry, opens)
	}
}

func (w *writer) dapr() []*tree.Node {
	timeouts, retries, breakers := newNamed(), newNamed(), newNamed()
	apps, actors, components := tree.NewMap(), tree.NewMap(), tree.NewMap()
	w.each("Dapr", func(d config.Dependency, p lull.Policy, note noter) {
		target := tree.NewMap()
		w.daprTarget(target, d, p, note, timeouts, retries, breakers)
		if component, ok := strings.CutPrefix(d.Name, "component/"); ok {
			name, isInbound := strings.CutSuffix(component, inbound)
			n := components.Get(name)
			if n == nil {
				n = tree.NewMap()
				components.Set(name, n)
			}
			n.Set(choice.Either(isInbound, "inbound", "outbound"), target)
		} else if actor, ok := strings.CutPrefix(d.Name, "actor/"); ok {
			actors.Set(actor, target)
		} else {
			note(Assumed, "", "it becomes the target of the app of that name; an actor or a component is called actor/NAME or component/NAME here")
			apps.Set(d.Name, target)
		}
	})
	filled := func(key string, n *tree.Node, to *tree.Node) { to.SetIf(len(n.Members) > 0, key, n) }
	policies, targets := tree.NewMap(), tree.NewMap()
	filled("timeouts", timeouts.all, policies)
	filled("retries", retries.all, policies)
	filled("circuitBreakers", breakers.all, policies)
	filled("apps", apps, targets)
	filled("actors", actors, targets)
	filled("components", components, targets)
	return []*tree.Node{object(daprVersion, "Resiliency", "lull", tree.NewMap().Set("policies", policies).Set("targets", targets))}
}

// named are policies by name, of which none has the content of another.
type named struct {
	all *tree.Node
	of  map[string]string // the name of each content
}

func newNamed() *named { return &named{tree.NewMap(), map[string]string{}} }

// add adds a policy, and returns the name of the one that has its content.
func (n *named) add(name string, policy *tree.Node) string {
	content := string(policy.Compact())
	if known, ok := n.of[content]; ok {
		return known
	}
	n.of[content] = name
	n.all.Set(name, policy)
	return name
}

func (w *writer) daprTarget(target *tree.Node, d config.Dependency, p lull.Policy, note noter, timeouts, retries, breakers *named) {
	attempts, bounded := p.MaxAttempts(), waits.Bounded(p)
	note.changed(p.Hedge.Attempts > 1, "hedge", "Dapr does not hedge, so the policy is written as one that retries as often")
	timeout := choice.Either(bounded, p.AttemptTimeout, time.Duration(0))
	switch {
	case p.Deadline <= 0:
	case attempts > 1:
		note(Lost, "deadline", "Dapr bounds attempts, not calls")
	case bounded:
		note(Changed, "deadline", "attempt_timeout is less, and there is one attempt")
	default:
		timeout = p.Deadline
		note(Changed, "deadline", "Dapr bounds attempts: it is the timeout of the only one")
		note(Changed, "attempt_timeout", "Dapr bounds attempts: it is the deadline")
	}
	if timeout > 0 {
		target.Set("timeout", timeouts.add(d.Name, tree.String(timeout.String())))
	}
	if attempts > 1 {
		target.Set("retry", retries.add(d.Name, w.daprRetry(d, p, attempts, note)))
		note.lost(!p.Budget.Unlimited, "budget", "Dapr has none: nothing bounds the retries of all calls together")
	} else {
		unpaid(p.Budget, note)
	}
	if b := daprBreakerOf(p.Breaker, note); b != nil {
		target.Set("circuitBreaker", breakers.add(d.Name, b))
	}
	note.lost(p.Limit.InFlight > 0, "limit", "Dapr has no limit of calls in flight here")
}

func (w *writer) daprRetry(d config.Dependency, p lull.Policy, attempts int, note noter) *tree.Node {
	s := p.Backoff
	n := tree.NewMap()
	var written backoff.Schedule
	if s.Kind == backoff.Constant || s.Kind == backoff.Immediate {
		each := atLeastMillisecond(s.Ceiling(choice.Either(s.FastFirst, 2, 1)))
		n.Set("policy", "constant").Set("duration", each.String())
		written = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: each, Cap: each}
	} else {
		longest := longestBeforeJitter(p, attempts)
		n.Set("policy", "exponential").Set("maxInterval", longest.String())
		written = daprWaits(longest)
	}
	if !waits.Same(s, written, attempts-1) {
		note.lost(s.Floor > 0, "backoff.floor", "Dapr has no shortest wait")
		note.changed(s.FastFirst, "backoff.fast_first", "Dapr waits before the first retry as well")
		rest := s
		rest.Floor, rest.FastFirst = 0, false
		note.changed(rest == s || !waits.Same(rest, written, attempts-1), "backoff",
			"Dapr waits for the same time each time, without jitter, or from 500ms for half more each time, of which half is spread up and down")
	}
	n.Set("maxRetries", attempts-1)
	n.Set("matching", w.daprMatching(d, p, note))
	note.lost(!w.set.known[d.Name].ignoresHints, "hint_limit", "Dapr does not look at Retry-After")
	note.lost(p.Timeouts != lull.TimeoutsAlways, "timeouts", "Dapr retries what timed out in any case")
	w.unsafe(d, "Dapr retries a request whether it is safe to repeat or not")
	return n
}

func longestBeforeJitter(p lull.Policy, attempts int) time.Duration {
	p.Hedge, p.Attempts = lull.Policy{}.Hedge, min(attempts, serviceconfig.DefaultMaxCallAttempts)
	if c, _, err := serviceconfig.Of(p); err == nil && c.Methods[0].Retry != nil {
		return max(c.Methods[0].Retry.MaxBackoff, time.Millisecond)
	}
	return max(p.Backoff.Ceiling(cmp.Or(p.Backoff.Limit(), 1000)), time.Millisecond)
}

// daprMatching writes which statuses are retried. Without it Dapr would retry all that are errors.
func (w *writer) daprMatching(d config.Dependency, p lull.Policy, note noter) *tree.Node {
	f := w.failures(d.Name, p)
	var statuses []int
	for status := 100; status < 600; status++ {
		if f.retried(status) {
			statuses = append(statuses, status)
		}
	}
	known := w.set.known[d.Name]
	codes := known.codes
	if len(codes) == 0 {
		codes = f.codes()
	}
	if len(codes) == 0 {
		codes = []code{serviceconfig.Unavailable}
		if f.retried(rateLimited) {
			codes = append(codes, serviceconfig.ResourceExhausted)
		}
	}
	if len(statuses) == 0 {
		statuses = transient
	}
	if known.retried != nil || len(known.codes) > 0 {
		w.took[selection+about(":"+d.Name)] = true
		note(Changed, "", "Dapr also retries what has no status, such as a connection that breaks")
	} else {
		note(Assumed, "", "which failures are retried is written as lull sees them")
		rateLimitedWaits(p, f, "Dapr", note)
	}
	return tree.NewMap().Set("httpStatusCodes", ranges(statuses)).Set("gRPCStatusCodes", ranges(slices.Sorted(slices.Values(codes))))
}

func ranges[T ~int | ~uint32](all []T) string {
	var parts []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		first, last := strconv.FormatInt(int64(all[i]), 10), strconv.FormatInt(int64(all[j]), 10)
		switch j - i {
		case 0:
			parts = append(parts, first)
		case 1:
			parts = append(parts, first, last)
		default:
			parts = append(parts, first+"-"+last)
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func daprBreakerOf(c breaker.Config, note noter) *tree.Node {
	why := ""
	switch {
	case c.Off:
		return nil
	case c.MetricsOnly:
		why = "it only counts, and Dapr's would open"
	case c.Consecutive < 0:
		why = "Dapr's opens after failures in a row, and counts no shares here"
	case c.ConsecutiveFor >= 0:
		why = "Dapr's opens after failures in a row however close together they come, which a breaker takes for nothing; it is written if consecutive_for is negative"
	}
	if why != "" {
		note(Lost, "breaker", why)
		return nil
	}
	note(Changed, "breaker", "Dapr's breaker counts attempts; lull's counts calls, and ends the retries of a call when it opens")
	note.lost(c.FailureRate > 0, "breaker.failure_rate", "Dapr's breaker is written with failures in a row alone")
	note.lost(c.SlowRate > 0, "breaker.slow_rate", "Dapr's breaker does not know how long calls take")
	longest := cmp.Or(c.OpenMax, max(breaker.DefaultOpenMax, 2*c.OpenFor))
	open := min(cmp.Or(c.OpenFor, longest), longest)
	note.lost(open != longest, "breaker.open_max", "Dapr's breaker is open for the same time each time")
	note.lost(cmp.Or(c.OpenJitter, breaker.DefaultOpenJitter) > 0, "breaker.open_jitter",
		"Dapr's breaker is open for the same time each time")
	return tree.NewMap().Set("maxRequests", cmp.Or(c.Probes, breaker.DefaultProbes)).Set("timeout", atLeastMillisecond(open).String()).
		Set("trip", fmt.Sprintf("consecutiveFailures >= %d", cmp.Or(c.Consecutive, breaker.DefaultConsecutive)))
}
