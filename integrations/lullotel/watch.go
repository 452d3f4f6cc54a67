package lullotel

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
)

// sources are read together with the metrics.
type sources struct {
	mu  sync.Mutex
	all []*source
}

// A source writes to out what has not been seen. Keys of seen are a kind and a label.
type source func(seen map[string]bool, out metric.Observer)

func (s *sources) add(added source) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, &added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = slices.DeleteFunc(slices.Clone(s.all), func(x *source) bool { return x == &added })
	}
}

// isFirst reports whether a label is to be shown: each of a kind once, and Other not at all.
func isFirst(seen map[string]bool, kind, label string) bool {
	if label == Other || seen[kind+label] {
		return false
	}
	seen[kind+label] = true
	return true
}

// Watch reports the states of the dependencies whenever metrics are read: the tokens in their
// budgets, the states of their circuit breakers, the attempts in flight under their limits, the
// refusals of their throttles, and for how long these hold attempts back. Of several with one name the first is reported, and beyond Limits
// none. stop ends that.
func (t *Telemetry) Watch(deps ...*lull.Dependency) (stop func()) {
	return t.WatchAll(slices.Values(slices.Clone(deps)))
}

// WatchAll is Watch for all dependencies at the time of reading: those of a lull.Registry
// (WatchAll(transport.Registry().All) for lullhttp), or of a lullgrpc.Client
// (WatchAll(client.Dependencies)).
func (t *Telemetry) WatchAll(all func(yield func(*lull.Dependency) bool)) (stop func()) {
	if all == nil {
		return func() {}
	}
	return t.sources.add(func(seen map[string]bool, out metric.Observer) {
		for d := range all {
			if d == nil {
				continue
			}
			if label := t.calls.dependencies.get(d.Name()).label; isFirst(seen, "d ", label) {
				t.instruments.dependency(d, label, out)
			}
		}
	})
}

// WatchConsumer reports how many messages c is handling, under its name.
func (t *Telemetry) WatchConsumer(name string, c *queue.Consumer) (stop func()) {
	if c == nil {
		return func() {}
	}
	return t.sources.add(func(seen map[string]bool, out metric.Observer) {
		if label := t.queues.get(name).label; isFirst(seen, "q ", label) {
			out.ObserveInt64(t.instruments.consumerInFlight, int64(c.InFlight()), metric.WithAttributes(attribute.String(keyQueue, label)))
		}
	})
}

// WatchGate reports the state of an admission controller, under the name that Admission got.
func (t *Telemetry) WatchGate(name string, g *admission.Gate) (stop func()) {
	if g == nil {
		return func() {}
	}
	return t.sources.add(func(seen map[string]bool, out metric.Observer) {
		if label := t.gates.get(name).label; isFirst(seen, "g ", label) {
			t.instruments.gate(g.Snapshot(), label, out)
		}
	})
}

func (t *Telemetry) collectSources(out metric.Observer) {
	t.sources.mu.Lock()
	all := t.sources.all[:len(t.sources.all):len(t.sources.all)]
	t.sources.mu.Unlock()
	seen := make(map[string]bool)
	for _, s := range all {
		(*s)(seen, out)
	}
}

func (i *instruments) dependency(d *lull.Dependency, label string, out metric.Observer) {
	name := attribute.String(keyDependency, label)
	by := metric.WithAttributeSet(attribute.NewSet(name))
	now := d.Now()
	if b := d.Budget(); b != nil {
		out.ObserveFloat64(i.tokens, b.Balance(now), by)
		if stocked, ok := b.(interface{ Stock() float64 }); ok {
			out.ObserveFloat64(i.stock, stocked.Stock(), by)
		}
	}
	i.cooldowns(d, label, now, out)
	if b := d.Breaker(); b != nil {
		is := b.State(now)
		for s := breaker.Closed; s <= breaker.HalfOpen; s++ {
			out.ObserveInt64(i.state, zeroOrOne(s == is), metric.WithAttributes(name, keyState.String(s.String())))
		}
	}
	if l := d.Limiter(); l != nil {
		out.ObserveInt64(i.inFlight, int64(l.InFlight()), by)
		out.ObserveInt64(i.waiting, int64(l.Waiting()), by)
	}
	if h := d.Hedger(); h != nil {
		out.ObserveInt64(i.hedgesInFlight, int64(h.InFlight()), by)
	}
	if th := d.Throttle(); th != nil {
		s := th.State(now)
		out.ObserveFloat64(i.refusal, s.Refusal, by)
		if s.Limiting {
			out.ObserveFloat64(i.rate, s.Rate, by)
		}
	}
}

func (i *instruments) gate(s admission.Snapshot, label string, out metric.Observer) {
	by := metric.WithAttributes(attribute.String(keyGate, label))
	out.ObserveInt64(i.admissionLimit, int64(s.Limit), by)
	out.ObserveInt64(i.admissionInFlight, int64(s.InFlight), by)
	out.ObserveInt64(i.admissionWaiting, int64(s.Waiting), by)
	out.ObserveInt64(i.admissionPressed, zeroOrOne(s.Pressed), by)
}

func zeroOrOne(yes bool) int64 { return choice.Either[int64](yes, 1, 0) }
