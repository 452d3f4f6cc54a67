//go:build servers

package dashboards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	lullotel "github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
)

// The run: all is well, then the server fails, at first not every time, then it is well
// again. This repeats while there is a panel that would have nothing to show.
const (
	pushes   = 250 * time.Millisecond
	well     = 3 * time.Second
	outage   = 5 * time.Second
	recovery = 3 * time.Second
	window   = 3  // seconds, for $__rate_interval
	pushed   = 40 // pushes in all, at least
	rounds   = 6  // at most
)

// shop is the program under test: a client of an HTTP server that has admission control, a
// client of something that is hedged, and a consumer of a queue.
type shop struct {
	*tally
	telemetry *lullotel.Telemetry
	reader    *sdkmetric.ManualReader
	t         *testing.T
	rand      *rand.Rand // safe for concurrent use
	client    *http.Client
	url       string
	broken    atomic.Int64 // percent of answers that are failures
	payments  *lull.Dependency
	stock     *lull.Dependency
	gate      *admission.Gate
	broker    *queue.MemoryBroker
	consumer  *queue.Consumer
	snapshots []snapshot
}

func openShop(t *testing.T) *shop {
	s := &shop{tally: &tally{series: make(map[string]float64)}, reader: sdkmetric.NewManualReader(), rand: seed.Rand(t), t: t}
	s.telemetry = must.Have(lullotel.New(lullotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))), lullotel.WithTracerProvider(noop.NewTracerProvider())))
	observed := []lull.Option{lull.WithObserver(both{s.tally, s.telemetry}), lull.WithTiming(), lull.WithRand(seed.Source(t))}

	// The server: four requests at a time, of 1 to 20 ms each.
	toldAdmission := s.telemetry.Admission("api")
	control := must.Have(admission.New(admission.Config{Limit: 4, MaxWait: 20 * time.Millisecond}, admission.WithRand(seed.Source(t)), admission.WithObserver(func(e admission.Event) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		toldAdmission(e)
		s.request(e)
	})))
	s.gate = admission.NewGate(control)
	middle := must.Have(s.gate.Middleware())
	server := httptest.NewServer(middle.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(1+s.rand.IntN(20)) * time.Millisecond)
		if s.rand.Int64N(100) >= s.broken.Load() {
			return
		}
		switch s.rand.IntN(10) {
		case 0:
			w.Header().Set("X-Should-Retry", "false")
		case 1:
			w.Header().Set("Retry-After-Ms", "30")
		case 2:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})))
	t.Cleanup(server.Close)
	s.url = server.URL

	policy := lull.Policy{Attempts: 3, Deadline: 400 * time.Millisecond, AttemptTimeout: 200 * time.Millisecond,
		Backoff: backoff.Schedule{Base: 20 * time.Millisecond, Cap: 200 * time.Millisecond}}
	policy.Breaker = breaker.Config{FailureRate: .6, MinCalls: 20, Window: 2 * time.Second, OpenFor: time.Second, OpenMax: 2 * time.Second}
	s.payments = must.Have(lull.NewDependency("payments", policy, observed...))
	calls := must.Have(lullhttp.New(policy, lullhttp.WithDependencies(func(*http.Request) *lull.Dependency { return s.payments })))
	s.client = &http.Client{Transport: s.telemetry.Transport(calls)}

	hedged := lull.Policy{Attempts: 1, Hedge: hedge.Config{Attempts: 2, Delay: 10 * time.Millisecond, Share: .5}, Deadline: time.Second}
	s.stock = must.Have(lull.NewDependency("stock", hedged, observed...))
	t.Cleanup(s.telemetry.Watch(s.payments, s.stock))
	t.Cleanup(s.telemetry.WatchGate("api", s.gate))

	s.broker = must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{}))
	p := queue.Policy()
	p.Attempts = 4
	p.Backoff = backoff.Schedule{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}
	p.Breaker.Off = true
	mail := must.Have(lull.NewDependency("mail", p, lull.WithRand(seed.Source(t))))
	s.consumer = must.Have(queue.New("orders", s.broker, mail, func(ctx context.Context, m *queue.Message) error {
		if s.rand.Int64N(100) < s.broken.Load() {
			return lull.Transient(errors.New("mail server is down"))
		}
		return nil
	}, queue.Config{Concurrency: 4}, queue.WithObserver(func(ctx context.Context, e queue.Event) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		s.telemetry.Queue(ctx, e)
		s.message(e)
	})))
	return s
}

// awaitEvents waits until each dependency has had an event. lullotel knows of a dependency when its
// first call begins, and the tally when that has an event.
func (s *shop) awaitEvents() {
	for _, d := range []*lull.Dependency{s.payments, s.stock} {
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			if _, ok := s.copy()[key("retry_budget_denied_total", "dependency", d.Name())]; ok {
				break
			}
			if time.Since(began) > time.Minute {
				s.t.Fatalf("no event of %s", d.Name())
			}
		}
	}
}

// gauges are read from the things themselves.
func (s *shop) gauges() map[string]float64 {
	g := make(map[string]float64)
	for _, d := range []*lull.Dependency{s.payments, s.stock} {
		now := d.Now()
		g[key("retry_budget_tokens", "dependency", d.Name())] = d.Budget().Balance(now)
		g[key("retry_budget_stock", "dependency", d.Name())] = budget.DefaultStock
		for st := breaker.Closed; st <= breaker.HalfOpen; st++ {
			v := 0.0
			if d.Breaker().State(now) == st {
				v = 1
			}
			g[key("retry_breaker_state", "dependency", d.Name(), "state", st.String())] = v
		}
	}
	a := s.gate.Snapshot()
	g["admission_in_flight|admission=api"], g["admission_waiting|admission=api"], g["admission_limit|admission=api"] = float64(a.InFlight), float64(a.Waiting), float64(a.Limit)
	return g
}

// push sends OTLP to Prometheus until ctx ends. A sample's time is when it was collected, which is
// made the same for all of one push, to the millisecond: Prometheus counts in those.
func (s *shop) push(ctx context.Context, p *server) {
	otlp, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(p.url+"/api/v1/otlp/v1/metrics"))
	for tick := time.Tick(pushes); ctx.Err() == nil && err == nil; <-tick {
		s.mu.Lock()
		at := time.UnixMilli(time.Now().UnixMilli())
		var all *metricdata.ResourceMetrics
		var is map[string]float64
		all, is, err = s.collect()
		s.snapshots = append(s.snapshots, snapshot{float64(at.UnixMilli()) / 1000, is})
		s.mu.Unlock()
		if err == nil {
			stamp(all, at)
			err = otlp.Export(context.Background(), all)
		}
	}
	if err != nil {
		s.t.Error(err)
	}
}

// collect returns the metrics of this moment, and the sums of the events. Gauges change without
// events: they are read before and after, until they agree, and no request has come or gone
// meanwhile.
func (s *shop) collect() (*metricdata.ResourceMetrics, map[string]float64, error) {
	for range 1000 {
		gate, before := s.gate.Snapshot(), s.gauges()
		all := new(metricdata.ResourceMetrics)
		if err := s.reader.Collect(context.Background(), all); err != nil {
			return nil, nil, err
		}
		if maps.Equal(before, s.gauges()) && gate == s.gate.Snapshot() {
			is := s.copy()
			maps.Copy(is, before)
			maps.Copy(is, cooldowns(all))
			return all, is, nil
		}
	}
	return nil, nil, errors.New("gauges do not come to rest")
}

// cooldowns returns those that were collected: each moment has others.
func cooldowns(all *metricdata.ResourceMetrics) map[string]float64 {
	g := make(map[string]float64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if points, ok := m.Data.(metricdata.Gauge[float64]); ok && m.Name == "retry.cooldown" {
				for _, p := range points.DataPoints {
					dependency, _ := p.Attributes.Value("dependency")
					cause, _ := p.Attributes.Value("cause")
					g[key("retry_cooldown_seconds", "dependency", dependency.AsString(), "cause", cause.AsString())] = p.Value
				}
			}
		}
	}
	return g
}

// stamp gives all samples the time at. What the types of points have in common is only the names of their fields.
func stamp(all *metricdata.ResourceMetrics, at time.Time) {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			points := reflect.ValueOf(m.Data).FieldByName("DataPoints")
			for i := range points.Len() {
				points.Index(i).FieldByName("Time").Set(reflect.ValueOf(at))
			}
		}
	}
}

// trade is the traffic, until ctx ends.
func (s *shop) trade(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	loop := func(every time.Duration, do func(context.Context)) {
		for ctx.Err() == nil {
			do(context.WithoutCancel(ctx))
			time.Sleep(time.Duration(s.rand.Int64N(2 * int64(every))))
		}
	}
	for range 6 {
		all.Go(func() {
			loop(40*time.Millisecond, func(ctx context.Context) {
				if s.rand.IntN(200) == 0 { // a caller that goes
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
				}
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
				if resp, err := s.client.Do(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
	for range 2 {
		all.Go(func() {
			loop(40*time.Millisecond, func(ctx context.Context) {
				lullotel.DoHedged(ctx, s.telemetry, s.stock, func(ctx context.Context) (int, error) {
					wait := time.Duration(s.rand.IntN(12)) * time.Millisecond
					select {
					case <-time.After(wait):
					case <-ctx.Done():
						return 0, ctx.Err()
					}
					if s.rand.Int64N(100) < s.broken.Load()/2 {
						return 0, lull.Transient(errors.New("down"))
					}
					return 1, nil
				}, lull.Operation("count"))
			})
		})
	}
	all.Go(func() {
		loop(40*time.Millisecond, func(ctx context.Context) {
			lullotel.DoOr(ctx, s.telemetry, s.payments, func(ctx context.Context) (int, error) {
				if s.rand.Int64N(100) < s.broken.Load() {
					return 0, lull.Transient(errors.New("down"))
				}
				return 1, nil
			}, func(context.Context, *lull.Error) (int, error) {
				time.Sleep(time.Duration(s.rand.IntN(3)) * time.Millisecond)
				if s.rand.IntN(10) == 0 {
					return 0, errors.New("nothing stored")
				}
				return 2, nil
			}, lull.Operation("fees"))
		})
	})
	all.Go(func() {
		loop(50*time.Millisecond, func(ctx context.Context) { s.broker.Send(ctx, queue.Outgoing{Body: []byte("order")}) })
	})
	all.Go(func() { s.consumer.Run(ctx) })
}

// expected returns what each panel's queries should return, by title and legend.
func expected(r reckoner) map[string][]group {
	d, none := []string{"dependency"}, []string{}
	calls := func(where ...string) group { return r.rate(none, "retry_calls_total", where...) }
	breakers := r.nowBy(d, "retry_breaker_state", "state", "half-open")
	for k, v := range r.nowBy(d, "retry_breaker_state", "state", "open") {
		breakers[k] += 2 * v
	}
	le := []string{"le"}
	took := r.rate(le, "retry_call_duration_seconds_bucket")
	tried := r.rate(le, "retry_attempt_duration_seconds_bucket").plus(r.rate(le, "retry_call_duration_seconds_bucket", "outcome", "success_first"))
	three := func(g group) []group { return []group{g.quantile(.5), g.quantile(.95), g.quantile(.99)} }
	resends := r.rate(d, "retry_attempts_total", "resend", "true")
	return map[string][]group{
		"Calls by result":                 {calls("outcome", "success_first"), calls("outcome", "success_retry"), calls("outcome", "degraded"), calls("outcome", "failed_*").plus(calls("outcome", "canceled"))},
		"Amplification":                   {r.rate(d, "retry_attempts_total").over(r.rate(d, "retry_calls_total"))},
		"Retries by endpoint":             {r.rate([]string{"dependency", "operation"}, "retry_attempts_total", "resend", "true")},
		"Degraded answers":                {r.rate(d, "retry_calls_total", "outcome", "degraded").over(r.rate(d, "retry_calls_total"))},
		"Retries that helped":             {r.rate(d, "retry_calls_total", "outcome", "success_retry").over(resends)},
		"Failed calls by reason":          {r.rate([]string{"reason"}, "retry_call_failures_total")},
		"Failed attempts by error":        {r.rate([]string{"error_type"}, "retry_attempt_failures_total")},
		"Outcomes":                        {r.sum([]string{"outcome"}, 1, "retry_calls_total")},
		"Calls held":                      {r.rate([]string{"in"}, "retry_held_seconds_total")},
		"Budget left of its stock":        {r.nowBy(d, "retry_budget_tokens").over(r.nowBy(d, "retry_budget_stock"))},
		"Cooldowns":                       {r.nowBy([]string{"dependency", "cause"}, "retry_cooldown_seconds")},
		"Waits before retries":            {r.sum(le, 1, "retry_delay_seconds_bucket")},
		"Duration of calls":               three(took),
		"Duration of attempts":            three(tried),
		"Retry budget":                    {r.nowBy(d, "retry_budget_tokens")},
		"Retries that the budget refused": {r.rate(d, "retry_budget_denied_total")},
		"Circuit breakers":                {breakers},
		"Changes of circuit breakers":     {r.sum([]string{"dependency", "to"}, 1, "retry_breaker_transitions_total")},
		"What servers said about retries": {r.rate([]string{"result"}, "retry_server_hints_total")},
		"Hedges":                          {r.rate([]string{"result"}, "retry_hedges_total")},
		"Requests refused":                {r.rate([]string{"reason", "attempt_class"}, "admission_shed_total")},
		"In flight, and the limit":        {r.nowBy(none, "admission_in_flight"), r.nowBy(none, "admission_waiting"), r.nowBy(none, "admission_limit")},
		"Wait of those that waited":       {r.rate(le, "admission_queue_wait_seconds_bucket").quantile(.99)},
		"Deliveries by outcome":           {r.rate([]string{"outcome"}, "consumer_deliveries_total")},
		"Dead letters":                    {r.nowBy([]string{"reason"}, "consumer_dlq_total")},
		"Attempt that a delivery was":     {r.rate(le, "consumer_attempt_bucket").quantile(.99)},
	}
}

// variables puts values for those of an expression.
var variables = strings.NewReplacer("$dependency", ".*", "$admission", ".*", "$queue", ".*", "$__rate_interval", fmt.Sprint(window, "s"))

// Demand 1 of issue 7: a program with real traffic and an outage, a real Prometheus that
// watches it, and every panel shows what the program's events add up to.
func TestPanels(t *testing.T) {
	s := openShop(t)
	p := startPrometheus(t)
	ctx, stop := context.WithCancel(t.Context())
	watched, unwatch := context.WithCancel(t.Context())
	var trade, watch sync.WaitGroup
	trade.Go(func() { s.trade(ctx) })
	s.awaitEvents()
	watch.Go(func() { s.push(watched, p) })
	for range rounds {
		time.Sleep(well)
		s.broken.Store(40)
		time.Sleep(outage / 3)
		s.broken.Store(100)
		time.Sleep(outage * 2 / 3)
		s.broken.Store(0)
		time.Sleep(recovery)
		if all := s.taken(); len(all) >= pushed && len(unshown(all)) == 0 {
			break
		}
	}
	stop()
	trade.Wait()
	time.Sleep(2 * pushes)
	unwatch()
	watch.Wait()

	all := s.taken()
	if len(all) < pushed {
		t.Fatalf("%d pushes", len(all))
	}
	begin, panels := s.snapshots[0].at, readDashboard().Panels
	for r := range moments(all) {
		want := expected(r)
		for _, panel := range panels {
			if panel.Title == "Requests by door" {
				continue // cmd/lull/internal/proxy/wiring has the proxy's, and a test
			}
			if len(want[panel.Title]) != len(panel.Targets) {
				t.Fatalf("nothing is expected of %s", panel.Title)
			}
			for i, q := range panel.Targets {
				got := p.ask(t, variables.Replace(q.Expr), begin+r.at)
				compare(t, fmt.Sprintf("%s, at %.1f s", panel.Title, r.at), q, got, want[panel.Title][i])
			}
		}
		if t.Failed() {
			return
		}
	}
	for title := range unshown(all) {
		t.Errorf("%s has shown nothing: the run tests too little", title)
	}
	t.Logf("%d pushes", len(all))
}

// taken returns the snapshots until now. Their times count from the first.
func (s *shop) taken() []snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := slices.Clone(s.snapshots)
	for i := range all {
		all[i].at = millis(all[i].at - s.snapshots[0].at)
	}
	return all
}

// moments returns the times at which panels are looked at, each with what was known then: a little after each third push.
func moments(all []snapshot) iter.Seq[reckoner] {
	return func(yield func(reckoner) bool) {
		for i := 4; i < len(all); i += 3 {
			if !yield(reckoner{snapshots: all, at: millis(all[i].at + .123), over: window}) {
				return
			}
		}
	}
}

// unshown returns the titles of the panels that would never show a value other than 0.
func unshown(all []snapshot) map[string]bool {
	titles := make(map[string]bool)
	for r := range moments(all) {
		for title, groups := range expected(r) {
			some := slices.ContainsFunc(groups, func(g group) bool {
				for _, v := range g {
					if v != 0 && !math.IsNaN(v) {
						return true
					}
				}
				return false
			})
			if before, seen := titles[title]; !seen || before {
				titles[title] = !some
			}
		}
	}
	maps.DeleteFunc(titles, func(_ string, nothing bool) bool { return !nothing })
	return titles
}

// millis is t to the millisecond, the unit of Prometheus.
func millis(t float64) float64 { return math.Round(t*1000) / 1000 }

// compare holds an answer against what is expected.
func compare(t *testing.T, what string, q query, got []answer, want group) {
	t.Helper()
	seen := make(group)
	for _, a := range got {
		var parts []string
		for _, name := range labelsOf(q) {
			parts = append(parts, plain(name, a.Metric[name]))
		}
		k := strings.Join(parts, " ")
		if _, twice := seen[k]; twice {
			t.Errorf("%s: %q twice in %v", what, k, got)
		}
		seen[k] = a.Value.V
	}
	for k, v := range want {
		g, ok := seen[k]
		same := v == g || math.IsNaN(v) && math.IsNaN(g) || math.Abs(g-v) <= 1e-9*max(1, math.Abs(v)) && !math.IsInf(v, 0)
		if !ok || !same {
			t.Errorf("%s (%s): %q is %v (there: %v), want %v", what, q.LegendFormat, k, g, ok, v)
		}
	}
	for k, v := range seen {
		if _, ok := want[k]; !ok {
			t.Errorf("%s (%s): %q is %v, and should not be there", what, q.LegendFormat, k, v)
		}
	}
}

// plain is the value of a label; the bounds of buckets as fmt has them, 1 and not 1.0.
func plain(label, v string) string {
	if f, err := strconv.ParseFloat(v, 64); label == "le" && err == nil {
		return fmt.Sprint(f)
	}
	return v
}

var inLegend = regexp.MustCompile(`{{(.*?)}}`)

// labelsOf are the labels in a legend.
func labelsOf(q query) (names []string) {
	for _, m := range inLegend.FindAllStringSubmatch(q.LegendFormat, -1) {
		names = append(names, m[1])
	}
	return names
}
