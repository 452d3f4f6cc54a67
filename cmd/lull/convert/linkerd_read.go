package convert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// Linkerd has two generations: a ServiceProfile with routes and a retry budget (linkerd.io/2/reference/
// service-profiles), and annotations of a Service (linkerd.io/2/reference/retries and timeouts). The proxy
// ignores the annotations of a Service that has a profile. What it does where nothing is said is of
// linkerd/linkerd2@b24cd405 (policy-controller) and linkerd/linkerd2-proxy@29637b64.

const (
	linkerdRatio   = 0.2
	linkerdFloor   = 10
	linkerdTTL     = 10 * time.Second
	linkerdTimeout = 10 * time.Second
	linkerdLimit   = 1
)

var linkerdAnnotations = []string{"retry.linkerd.io/", "timeout.linkerd.io/", "balancer.linkerd.io/"}

func isLinkerdService(n *tree.Node) bool {
	all := n.Get("metadata").Get("annotations")
	return textOf(n.Get("kind")) == "Service" && all != nil && slices.ContainsFunc(all.Members, func(m tree.Member) bool { return isLinkerd(m.Key) })
}

func isLinkerd(annotation string) bool {
	return slices.ContainsFunc(linkerdAnnotations, func(prefix string) bool { return strings.HasPrefix(annotation, prefix) })
}

func (r *reading) linkerd(docs []*document) {
	profiles := map[string]bool{}
	for _, d := range docs {
		if name := d.root.Get("metadata").Get("name"); name != nil && textOf(d.root.Get("kind")) == "ServiceProfile" {
			first, _, _ := strings.Cut(name.Text, ".")
			profiles[first] = true
		}
	}
	for d, o := range mappings(docs) {
		switch kind, version := o.Field("kind"), o.Field("apiVersion"); {
		case textOf(kind) == "ServiceProfile":
			_, name := d.object(o, "linkerd.io", "v1alpha2")
			r.profile(d, o, name)
		case isLinkerdService(d.root):
			o.Get("kind")
			o.Get("apiVersion")
			r.linkerdService(d, o, profiles)
		case kind != nil && version != nil:
			d.unreadObject()
		}
	}
}

func (r *reading) profile(d *document, o *tree.Object, n backend) {
	spec := o.Object("spec")
	if spec == nil {
		return
	}
	d.lost(spec, Aside, "where requests go", "dstOverrides", "opaquePorts")
	pays := d.linkerdBudget(spec)
	for _, route := range spec.Objects("routes") {
		if r.full {
			return
		}
		name := route.String("name")
		facts := Facts{Methods: d.conditionMethods(route.Node.Get("condition"), nil), Unknown: []string{"breaker"}}
		facts.serviceAt(n.name, n.namespace)
		d.lost(route, Aside, "which requests are meant", "condition")
		d.lost(route, Lost, "lull decides by the status what has failed", "responseClasses")
		p := r.base.of(Linkerd).policy
		extras := Linkerd.known()
		extras.ignoresHints, extras.facts = true, facts
		extras.places["deadline"] = d.at(route.Path).Position
		p.Deadline = linkerdTimeout
		if t, ok := route.Duration("timeout", 0, allowedGo, tree.ParseGo); ok {
			p.Deadline = cmp.Or(atLeastMillisecond(t), lull.NoTimeout)
			extras.places["deadline"] = d.at(route.At("timeout")).Position
		} else {
			d.note(Assumed, route.Path, "without timeout Linkerd ends a call after 10s")
		}
		retried, given := route.Bool("isRetryable")
		d.noteIf(given && !retried, Aside, route.At("isRetryable"), offWhy)
		if at := route.At("isRetryable"); retried {
			extras.places["attempts"] = d.at(at).Position
			p.Attempts, p.Backoff, p.Timeouts, p.Budget = mostAttempts, backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}, lull.TimeoutsNever, pays
			if spec.Field("retryBudget") != nil {
				extras.places["budget"] = d.at(spec.At("retryBudget")).Position
			}
			d.note(Changed, at, "Linkerd retries at once and as often as its budget pays; here up to 1000 attempts")
			d.note(Changed, at, "Linkerd retries every status from 500, and nothing without an answer; lull what may be transient, and connections that were refused")
			d.noteAbout(true, hints, Changed, at, "Linkerd does not look at Retry-After; lull does, and waits for up to 30s")
		}
		r.add(d, strings.TrimSpace(n.name+" "+name), nil, route.Path, p, extras)
	}
}

// conditionMethods adds the methods that the condition of a route names. What it excludes is left out.
func (d *document) conditionMethods(n *tree.Node, all []Method) []Method {
	if n == nil {
		return all
	}
	if !isGRPCPath(textOf(n.Get("pathRegex"))) {
		all = d.methodsIn(n.Get("method"), all)
	}
	for _, item := range slices.Concat(n.Get("all").Elements(), n.Get("any").Elements()) {
		all = d.conditionMethods(item, all)
	}
	return all
}

func (d *document) linkerdBudget(spec *tree.Object) budget.Config {
	o := spec.Object("retryBudget")
	ratio, hasRatio := o.Float("retryRatio", "a number from 0 to 1000", func(f float64) bool { return f >= 0 && f <= 1000 })
	floor, hasFloor := o.Whole("minRetriesPerSecond", 0, math.MaxUint32, "a whole number from 0")
	window, hasWindow := o.Duration("ttl", 0, allowedGo, tree.ParseGo)
	ratio, floor = choice.Either(hasRatio, ratio, linkerdRatio), choice.Either(hasFloor, floor, linkerdFloor)
	window = choice.Either(hasWindow, window, linkerdTTL)
	d.noteIf(ratio < budget.MinRatio, Changed, o.At("retryRatio"), "a budget has a ratio of at least 0.00001")
	d.noteIf(ratio > budget.MaxRatio, Changed, o.At("retryRatio"), "a budget has a ratio of at most 4")
	d.noteIf(float64(floor) > budget.MaxFloor, Changed, o.At("minRetriesPerSecond"), "a budget has a floor of at most a million a second")
	c := budget.Config{Ratio: min(max(ratio, budget.MinRatio), budget.MaxRatio), Floor: min(float64(floor), budget.MaxFloor),
		Window: min(max(window, budget.MinWindow), budget.MaxWindow)}
	d.noteIf(c.Window != window, Changed, o.At("ttl"), fmt.Sprintf("a window has %v to %v", budget.MinWindow, budget.MaxWindow))
	var missing unsaid
	missing.add(!hasRatio, "retryRatio 0.2")
	missing.add(!hasFloor, "minRetriesPerSecond 10")
	missing.add(!hasWindow, "ttl 10s")
	d.noteIf(len(missing) > 0, Assumed, spec.Path,
		"as Linkerd has it where nothing is said of a retryBudget: "+strings.Join(missing, ", "))
	return c
}

// linkerdService reads the annotations of a Service: its retries, timeouts and hosts.
func (r *reading) linkerdService(d *document, o *tree.Object, profiles map[string]bool) {
	meta := o.Object("metadata")
	name := meta.String("name")
	all := meta.Object("annotations")
	for _, part := range []*tree.Object{meta, o} {
		for _, m := range part.Rest() {
			m.Value.Use = max(m.Value.Use, tree.Read)
			d.noteWhole(Aside, m.Value, part.At(m.Key), plainWhy)
		}
	}
	rest := func() {
		for _, m := range all.Rest() {
			switch n, path := all.Get(m.Key); {
			case n == nil || n.Use == tree.Told:
			case profiles[name] && isLinkerd(m.Key):
				d.note(Lost, path, "Linkerd ignores it, since the Service has a ServiceProfile")
			case strings.HasPrefix(m.Key, linkerdAnnotations[2]):
				d.note(Lost, path, "it leaves single hosts out, which in lull are lullhttp's (WithEndpoints)")
			case isLinkerd(m.Key):
				d.note(Lost, path, notReadWhy)
			case isUnrelated(m.Key):
				d.note(Aside, path, plainWhy)
			default:
				d.note(Lost, path, "this annotation is not read here")
			}
		}
	}
	if profiles[name] {
		rest()
		return
	}
	p := r.base.of(Linkerd).policy
	extras := Linkerd.known()
	extras.ignoresHints = true
	span := func(annotation, field string, into *time.Duration) {
		if t, ok := all.Duration(annotation, 0, allowedGo, tree.ParseGo); ok {
			*into = cmp.Or(atLeastMillisecond(t), lull.NoTimeout)
			extras.places[field] = d.at(all.At(annotation)).Position
		}
	}
	http, grpc := all.String("retry.linkerd.io/http"), all.String("retry.linkerd.io/grpc")
	limit, limited := all.Whole("retry.linkerd.io/limit", 0, math.MaxUint16, "a whole number from 0 to 65535")
	span("retry.linkerd.io/timeout", "attempt_timeout", &p.AttemptTimeout)
	span("timeout.linkerd.io/request", "deadline", &p.Deadline)
	extras.facts.serviceAt(name, textOf(meta.Node.Get("namespace")))
	if p.AttemptTimeout > 0 && p.Deadline > 0 && p.AttemptTimeout >= p.Deadline {
		at := all.At("retry.linkerd.io/timeout")
		d.note(Changed, at, "it has no effect, since it is not less than timeout.linkerd.io/request")
		extras.facts.LongAttempt, extras.facts.LongAttemptAt = p.AttemptTimeout, d.at(at).Position
		p.AttemptTimeout = lull.NoTimeout
	}
	if http == "" && grpc == "" {
		d.noteIf(limited, Lost, all.At("retry.linkerd.io/limit"), "without retry.linkerd.io/http or grpc there are no retries")
	} else {
		at := all.Path
		for _, annotation := range []string{"retry.linkerd.io/grpc", "retry.linkerd.io/http", "retry.linkerd.io/limit"} {
			if n := all.Field(annotation); n != nil {
				extras.places["attempts"] = d.at(all.At(annotation)).Position
			}
		}
		if !limited {
			limit = linkerdLimit
			d.note(Assumed, at, "without retry.linkerd.io/limit there is one retry")
		}
		d.noteIf(limit == 0, Changed, all.At("retry.linkerd.io/limit"),
			"Linkerd reads over a limit of 0: there is one retry, as without it")
		p.Attempts = d.attempts(max(limit, linkerdLimit), all.At("retry.linkerd.io/limit"))
		p.Backoff = backoff.Schedule{Jitter: backoff.Equal, Base: 50 * time.Millisecond, Cap: 250 * time.Millisecond}
		p.Timeouts = timeoutsIf(p.AttemptTimeout > 0)
		for _, annotation := range []string{"retry.linkerd.io/http", "retry.linkerd.io/grpc"} {
			d.noteIf(all.Has(annotation), Changed, all.At(annotation),
				"a policy has no list of answers; lull retries those that may be transient")
		}
		d.note(Assumed, at, "Linkerd waits for 25 to 50ms before a retry, and up to 250ms before later ones")
		d.noteAbout(true, hints, Changed, at, "Linkerd does not look at Retry-After; lull does, and waits for up to 30s")
	}
	rest()
	r.add(d, name, nil, all.Path, p, extras)
}
