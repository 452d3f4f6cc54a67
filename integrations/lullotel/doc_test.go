package lullotel

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/throttle"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, policy lull.Policy, charge func(context.Context) (string, error)) (string, error) {
	t, err := New()
	if err != nil {
		return "", err
	}
	defer t.Close()
	payments, err := lull.NewDependency("payments", policy, t.Options()...)
	if err != nil {
		return "", err
	}
	defer t.Watch(payments)()
	receipt, err := Do(ctx, t, payments, charge, lull.Operation("charge"))
	return receipt, err
}

func TestWhatTheDocsShow(t *testing.T) {
	receipt, err := packageComment(t.Context(), lull.Policy{}, func(context.Context) (string, error) { return "paid", nil })
	if err != nil || receipt != "paid" {
		t.Errorf("%q, %v", receipt, err)
	}
}

// described is a metric: kind, unit and label keys.
type described struct{ kind, unit, labels string }

// The table in docs/telemetry.md matches the output: each metric, its kind, its unit, and its
// labels.
func TestTheTableIsWhatThereIs(t *testing.T) {
	text := must.Have(os.ReadFile("../../docs/telemetry.md"))
	promised := make(map[string]described)
	row := regexp.MustCompile("(?m)^\\| `([a-z._]+)` \\| (\\w+) \\| `(.*?)` \\| (.*?) \\| .+ \\|$")
	for _, f := range row.FindAllStringSubmatch(string(text), -1) {
		labels := strings.Fields(strings.ReplaceAll(f[4], "`", ""))
		slices.Sort(labels)
		promised[f[1]] = described{f[2], f[3], strings.Join(labels, " ")}
	}
	got := emitted(t, everything(t))
	for name, want := range promised {
		check.Equal(t, got[name], want, "%s, and as documented", name)
	}
	for name := range got {
		if _, ok := promised[name]; !ok {
			t.Errorf("%s is not documented", name)
		}
	}
	if len(promised) < 30 {
		t.Errorf("%d metrics in the table: it is not read as a whole", len(promised))
	}
}

// everything returns a rig with at least one value of every metric.
func everything(t *testing.T) *rig {
	r := newRig(t)
	ctx, _ := r.StartGRPC(t.Context(), "dns:///d", "/s/m")
	first := lull.Verdict{Kind: lull.KindTransient, Code: "503"}
	for _, e := range []lull.Event{
		{Kind: event.RetryScheduled, Attempt: 1, EndedAttempt: 1, AttemptTook: 1, Delay: time.Second, Verdict: first},
		{Kind: event.CallEnded, Attempt: 2, EndedAttempt: 2, AttemptTook: 1, Elapsed: 3, Waited: 1},
		{Kind: event.HedgeStarted, Attempt: 2},
		{Kind: event.HedgeRefused, Reason: engine.TooManyLate},
		{Kind: event.CallEnded, Reason: engine.CircuitOpen},
		{Kind: event.CircuitChanged, Circuit: &breaker.Change{To: breaker.Open, MetricsOnly: true}},
		{Kind: event.CallEnded, Attempt: 2, EndedAttempt: 2, AttemptTook: 1, Elapsed: 3}, // a hedged one now
	} {
		e.Dependency, e.Operation = "d", "/s/m"
		r.Observe(ctx, e)
	}
	p := steady()
	p.Attempts = 1
	p.Breaker.Off, p.Budget.Unlimited = false, false
	p.Limit = bulkhead.Config{InFlight: 1}
	p.Throttle.Mode = throttle.Cubic
	p.Hedge = hedge.Config{Attempts: 2}
	d := dependencyOn(t, r, "d", p)
	now := d.Now()
	d.Throttle().Start(now, nil)
	d.Throttle().Done(now, throttle.RateLimited)
	r.Watch(d)

	tell := r.Admission("api")
	tell(admission.Event{Kind: admission.Admission, Waited: 1})
	tell(admission.Event{Kind: admission.Refusal, Decision: admission.Decision{Reason: admission.Full}})
	c := must.Have(admission.New(admission.Config{}))
	r.WatchGate("api", admission.NewGate(c))

	m := must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{}))
	h := r.Handler("orders", "memory", func(context.Context, *queue.Message) error { return nil })
	consumer := must.Have(queue.New("orders", m, dependencyOn(t, r, "orders", queue.Policy()), h, queue.Config{}))
	r.WatchConsumer("orders", consumer)
	r.Queue(ctx, queue.Event{Kind: queue.EventSettled, Queue: "orders", Outcome: queue.DeadLetter, Reason: "permanent", Code: "x", Tries: 1, Attempt: 1})
	r.Queue(ctx, queue.Event{Kind: queue.EventPaused, Queue: "orders"})
	return r
}

func emitted(t *testing.T, r *rig) map[string]described {
	var m metricdata.ResourceMetrics
	must.Succeed(r.reader.Collect(context.Background(), &m))
	all := make(map[string]described)
	for _, s := range m.ScopeMetrics {
		for _, x := range s.Metrics {
			kind, keys := "?", make(map[string]bool)
			switch d := x.Data.(type) {
			case metricdata.Sum[int64]:
				if d.IsMonotonic {
					kind = "counter"
				}
			case metricdata.Sum[float64]:
				if d.IsMonotonic {
					kind = "counter"
				}
			case metricdata.Gauge[int64], metricdata.Gauge[float64]:
				kind = "gauge"
			case metricdata.Histogram[int64], metricdata.Histogram[float64]:
				kind = "histogram"
			}
			for _, p := range points(x.Data) {
				for _, kv := range p.attributes.ToSlice() {
					keys[string(kv.Key)] = true
				}
			}
			all[x.Name] = described{kind, x.Unit, strings.Join(slices.Sorted(maps.Keys(keys)), " ")}
		}
	}
	return all
}
