//go:build servers

package dashboards

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullotel "github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
)

// tally adds up events, knowing nothing of lullotel but the names of metrics and outcomes. What it hears
// lullotel hears in the same moment, under one lock, so that both have it, or neither, when
// Prometheus comes.
type tally struct {
	mu     sync.RWMutex // held for writing while Prometheus is answered
	inner  sync.Mutex
	series map[string]float64
}

func (t *tally) add(n float64, name string, labels ...string) {
	t.inner.Lock()
	t.series[key(name, labels...)] += n
	t.inner.Unlock()
}

var (
	delays    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	durations = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30}
	attempts  = []float64{1, 2, 3, 4, 5, 7, 10, 15, 25}
)

func (t *tally) put(v float64, buckets []float64, name string, labels ...string) {
	for _, le := range append(buckets[:len(buckets):len(buckets)], -1) {
		n, text := 0.0, fmt.Sprint(le)
		if le == -1 {
			n, text = 1, "+Inf"
		} else if v <= le {
			n = 1
		}
		t.add(n, name+"_bucket", append(labels[:len(labels):len(labels)], "le", text)...)
	}
}

// both is an observer of calls: lullotel's, and the tally.
type both struct {
	t    *tally
	next lull.Observer
}

func (b both) Observe(ctx context.Context, e lull.Event) {
	b.t.mu.RLock()
	defer b.t.mu.RUnlock()
	b.next.Observe(ctx, e)
	b.t.call(e)
}

func (t *tally) call(e lull.Event) {
	d := e.Dependency
	t.add(0, "retry_budget_denied_total", "dependency", d)
	for _, r := range []string{"honoured", "too_long", "dont_retry"} {
		t.add(0, "retry_server_hints_total", "dependency", d, "result", r)
	}
	for o := lullotel.SuccessFirst; o <= lullotel.Canceled; o++ {
		t.add(0, "retry_calls_total", "dependency", d, "operation", e.Operation, "outcome", o.String())
	}
	t.add(0, "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "false")
	t.add(0, "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "true")
	if e.Circuit != nil {
		why := strings.ReplaceAll(e.Circuit.Reason.String(), " ", "_")
		t.add(1, "retry_breaker_transitions_total", "dependency", d, "from", e.Circuit.From.String(), "to", e.Circuit.To.String(), "reason", why)
		return
	}
	if e.EndedAttempt > 0 {
		t.attempt(e)
	}
	switch e.Kind {
	case event.RetryScheduled:
		t.put(e.Delay.Seconds(), delays, "retry_delay_seconds", "dependency", d)
		if e.Verdict.After > 0 {
			t.add(1, "retry_server_hints_total", "dependency", d, "result", "honoured")
		}
	case event.HedgeStarted:
		t.add(1, "retry_hedges_total", "dependency", d, "result", "started")
	case event.HedgeRefused:
		t.add(1, "retry_hedges_total", "dependency", d, "result", "refused", "reason", e.Reason.String())
		if e.Reason == engine.BudgetExhausted {
			t.add(1, "retry_budget_denied_total", "dependency", d)
		}
	case event.CallEnded:
		outcome := lullotel.OutcomeOf(e.Reason, e.EndedAttempt).String()
		switch e.Reason {
		case engine.BudgetExhausted:
			t.add(1, "retry_budget_denied_total", "dependency", d)
		case engine.HintTooLong:
			t.add(1, "retry_server_hints_total", "dependency", d, "result", "too_long")
		case engine.Overloaded:
			t.add(1, "retry_server_hints_total", "dependency", d, "result", "dont_retry")
		}
		t.add(1, "retry_calls_total", "dependency", d, "operation", e.Operation, "outcome", outcome)
		if e.Elapsed > 0 { // those that were refused at once took no time
			t.put(e.Elapsed.Seconds(), durations, "retry_call_duration_seconds", "dependency", d, "operation", e.Operation, "outcome", outcome)
		}
		if e.Attempt > 0 {
			t.add(1, "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "false")
			t.add(float64(e.Attempt-1), "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "true")
		}
		if e.Reason != engine.Success {
			t.add(1, "retry_call_failures_total", "dependency", d, "reason", e.Reason.String())
		}
	}
}

// attempt is one that has ended: by a failure, or by a success, of which those of first
// attempts are in the duration of their calls.
func (t *tally) attempt(e lull.Event) {
	failed := e.Verdict.Kind != lull.KindSuccess
	if failed {
		t.add(1, "retry_attempt_failures_total", "dependency", e.Dependency, "error_type", e.Verdict.Code)
	}
	if failed || e.EndedAttempt > 1 {
		t.put(e.AttemptTook.Seconds(), durations, "retry_attempt_duration_seconds", "dependency", e.Dependency, "operation", e.Operation, "resend", fmt.Sprint(e.EndedAttempt > 1))
	}
}

func (t *tally) request(e admission.Event) {
	for _, p := range []string{"sheddable", "sheddable-plus", "critical", "critical-plus"} {
		for _, c := range []string{"first", "retry", "hedge"} {
			t.add(0, "admission_admitted_total", "admission", "api", "priority", p, "attempt_class", c)
		}
	}
	result := "admitted"
	by := []string{"admission", "api", "priority", e.Priority.String(), "attempt_class", e.Class.String()}
	switch e.Kind {
	case admission.Admission:
		t.add(1, "admission_admitted_total", by...)
	case admission.Refusal:
		result = "shed"
		t.add(1, "admission_shed_total", append(by, "reason", e.Decision.Reason.String())...)
	default:
		return
	}
	if e.Waited > 0 {
		t.put(e.Waited.Seconds(), delays, "admission_queue_wait_seconds", "admission", "api", "result", result)
	}
}

func (t *tally) message(e queue.Event) {
	for _, o := range []string{"ack", "retry", "defer", "dead-letter", "drop", "lease_lost", "settle_failed"} {
		t.add(0, "consumer_deliveries_total", "queue", "orders", "outcome", o)
	}
	switch e.Kind {
	case queue.EventSettled:
		t.add(1, "consumer_deliveries_total", "queue", "orders", "outcome", e.Outcome.String())
		if e.Outcome == queue.DeadLetter {
			t.add(1, "consumer_dlq_total", "queue", "orders", "reason", e.Reason)
		}
	case queue.EventLeaseLost, queue.EventSettleFailed:
		t.add(1, "consumer_deliveries_total", "queue", "orders", "outcome", e.Kind.String())
	default:
		return
	}
	if e.Tries > 0 {
		t.put(float64(e.Attempt), attempts, "consumer_attempt", "queue", "orders")
	}
}

// copy returns the present counts. The caller holds mu.
func (t *tally) copy() map[string]float64 {
	t.inner.Lock()
	defer t.inner.Unlock()
	return maps.Clone(t.series)
}
