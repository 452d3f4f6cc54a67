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
			n.Set(either(isInbound, "inbound", "outbound"), target)
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
	timeout := time.Duration(0)
	if bounded {
		timeout = p.AttemptTimeout
	}
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
		each := atLeastMillisecond(s.Ceiling(1))
		if s.FastFirst {
			each = atLeastMillisecond(s.Ceiling(2))
		}
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

// ranges writes sorted numbers with those in a row as a range.
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
