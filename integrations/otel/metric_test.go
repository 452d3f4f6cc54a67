package lullotel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/throttle"
)

func TestEveryReasonHasItsOutcome(t *testing.T) {
	for _, c := range []struct {
		reason   lull.Reason
		attempts int
		want     string
	}{
		{lull.Succeeded, 1, "success_first"}, {lull.Succeeded, 2, "success_retry"},
		{lull.FailedPermanent, 1, "failed_terminal"}, {lull.ServerSaidStop, 1, "failed_terminal"},
		{lull.UnsafeToRepeat, 1, "failed_terminal"}, {lull.CannotReplay, 1, "failed_terminal"},
		{lull.HintTooLong, 1, "failed_terminal"}, {lull.Unanswered, 1, "failed_terminal"}, {lull.RetriedAbove, 1, "failed_terminal"},
		{lull.AttemptsExhausted, 3, "failed_exhausted"}, {lull.BudgetExhausted, 2, "failed_budget"},
		{lull.DeadlineReached, 0, "failed_deadline"}, {lull.DeadlineReached, 2, "failed_deadline"},
		{lull.CircuitOpen, 0, "failed_breaker"}, {lull.Limited, 0, "failed_limited"}, {lull.HeldBack, 1, "failed_limited"},
		{lull.CallerCanceled, 1, "cancelled"}, {lull.Reason(200), 1, "failed_terminal"},
	} {
		r := newRig(t)
		r.Observe(t.Context(), lull.Event{Kind: lull.EventCallEnded, Dependency: "d", Operation: "o", Reason: c.reason, Attempt: c.attempts, Elapsed: time.Millisecond})
		all := r.collect(t)
		for o := range outcomes {
			want := 0.0
			if o.String() == c.want {
				want = 1
			}
			if n := value(t, all, "retry.calls", "dependency", "d", "operation", "o", "outcome", o.String()); n != want {
				t.Errorf("%v after %d attempts: %v calls of %v, want %v", c.reason, c.attempts, n, o, want)
			}
			if n := value(t, all, "retry.call.duration", "outcome", o.String()); n != want {
				t.Errorf("%v: %v durations of %v, want %v", c.reason, n, o, want)
			}
		}
		if n := value(t, all, "retry.attempts"); n != float64(c.attempts) {
			t.Errorf("%v: %v attempts, want %d", c.reason, n, c.attempts)
		}
		if n := value(t, all, "retry.call.failures"); (n == 1) == (c.reason == lull.Succeeded) {
			t.Errorf("%v: %v failures", c.reason, n)
		}
	}
}

// All series of an operation are there from its first call on.
func TestSeriesBeginAtZero(t *testing.T) {
	r := newRig(t)
	r.Observe(t.Context(), lull.Event{Kind: lull.EventCallEnded, Dependency: "d", Attempt: 1})
	all := r.collect(t)
	if n := series(all["retry.calls"]); n != int(outcomes) {
		t.Errorf("%d series of retry.calls, want %d", n, outcomes)
	}
	if series(all["retry.attempts"]) != 2 || series(all["retry.budget.denied"]) != 1 || series(all["retry.server_hints"]) != 3 {
		t.Error("a series is missing")
	}
}

// What the metrics say is what the operations have seen, for random operations under
// policies that end calls in all ways, with and without a record in the context.
func TestMetricsAreWhatOperationsSaw(t *testing.T) {
	for _, wrapped := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { saw(t, wrapped) })
	}
}

func saw(t *testing.T, wrapped bool) {
	random := rand.New(rand.NewPCG(7, 7))
	r := newRig(t)
	p := steady()
	p.Budget.Unlimited = false
	p.Breaker.Off = false
	p.Deadline, p.AttemptTimeout = 200*time.Millisecond, 60*time.Millisecond
	p.HintLimit = 50 * time.Millisecond
	d := dependencyOn(t, r, "d", p, lull.WithRand(rand.New(rand.NewPCG(8, 8)).Uint64))
	want := make(map[string]float64)
	var inAttempts, inCalls time.Duration
	for i := range 3000 {
		ctx, cancel := context.WithCancel(context.Background())
		if random.IntN(10) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(100))*time.Millisecond)
		}
		if random.IntN(10) == 0 {
			time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, cancel)
		}
		down := i%300 > 270 // for long enough to open the circuit
		bad := down || random.IntN(3) == 0
		attempts := 0
		began := time.Now()
		op := func(ctx context.Context) (err error) {
			attempts++
			want["attempts"]++
			defer func(from time.Time) {
				if err != nil {
					want["failed"]++
				}
				if attempts > 1 || err != nil {
					want["timed"]++
					if attempts > 1 {
						want["timed again"]++
					}
					inAttempts += time.Since(from)
				}
			}(time.Now())
			select {
			case <-time.After(time.Duration(1+random.IntN(30)) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			if !bad {
				return nil
			}
			switch random.IntN(8) {
			case 0:
				if down {
					return errDown
				}
				return nil
			case 1:
				return errors.New("unknown")
			case 2:
				return lull.RetryAfter(errDown, time.Duration(random.IntN(80))*time.Millisecond)
			}
			return errDown
		}
		var err error
		if wrapped {
			err = Run(ctx, r.Telemetry, d, op)
		} else {
			err = lull.Run(ctx, d, op)
		}
		inCalls += time.Since(began)
		cancel()
		outcome := SuccessFirst
		if e, ok := errors.AsType[*lull.Error](err); ok {
			outcome = OutcomeOf(e.Reason, e.Attempts)
			want["reason "+e.Reason.String()]++
			switch e.Reason {
			case lull.BudgetExhausted:
				want["denied"]++
			case lull.HintTooLong:
				want["too long"]++
			}
		} else if attempts > 1 {
			outcome = SuccessRetry
		}
		want[outcome.String()]++
		if random.IntN(20) == 0 {
			time.Sleep(time.Second)
		}
	}
	all := r.collect(t)
	for o := range outcomes {
		if n := value(t, all, "retry.calls", "outcome", o.String()); n != want[o.String()] {
			t.Errorf("%v: %v calls, want %v", o, n, want[o.String()])
		}
		if want[o.String()] == 0 && o != FailedLimited && o != FailedExhausted {
			t.Errorf("no call was %v: the test tests too little", o)
		}
	}
	for key, n := range want {
		if reason, ok := strings.CutPrefix(key, "reason "); ok && value(t, all, "retry.call.failures", "reason", reason) != n {
			t.Errorf("%s: %v, want %v", reason, value(t, all, "retry.call.failures", "reason", reason), n)
		}
	}
	for _, c := range []struct {
		name string
		want float64
		in   []string
	}{
		{"retry.attempts", want["attempts"], nil},
		{"retry.budget.denied", want["denied"], nil},
		{"retry.server_hints", want["too long"], []string{"result", "too_long"}},
	} {
		if n := value(t, all, c.name, c.in...); n != c.want {
			t.Errorf("%s: %v, want %v", c.name, n, c.want)
		}
	}
	failed, timed := value(t, all, "retry.attempt.failures"), value(t, all, "retry.attempt.duration")
	if !wrapped { // some cannot be told then
		if failed < 0.97*want["failed"] || failed > 1.03*want["failed"] || timed > want["timed"] {
			t.Errorf("unwrapped: %v failures and %v times, want about %v and at most %v", failed, timed, want["failed"], want["timed"])
		}
		return
	}
	if failed != want["failed"] || timed != want["timed"] {
		t.Errorf("%v failures and %v times of attempts, want %v and %v", failed, timed, want["failed"], want["timed"])
	}
	if n := value(t, all, "retry.attempt.duration", "resend", "true"); n != want["timed again"] {
		t.Errorf("%v times of later attempts, want %v", n, want["timed again"])
	}
	if s := sum(all["retry.attempt.duration"]); !near(s, inAttempts.Seconds()) {
		t.Errorf("attempts took %v s, want %v", s, inAttempts.Seconds())
	}
	if s := sum(all["retry.call.duration"]); !near(s, inCalls.Seconds()) {
		t.Errorf("calls took %v s, want %v", s, inCalls.Seconds())
	}
}

func sum(a metricdata.Aggregation) (s float64) {
	for _, p := range a.(metricdata.Histogram[float64]).DataPoints {
		s += p.Sum
	}
	return s
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// Names that come from outside cannot make more series than was allowed, however many
// there are, from however many goroutines; and nothing is lost.
func TestCardinalityIsBounded(t *testing.T) {
	l := Limits{Dependencies: 5, Operations: 4, Codes: 3}
	r := newRig(t, WithLimits(l))
	const workers, each = 8, 2000
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				e := lull.Event{Kind: lull.EventCallEnded, Attempt: 1, Dependency: fmt.Sprint("d", i%100), Operation: fmt.Sprint("o", w, i), Elapsed: time.Millisecond}
				switch i % 4 {
				case 0:
					e.Operation = strings.Repeat("x", 1000) + fmt.Sprint(i)
				case 1:
					e.Operation = "\xff" + fmt.Sprint(i)
				case 2:
					e.Operation = Other
				}
				r.Observe(t.Context(), e)
				e.Reason, e.Verdict = lull.FailedPermanent, lull.Verdict{Kind: lull.KindPermanent, Code: fmt.Sprint("code", w, i)}
				r.Observe(t.Context(), e)
				e.Kind, e.Delay = lull.EventRetryScheduled, time.Millisecond
				r.Observe(t.Context(), e)
				change := &breaker.Change{From: breaker.State(i % 7), To: breaker.State(i % 5), Reason: breaker.Reason(i)}
				r.Observe(t.Context(), lull.Event{Kind: lull.EventCircuitChanged, Dependency: e.Dependency, Circuit: change})
				_, c := r.Start(t.Context(), fmt.Sprint("d", w, i))
				c.End(nil)
			}
		})
	}
	all.Wait()
	got := r.collect(t)
	pairs := (l.Dependencies + 1) * (l.Operations + 1)
	for name, most := range map[string]int{
		"retry.calls": pairs * int(outcomes), "retry.attempts": pairs * 2, "retry.call.duration": pairs * int(outcomes), "retry.attempt.duration": pairs * 2,
		"retry.attempt.failures": (l.Dependencies + 1) * (l.Codes + 1), "retry.delay": l.Dependencies + 1, "retry.budget.denied": l.Dependencies + 1,
		"retry.breaker.transitions": (l.Dependencies + 1) * (maxChanges + 1), "retry.server_hints": (l.Dependencies + 1) * 3,
		"retry.call.failures": (l.Dependencies + 1) * 15,
	} {
		if n := series(got[name]); n == 0 || n > most {
			t.Errorf("%s has %d series, want some, at most %d", name, n, most)
		}
	}
	for _, p := range got["retry.calls"].(metricdata.Sum[int64]).DataPoints {
		if v, _ := p.Attributes.Value("operation"); !utf8.ValidString(v.AsString()) || len(v.AsString()) > 128 {
			t.Errorf("label %q", v.AsString())
		}
	}
	if n := value(t, got, "retry.calls"); n != 2*workers*each {
		t.Errorf("%v calls counted of %d", n, 2*workers*each)
	}
	if n := value(t, got, "retry.attempt.failures"); n != 2*workers*each {
		t.Errorf("%v failures counted of %d", n, 2*workers*each)
	}
	if n := value(t, got, "retry.calls", "dependency", Other); n == 0 {
		t.Error("nothing is counted under " + Other)
	}
	names := make(map[string]bool)
	for _, s := range r.spans.GetSpans() {
		names[s.Name] = true
	}
	if len(names) > l.Dependencies+1 {
		t.Errorf("%d names of spans", len(names))
	}
}

func TestHintsHedgesAndChanges(t *testing.T) {
	r := newRig(t)
	on := func(e lull.Event) {
		e.Dependency = "d"
		r.Observe(t.Context(), e)
	}
	on(lull.Event{Kind: lull.EventRetryScheduled, Attempt: 1, Delay: time.Second, Verdict: lull.Verdict{Kind: lull.KindThrottled, After: time.Second, Code: "429"}})
	on(lull.Event{Kind: lull.EventRetryScheduled, Attempt: 1, Delay: time.Second, Verdict: lull.Verdict{Kind: lull.KindTransient, Code: "503"}})
	on(lull.Event{Kind: lull.EventCallEnded, Attempt: 1, Reason: lull.ServerSaidStop, Verdict: lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}})
	on(lull.Event{Kind: lull.EventHedgeStarted, Attempt: 2})
	on(lull.Event{Kind: lull.EventHedgeRefused, Reason: lull.NotHedged})
	on(lull.Event{Kind: lull.EventHedgeRefused, Reason: lull.BudgetExhausted})
	on(lull.Event{Kind: lull.EventBudgetExhausted, Reason: lull.BudgetExhausted})
	for range 2 {
		on(lull.Event{Kind: lull.EventCircuitChanged, Circuit: &breaker.Change{To: breaker.Open, Reason: breaker.Consecutive}})
	}
	on(lull.Event{Kind: lull.EventCircuitChanged, Circuit: &breaker.Change{To: breaker.Open, Reason: breaker.FailureRate, MetricsOnly: true}})
	on(lull.Event{Kind: lull.EventCircuitChanged})
	all := r.collect(t)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "retry.server_hints", []string{"result", "honoured"}},
		{1, "retry.server_hints", []string{"result", "dont_retry"}},
		{0, "retry.server_hints", []string{"result", "too_long"}},
		{2, "retry.delay", nil},
		{1, "retry.hedges", []string{"result", "started"}},
		{1, "retry.hedges", []string{"result", "refused", "reason", "not_hedged"}},
		{1, "retry.hedges", []string{"result", "refused", "reason", "budget_exhausted"}},
		{1, "retry.budget.denied", []string{"dependency", "d"}},
		{2, "retry.breaker.transitions", []string{"from", "closed", "to", "open", "reason", "consecutive_failures"}},
		{1, "retry.breaker.transitions", []string{"metrics_only", "true"}},
		{2, "retry.attempt.failures", []string{"error.type", "503"}},
		{1, "retry.attempt.failures", []string{"error.type", "429"}},
	} {
		if n := value(t, all, c.name, c.labels...); n != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.labels, n, c.want)
		}
	}
}

func TestWatch(t *testing.T) {
	r := newRig(t)
	p := steady()
	p.Breaker.Off, p.Budget.Unlimited = false, false
	p.Limit = bulkhead.Config{Limit: 3}
	p.Throttle.Mode = throttle.Adaptive
	a, b := dependencyOn(t, r, "a", p), dependencyOn(t, r, "b", p)
	reg, err := lull.NewRegistry(steady(), 0, r.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	reg.Get("host")
	twin := a.Clone("a") // of two with one name the first is shown
	twin.Breaker().ForceOpen(twin.Now())
	stop := r.Watch(a, b, nil, twin)
	r.WatchAll(reg.All)
	b.Breaker().ForceOpen(b.Now())
	hold, let := make(chan struct{}), make(chan struct{})
	go lull.Run(context.Background(), a, func(context.Context) error { hold <- struct{}{}; <-let; return nil })
	<-hold
	all := r.collect(t)
	close(let)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "retry.budget.tokens", []string{"dependency", "a"}},
		{1, "retry.breaker.state", []string{"dependency", "a", "state", "closed"}},
		{0, "retry.breaker.state", []string{"dependency", "a", "state", "open"}},
		{1, "retry.breaker.state", []string{"dependency", "b", "state", "open"}},
		{1, "retry.breaker.state", []string{"dependency", "b"}},
		{1, "retry.limit.in_flight", []string{"dependency", "a"}},
		{0, "retry.limit.in_flight", []string{"dependency", "b"}},
	} {
		if n := value(t, all, c.name, c.labels...); n != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.labels, n, c.want)
		}
	}
	if n := series(all["retry.breaker.state"]); n != 6 {
		t.Errorf("%d series of breakers' states, want 6", n)
	}
	if n := series(all["retry.throttle.refusal"]); n != 2 {
		t.Errorf("%d series of throttles, want 2", n)
	}
	stop()
	if n := series(r.collect(t)["retry.budget.tokens"]); n != 0 {
		t.Errorf("%d budgets are shown after stop", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := series(r.collect(t)["retry.calls"]); n != 0 {
		t.Errorf("%d series after Close", n)
	}
}

func TestHedgedCalls(t *testing.T) {
	r := newRig(t)
	p := steady()
	p.Attempts = 1
	p.Hedge = hedge.Config{Attempts: 3, Delay: time.Millisecond, Share: -1}
	d := dependencyOn(t, r, "d", p)
	var mu sync.Mutex
	attempts := 0
	for range 50 {
		var first sync.Once
		_, err := DoHedged(t.Context(), r.Telemetry, d, func(ctx context.Context) (int, error) {
			mu.Lock()
			attempts++
			mu.Unlock()
			slow := false
			first.Do(func() { slow = true })
			if slow {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := r.collect(t)
	if n := value(t, all, "retry.attempts"); n != float64(attempts) {
		t.Errorf("%v attempts counted of %d", n, attempts)
	}
	if n := value(t, all, "retry.hedges", "result", "started"); n != float64(attempts-50) {
		t.Errorf("%v hedges counted of %d", n, attempts-50)
	}
	if n := value(t, all, "retry.calls", "outcome", "success_retry"); n != 50 {
		t.Errorf("%v calls, want 50", n)
	}
	for _, s := range r.spans.GetSpans() {
		if len(s.Events) == 0 || s.Events[0].Name != "retry.hedge.started" {
			t.Fatalf("events %v", s.Events)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Option{"limits": WithLimits(Limits{Operations: -1}), "spans": WithSpans(9)} {
		if _, err := New(WithMeterProvider(noop.NewMeterProvider()), o); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(err)
		}
	}
	err := Limits{Dependencies: -1, Operations: -2, Codes: 1e6}.Validate()
	for _, field := range []string{"Dependencies", "Operations", "Codes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, err := New(nil); err != nil { // the global providers, which do nothing
		t.Error(err)
	}
}

// StartGRPC makes A96's metrics, of calls with retries only.
func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := dependencyOn(t, r, "dns:///pay /pay.V1/", steady())
		for fails := range 3 {
			n := 0
			ctx, c := r.StartGRPC(t.Context(), "dns:///pay", "/pay.V1/Charge")
			err := lull.Run(ctx, d, func(context.Context) error {
				if n++; n <= fails {
					return errDown
				}
				return nil
			}, lull.Operation("/pay.V1/Charge"))
			c.End(err)
		}
		all := r.collect(t)
		is := []string{"grpc.method", "pay.V1/Charge", "grpc.target", "dns:///pay"}
		if value(t, all, "grpc.client.call.retries", is...) != 2 || value(t, all, "grpc.client.call.retry_delay", is...) != 2 || value(t, all, "grpc.client.call.hedges") != 0 {
			t.Errorf("%v", all["grpc.client.call.retries"])
		}
		if h := all["grpc.client.call.retries"].(metricdata.Histogram[int64]).DataPoints[0]; h.Sum != 3 || len(h.Bounds) != 5 {
			t.Errorf("%v retries in %v, want 3", h.Sum, h.Bounds)
		}
		if s := sum(all["grpc.client.call.retry_delay"]); !near(s, .04) {
			t.Errorf("waits of %v s, want 0.04", s)
		}
		if s := r.spans.GetSpans()[2]; s.Name != "call dns:///pay /pay.V1/ /pay.V1/Charge" || attributes(s.Attributes)["retry.dependency"] != "dns:///pay /pay.V1/" {
			t.Errorf("span %s %v", s.Name, s.Attributes)
		}
	})
}
