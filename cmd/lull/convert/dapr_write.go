package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// dapr writes one Resiliency, with a target for each dependency.
func (w *writer) dapr() []*tree.Node {
	timeouts, retries, breakers := newNamed(), newNamed(), newNamed()
	apps, actors, components := tree.NewMap(), tree.NewMap(), tree.NewMap()
	for _, d := range w.set.File.Dependencies {
		note := w.of(d)
		p := d.Policy.WithDefaults()
		target := tree.NewMap()
		w.daprTarget(target, d, p, note, timeouts, retries, breakers)
		actor, isActor := strings.CutPrefix(d.Name, "actor/")
		component, isComponent := strings.CutPrefix(d.Name, "component/")
		switch {
		case isComponent:
			direction := "outbound"
			if name, ok := strings.CutSuffix(component, inbound); ok {
				component, direction = name, "inbound"
			}
			n := components.Get(component)
			if n == nil {
				n = tree.NewMap()
				components.Set(component, n)
			}
			n.Set(direction, target)
		case isActor:
			actors.Set(actor, target)
		default:
			note(Assumed, "", "it becomes the target of the app of that name; an actor or a component is called actor/NAME or component/NAME here")
			apps.Set(d.Name, target)
		}
		noteUnsupported(p, "Dapr", note)
		w.facts(d)
	}
	w.services()
	policies, targets := tree.NewMap(), tree.NewMap()
	for _, each := range []struct {
		in   *tree.Node
		name string
		of   *tree.Node
	}{{policies, "timeouts", timeouts.all}, {policies, "retries", retries.all}, {policies, "circuitBreakers", breakers.all},
		{targets, "apps", apps}, {targets, "actors", actors}, {targets, "components", components}} {
		if len(each.of.Members) > 0 {
			each.in.Set(each.name, each.of)
		}
	}
	return []*tree.Node{object(daprVersion, "Resiliency", "lull", tree.NewMap().Set("policies", policies).Set("targets", targets))}
}

// named are policies by name, of which none has the content of another.
type named struct {
	all *tree.Node
	of  map[string]string // the name of each content
}

func newNamed() *named { return &named{tree.NewMap(), map[string]string{}} }

// add adds a policy, and returns the name of the one that has its content.
func (n *named) add(name string, policy *tree.Node) *tree.Node {
	content := string(policy.Compact())
	if known, ok := n.of[content]; ok {
		return tree.String(known)
	}
	n.of[content] = name
	n.all.Set(name, policy)
	return tree.String(name)
}

func (w *writer) daprTarget(target *tree.Node, d config.Dependency, p lull.Policy, note noter, timeouts, retries, breakers *named) {
	attempts := p.MaxAttempts()
	if p.Hedge.Attempts > 1 {
		note(Changed, "hedge", "Dapr does not hedge, so the policy is written as one that retries as often")
	}
	timeout := time.Duration(0)
	switch bounded := waits.Bounded(p); {
	case bounded:
		timeout = p.AttemptTimeout
		if p.Deadline > 0 && attempts < 2 {
			note(Changed, "deadline", "attempt_timeout is less, and there is one attempt")
		} else if p.Deadline > 0 {
			note(Lost, "deadline", "Dapr bounds attempts, not calls")
		}
	case p.Deadline > 0 && attempts < 2:
		timeout = p.Deadline
		note(Changed, "deadline", "Dapr bounds attempts: it is the timeout of the only one")
		note(Changed, "attempt_timeout", "Dapr bounds attempts: it is the deadline")
	case p.Deadline > 0:
		note(Lost, "deadline", "Dapr bounds attempts, not calls")
	}
	if timeout > 0 {
		target.Set("timeout", timeouts.add(d.Name, tree.String(goDuration(timeout))))
	}
	if attempts > 1 {
		target.Set("retry", retries.add(d.Name, w.daprRetry(d, p, attempts, note)))
		if !p.Budget.Unlimited {
			note(Lost, "budget", "Dapr has none: nothing bounds the retries of all calls together")
		}
	} else {
		unpaid(p.Budget, note)
	}
	if b := daprBreakerOf(p.Breaker, note); b != nil {
		target.Set("circuitBreaker", breakers.add(d.Name, b))
	}
	if p.Limit.InFlight > 0 {
		note(Lost, "limit", "Dapr has no limit of calls in flight here")
	}
}

// goDuration is d as Dapr reads it.
func goDuration(d time.Duration) string { return d.String() }

func (w *writer) daprRetry(d config.Dependency, p lull.Policy, attempts int, note noter) *tree.Node {
	s := p.Backoff
	n := tree.NewMap()
	var written backoff.Schedule
	if s.Kind == backoff.Constant || s.Kind == backoff.Immediate {
		each := shortest(s.Ceiling(1))
		if s.FastFirst {
			each = shortest(s.Ceiling(2))
		}
		n.Set("policy", tree.String("constant")).Set("duration", tree.String(goDuration(each)))
		written = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: each, Cap: each}
	} else {
		q := p
		q.Attempts = max(attempts, 2)
		longest := longestBeforeJitter(q)
		n.Set("policy", tree.String("exponential")).Set("maxInterval", tree.String(goDuration(longest)))
		written = daprWaits(longest)
	}
	if !waits.Same(s, written, attempts-1) {
		noted := false
		for _, each := range []struct {
			is    bool
			kind  Kind
			field string
			why   string
		}{
			{s.Floor > 0, Lost, "backoff.floor", "Dapr has no shortest wait"},
			{s.FastFirst, Changed, "backoff.fast_first", "Dapr waits before the first retry as well"},
		} {
			if each.is {
				note(each.kind, each.field, each.why)
				noted = true
			}
		}
		if rest := s; true {
			rest.Floor, rest.FastFirst = 0, false
			if !noted || !waits.Same(rest, written, attempts-1) {
				note(Changed, "backoff", "Dapr waits for the same time each time, without jitter, or from 500ms for half more each time, of which half is spread up and down")
			}
		}
	}
	n.Set("maxRetries", tree.Int(attempts-1))
	n.Set("matching", w.daprMatching(d, p, note))
	if !w.set.foreign[d.Name].ignoresHints {
		note(Lost, "hint_limit", "Dapr does not look at Retry-After")
	}
	if p.Timeouts != lull.TimeoutsAlways {
		note(Lost, "timeouts", "Dapr retries what timed out in any case")
	}
	w.unsafe(d, "Dapr retries a request whether it is safe to repeat or not")
	return n
}

// longestBeforeJitter is the longest wait of an exponential schedule before jitter.
func longestBeforeJitter(p lull.Policy) time.Duration {
	p.Hedge, p.Attempts = lull.Policy{}.Hedge, min(p.Attempts, serviceconfig.DefaultMaxCallAttempts)
	if c, _, err := serviceconfig.Of(p); err == nil && c.Methods[0].Retry != nil {
		return max(c.Methods[0].Retry.MaxBackoff, time.Millisecond)
	}
	return max(p.Backoff.Ceiling(cmp.Or(p.Backoff.Limit(), 1000)), time.Millisecond)
}

// daprMatching writes which statuses are retried. Without it Dapr would retry all that are errors.
func (w *writer) daprMatching(d config.Dependency, p lull.Policy, note noter) *tree.Node {
	f := w.failures(d.Name, p)
	var statuses, codes []int
	for status := 100; status < 600; status++ {
		if f.retried(status) {
			statuses = append(statuses, status)
		}
	}
	known := w.set.foreign[d.Name]
	for _, c := range known.codes {
		codes = append(codes, int(c))
	}
	if len(codes) == 0 {
		for _, c := range f.codes() {
			codes = append(codes, int(c))
		}
	}
	if len(codes) == 0 {
		codes = []int{int(serviceconfig.Unavailable)}
		if f.retried(rateLimited) {
			codes = append(codes, int(serviceconfig.ResourceExhausted))
		}
	}
	slices.Sort(codes)
	if len(statuses) == 0 {
		statuses = slices.Clone(transient)
	}
	switch {
	case known.retried != nil || len(known.codes) > 0:
		w.took[selection+about(":"+d.Name)] = true
		note(Changed, "", "Dapr also retries what has no status, such as a connection that breaks")
	default:
		note(Assumed, "", "which failures are retried is written as lull sees them")
		rateLimitedWaits(p, f, "Dapr", note)
	}
	return tree.NewMap().Set("httpStatusCodes", tree.String(ranges(statuses))).Set("gRPCStatusCodes", tree.String(ranges(codes)))
}

// ranges writes sorted numbers with those in a row as a range.
func ranges(all []int) string {
	var parts []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, strconv.Itoa(all[i]))
		case 1:
			parts = append(parts, strconv.Itoa(all[i]), strconv.Itoa(all[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", all[i], all[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// daprBreakerOf writes a breaker; nil: there is none.
func daprBreakerOf(c breaker.Config, note noter) *tree.Node {
	switch {
	case c.Off:
		return nil
	case c.MetricsOnly, c.Consecutive < 0, c.ConsecutiveFor >= 0:
		why := "Dapr's opens after failures in a row however close together they come, which a breaker takes for nothing; it is written if consecutive_for is negative"
		if c.MetricsOnly {
			why = "it only counts, and Dapr's would open"
		} else if c.Consecutive < 0 {
			why = "Dapr's opens after failures in a row, and counts no shares here"
		}
		note(Lost, "breaker", why)
		return nil
	}
	note(Changed, "breaker", "Dapr's breaker counts attempts; lull's counts calls, and ends the retries of a call when it opens")
	if c.FailureRate > 0 {
		note(Lost, "breaker.failure_rate", "Dapr's breaker is written with failures in a row alone")
	}
	if c.SlowRate > 0 {
		note(Lost, "breaker.slow_rate", "Dapr's breaker does not know how long calls take")
	}
	longest := cmp.Or(c.OpenMax, max(breaker.DefaultOpenMax, 2*c.OpenFor))
	open := min(cmp.Or(c.OpenFor, longest), longest)
	if open != longest {
		note(Lost, "breaker.open_max", "Dapr's breaker is open for the same time each time")
	}
	if cmp.Or(c.OpenJitter, breaker.DefaultOpenJitter) > 0 {
		note(Lost, "breaker.open_jitter", "Dapr's breaker is open for the same time each time")
	}
	return tree.NewMap().Set("maxRequests", tree.Int(cmp.Or(c.Probes, breaker.DefaultProbes))).Set("timeout", tree.String(goDuration(shortest(open)))).
		Set("trip", tree.String(fmt.Sprintf("consecutiveFailures >= %d", cmp.Or(c.Consecutive, breaker.DefaultConsecutive))))
}
