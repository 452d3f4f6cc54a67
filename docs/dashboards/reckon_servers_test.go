//go:build servers

package dashboards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullotel "github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
)

// key is a metric and its labels, as "name|k=v|k=v" in the order in which they were given.
func key(name string, labels ...string) string {
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		b.WriteString("|" + labels[i] + "=" + labels[i+1])
	}
	return b.String()
}

func label(series, name string) string {
	for _, part := range strings.Split(series, "|")[1:] {
		if k, v, _ := strings.Cut(part, "="); k == name {
			return v
		}
	}
	return ""
}

// snapshot is all that was counted when Prometheus came for it.
type snapshot struct {
	at     float64 // as Prometheus has it
	series map[string]float64
}

// reckoner computes what Prometheus should answer, at one time, with windows of the given length.
type reckoner struct {
	snapshots []snapshot
	at, over  float64
}

// matches is name, or name and labels with values.
func matches(series, name string, where []string) bool {
	if n, _, _ := strings.Cut(series, "|"); n != name {
		return false
	}
	for i := 0; i < len(where); i += 2 {
		got := label(series, where[i])
		if prefix, ok := strings.CutSuffix(where[i+1], "*"); ok && strings.HasPrefix(got, prefix) {
			continue
		}
		if got != where[i+1] {
			return false
		}
	}
	return true
}

// increase returns what PromQL's increase gives for one series: its growth between the first
// and the last sample of the window, extrapolated to the window's ends where those are less
// than 1.1 times the mean distance of samples away, else by half of that; but not to where
// it would be below zero. (promql/functions.go, extrapolatedRate)
func (r reckoner) increase(series string) (float64, bool) {
	var all []point
	from := millis(r.at - r.over) // a sample of exactly then does not count, and the difference of two floats is not exact
	for _, s := range r.snapshots {
		if v, ok := s.series[series]; ok && s.at > from && s.at <= r.at {
			all = append(all, point{s.at, v})
		}
	}
	if len(all) < 2 {
		return 0, false
	}
	first, last := all[0], all[len(all)-1]
	grew, sampled := last.V-first.V, last.T-first.T
	mean := sampled / float64(len(all)-1)
	toZero := math.Inf(1)
	if grew > 0 {
		toZero = sampled * first.V / grew
	}
	near := func(to float64) float64 {
		if to < 1.1*mean {
			return to
		}
		return mean / 2
	}
	toStart := min(near(first.T-(r.at-r.over)), toZero)
	return grew * (sampled + toStart + near(r.at-last.T)) / sampled, true
}

// group is sum by (labels), of increase or rate.
type group map[string]float64

func (r reckoner) sum(by []string, scale float64, name string, where ...string) group {
	g := make(group)
	for series := range r.snapshots[len(r.snapshots)-1].series { // none ever goes
		if !matches(series, name, where) {
			continue
		}
		if v, ok := r.increase(series); ok {
			g[groupKey(series, by)] += v * scale
		}
	}
	return g
}

func (r reckoner) rate(by []string, name string, where ...string) group {
	return r.sum(by, 1/r.over, name, where...)
}

func groupKey(series string, by []string) string {
	var parts []string
	for _, l := range by {
		parts = append(parts, label(series, l))
	}
	return strings.Join(parts, " ")
}

// nowBy sums the values of the latest snapshot.
func (r reckoner) nowBy(by []string, name string, where ...string) group {
	g := make(group)
	i := slices.IndexFunc(r.snapshots, func(s snapshot) bool { return s.at > r.at })
	if i < 0 {
		i = len(r.snapshots)
	}
	for k, v := range r.snapshots[i-1].series {
		if matches(k, name, where) {
			g[groupKey(k, by)] += v
		}
	}
	return g
}

func (g group) over(h group) group {
	out := make(group)
	for k, v := range g {
		if w, ok := h[k]; ok {
			out[k] = v / w
		}
	}
	return out
}

func (g group) plus(h group) group {
	for k, v := range h {
		g[k] += v
	}
	return g
}

// quantile is PromQL's histogram_quantile: linear within the bucket.
func (g group) quantile(q float64) group {
	type bucket struct{ le, n float64 }
	var all []bucket
	for le, n := range g {
		f, _ := strconv.ParseFloat(le, 64)
		all = append(all, bucket{f, n})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].le < all[j].le })
	if len(all) < 2 {
		return group{}
	}
	for i := range all[1:] { // each bucket is extrapolated by itself
		all[i+1].n = max(all[i+1].n, all[i].n)
	}
	total := all[len(all)-1].n
	if total == 0 {
		return group{"": math.NaN()}
	}
	rank := q * total
	i := sort.Search(len(all)-1, func(i int) bool { return all[i].n >= rank })
	if i == len(all)-1 {
		return group{"": all[i-1].le}
	}
	low, below := 0.0, 0.0
	if i > 0 {
		low, below = all[i-1].le, all[i-1].n
	}
	return group{"": low + (all[i].le-low)*(rank-below)/(all[i].n-below)}
}

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
	next event.Observer
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
	t.add(0, "retry_held_seconds_total", "dependency", d, "operation", e.Operation, "in", "attempt")
	t.add(0, "retry_held_seconds_total", "dependency", d, "operation", e.Operation, "in", "wait")
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
	case event.FallbackEnded:
		t.callEnded(e)
	case event.CallEnded:
		switch e.Reason {
		case engine.BudgetExhausted:
			t.add(1, "retry_budget_denied_total", "dependency", d)
		case engine.HintTooLong:
			t.add(1, "retry_server_hints_total", "dependency", d, "result", "too_long")
		case engine.Overloaded:
			t.add(1, "retry_server_hints_total", "dependency", d, "result", "dont_retry")
		}
		if e.Elapsed > 0 { // those that were refused at once took no time
			waited := e.Waited
			if e.Attempt == 0 {
				waited = e.Elapsed
			}
			t.add((e.Elapsed - waited).Seconds(), "retry_held_seconds_total", "dependency", d, "operation", e.Operation, "in", "attempt")
			t.add(waited.Seconds(), "retry_held_seconds_total", "dependency", d, "operation", e.Operation, "in", "wait")
		}
		if !e.Fallback {
			t.callEnded(e)
		}
		if e.Reason != engine.Success {
			t.add(1, "retry_call_failures_total", "dependency", d, "reason", e.Reason.String())
		}
	}
}

// callEnded is the end of a call, or of its fallback.
func (t *tally) callEnded(e lull.Event) {
	d, outcome := e.Dependency, lullotel.OutcomeOf(&e).String()
	t.add(1, "retry_calls_total", "dependency", d, "operation", e.Operation, "outcome", outcome)
	if e.Elapsed > 0 { // those that were refused at once took no time
		t.put(e.Elapsed.Seconds(), durations, "retry_call_duration_seconds", "dependency", d, "operation", e.Operation, "outcome", outcome)
	}
	if e.Attempt > 0 {
		t.add(1, "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "false")
		t.add(float64(e.Attempt-1), "retry_attempts_total", "dependency", d, "operation", e.Operation, "resend", "true")
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
