package event

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// answer is an error with a request ID, as lullhttp has it.
type answer string

func (a answer) Error() string     { return "refused" }
func (a answer) RequestID() string { return string(a) }

// awsAnswer is one as AWS's SDK has it.
type awsAnswer string

func (a awsAnswer) Error() string            { return "refused" }
func (a awsAnswer) ServiceRequestID() string { return string(a) }

func TestLogLines(t *testing.T) {
	verdict := engine.Verdict{Kind: engine.KindRateLimited, Code: "429", After: 2 * time.Second}
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"scheduled": {Event{Kind: RetryScheduled, Dependency: "d", Operation: "op", Attempt: 1, MaxAttempts: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Err: errors.New("slow down")},
			`level=DEBUG msg="retry scheduled" dependency=d operation=op attempt=1 of=3 elapsed=0s delay_before_jitter=1s delay=500ms class=rate_limited code=429 server_hint=2s error="slow down"`},
		"retrying": {Event{Kind: RetryStarted, Dependency: "d", Attempt: 2, MaxAttempts: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Slept: 501 * time.Millisecond},
			`level=DEBUG msg=retrying dependency=d attempt=2 of=3 elapsed=0s slept=501ms delay_before_jitter=1s delay=500ms class=rate_limited code=429 server_hint=2s`},
		"succeeded": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Elapsed: time.Second},
			`level=DEBUG msg="call succeeded" dependency=d attempts=1 of=3 elapsed=1s reason=success`},
		"failed": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.BudgetExhausted, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "503"}},
			`level=WARN msg="call failed" dependency=d attempts=1 of=3 elapsed=0s reason=budget_exhausted class=transient code=503`},
		"canceled": {Event{Kind: CallEnded, Dependency: "d", Reason: engine.Canceled},
			`level=INFO msg="call canceled by its caller" dependency=d attempts=0 of=0 elapsed=0s reason=canceled`},
		"retried": {Event{Kind: CallEnded, Dependency: "d", Operation: "op", Attempt: 3, MaxAttempts: 3, Elapsed: time.Second, Waited: 700 * time.Millisecond,
			Earlier: &Earlier{Attempt: 2, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "503"}, Err: fmt.Errorf("ask: %w", answer("req-2")), Took: 20 * time.Millisecond, Delay: 600 * time.Millisecond, Slept: 601 * time.Millisecond,
				Before: &Earlier{Attempt: 1, Verdict: verdict, Err: awsAnswer("req-1"), Took: 10 * time.Millisecond, Delay: 100 * time.Millisecond, Slept: 99 * time.Millisecond}}},
			`level=INFO msg="call succeeded after more than one attempt" dependency=d operation=op attempts=3 of=3 elapsed=1s waited=700ms reason=success` +
				` attempt_1.class=rate_limited attempt_1.code=429 attempt_1.server_hint=2s attempt_1.request_id=req-1 attempt_1.error=refused attempt_1.took=10ms attempt_1.delay=100ms attempt_1.slept=99ms` +
				` attempt_2.class=transient attempt_2.code=503 attempt_2.request_id=req-2 attempt_2.error="ask: refused" attempt_2.took=20ms attempt_2.delay=600ms attempt_2.slept=601ms`},
		"retried in vain": {Event{Kind: CallEnded, Dependency: "d", Attempt: 2, MaxAttempts: 3, Elapsed: time.Second, Reason: engine.BudgetExhausted, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "503"}, Err: answer("req-2"),
			Earlier: &Earlier{Attempt: 1, Verdict: verdict, Took: 10 * time.Millisecond}},
			`level=WARN msg="call failed" dependency=d attempts=2 of=3 elapsed=1s reason=budget_exhausted class=transient code=503 request_id=req-2 error=refused` +
				` attempt_1.class=rate_limited attempt_1.code=429 attempt_1.server_hint=2s attempt_1.took=10ms`},
		"hedging": {Event{Kind: HedgeStarted, Dependency: "d", Attempt: 2, MaxAttempts: 2},
			`level=DEBUG msg=hedging dependency=d attempt=2 of=2 elapsed=0s`},
		"hedge refused": {Event{Kind: HedgeRefused, Dependency: "d", Attempt: 1, MaxAttempts: 2, Reason: engine.TooManyLate},
			`level=DEBUG msg="hedge refused" dependency=d attempt=1 of=2 elapsed=0s reason=too_many_late`},
		"attempt failed": {Event{Kind: AttemptFailed, Dependency: "d", Attempt: 1, MaxAttempts: 2, Verdict: verdict},
			`level=DEBUG msg="attempt failed" dependency=d attempt=1 of=2 elapsed=0s class=rate_limited code=429 server_hint=2s`},
		"unknown": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.NotIdempotent, OutcomeUnknown: true, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "503"}},
			`level=WARN msg="call failed" dependency=d attempts=1 of=3 elapsed=0s outcome_unknown=true reason=not_idempotent class=transient code=503`},
		"with a fallback": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Fallback: true, Reason: engine.Unanswered, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "timeout"}},
			`level=INFO msg="call failed, and has a fallback" dependency=d attempts=1 of=3 elapsed=0s reason=unanswered class=transient code=timeout`},
		"degraded": {Event{Kind: FallbackEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.Unanswered, Elapsed: time.Second},
			`level=DEBUG msg="call degraded" dependency=d attempts=1 of=3 elapsed=1s reason=unanswered`},
		"failed twice": {Event{Kind: FallbackEnded, Dependency: "d", Attempt: 0, MaxAttempts: 3, Reason: engine.CircuitOpen, Err: errors.New("nothing stored")},
			`level=WARN msg="call failed, and its fallback" dependency=d attempts=0 of=3 elapsed=0s reason=circuit_open error="nothing stored"`},
		"budget": {Event{Kind: BudgetExhausted, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.BudgetExhausted},
			`level=WARN msg="retry budget exhausted" dependency=d attempt=1 of=3 elapsed=0s reason=budget_exhausted`},
		"layers": {Event{Kind: RetriesInLayers, Dependency: "d", Operation: "op", Attempt: 1, MaxAttempts: 3, Err: &Layers{Layer{Name: "the SDK", Off: "Retries: 0"}, Layer{Name: "d", Off: "Attempts: 1"}}},
			`level=WARN msg="two layers retry" dependency=d operation=op attempt=1 of=3 elapsed=0s error="the retries of the SDK multiply those of d below it; switch one of them off: Retries: 0, or Attempts: 1"`},
		"opened": {Event{Kind: CircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.Closed, To: breaker.Open, At: time.Second, Until: 6 * time.Second, Reason: breaker.FailureRate, Calls: 20, Failures: 10}},
			`level=WARN msg="circuit breaker opened" dependency=d from=closed to=open reason="failure rate" calls=20 failures=10 open_for=5s`},
		"half-open": {Event{Kind: CircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.OpenTimePassed}},
			`level=DEBUG msg="circuit breaker half-open" dependency=d from=open to=half-open reason="open time passed" calls=0 failures=0`},
		"closed": {Event{Kind: CircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.HalfOpen, To: breaker.Closed, Reason: breaker.ProbesSucceeded, Calls: 1}},
			`level=INFO msg="circuit breaker closed" dependency=d from=half-open to=closed reason="probes succeeded" calls=1 failures=0`},
		"no circuit": {Event{Kind: CircuitChanged, Dependency: "d"}, `level=INFO msg="circuit breaker changed" dependency=d attempt=0 of=0 elapsed=0s`},
	} {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		NewLog(log).Observe(context.Background(), c.event)
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if NewLog(nil) == nil {
		t.Error("no logger means the default one")
	}
}
