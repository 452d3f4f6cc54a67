package event

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

func TestLogLines(t *testing.T) {
	verdict := engine.Verdict{Kind: engine.KindRateLimited, Code: "429", After: 2 * time.Second}
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"scheduled": {Event{Kind: RetryScheduled, Dependency: "d", Operation: "op", Attempt: 1, MaxAttempts: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Err: errors.New("slow down")},
			`level=DEBUG msg="retry scheduled" dependency=d operation=op attempt=1 of=3 elapsed=0s delay_before_jitter=1s delay=500ms class=rate_limited code=429 server_hint=2s error="slow down"`},
		"retrying": {Event{Kind: RetryStarted, Dependency: "d", Attempt: 2, MaxAttempts: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Slept: 501 * time.Millisecond},
			`level=INFO msg=retrying dependency=d attempt=2 of=3 elapsed=0s slept=501ms delay_before_jitter=1s delay=500ms class=rate_limited code=429 server_hint=2s`},
		"succeeded": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Elapsed: time.Second},
			`level=DEBUG msg="call succeeded" dependency=d attempt=1 of=3 elapsed=1s reason=success`},
		"failed": {Event{Kind: CallEnded, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.BudgetExhausted, Verdict: engine.Verdict{Kind: engine.KindTransient, Code: "503"}},
			`level=WARN msg="call failed" dependency=d attempt=1 of=3 elapsed=0s reason=budget_exhausted class=transient code=503`},
		"canceled": {Event{Kind: CallEnded, Dependency: "d", Reason: engine.Canceled},
			`level=INFO msg="call canceled by its caller" dependency=d attempt=0 of=0 elapsed=0s reason=canceled`},
		"budget": {Event{Kind: BudgetExhausted, Dependency: "d", Attempt: 1, MaxAttempts: 3, Reason: engine.BudgetExhausted},
			`level=WARN msg="retry budget exhausted" dependency=d attempt=1 of=3 elapsed=0s reason=budget_exhausted`},
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
