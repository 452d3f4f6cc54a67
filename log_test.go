package lull

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/breaker"
)

func TestLogLines(t *testing.T) {
	verdict := Verdict{Kind: KindThrottled, Code: "429", After: 2 * time.Second}
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"scheduled": {Event{Kind: EventRetryScheduled, Dependency: "d", Operation: "op", Attempt: 1, Of: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Err: errors.New("slow down")},
			`level=DEBUG msg="retry scheduled" dependency=d operation=op attempt=1 of=3 elapsed=0s delay_before_jitter=1s delay=500ms class=throttled code=429 server_hint=2s error="slow down"`},
		"retrying": {Event{Kind: EventRetryStarted, Dependency: "d", Attempt: 2, Of: 3, Verdict: verdict, Ceiling: time.Second, Delay: 500 * time.Millisecond, Slept: 501 * time.Millisecond},
			`level=INFO msg=retrying dependency=d attempt=2 of=3 elapsed=0s slept=501ms delay_before_jitter=1s delay=500ms class=throttled code=429 server_hint=2s`},
		"succeeded": {Event{Kind: EventCallEnded, Dependency: "d", Attempt: 1, Of: 3, Elapsed: time.Second},
			`level=DEBUG msg="call succeeded" dependency=d attempt=1 of=3 elapsed=1s reason=success`},
		"failed": {Event{Kind: EventCallEnded, Dependency: "d", Attempt: 1, Of: 3, Reason: BudgetExhausted, Verdict: Verdict{Kind: KindTransient, Code: "503"}},
			`level=WARN msg="call failed" dependency=d attempt=1 of=3 elapsed=0s reason=budget_exhausted class=transient code=503`},
		"canceled": {Event{Kind: EventCallEnded, Dependency: "d", Reason: CallerCanceled},
			`level=INFO msg="call canceled by its caller" dependency=d attempt=0 of=0 elapsed=0s reason=canceled`},
		"budget": {Event{Kind: EventBudgetExhausted, Dependency: "d", Attempt: 1, Of: 3, Reason: BudgetExhausted},
			`level=WARN msg="retry budget exhausted" dependency=d attempt=1 of=3 elapsed=0s reason=budget_exhausted`},
		"opened": {Event{Kind: EventCircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.Closed, To: breaker.Open, At: time.Second, Until: 6 * time.Second, Reason: breaker.FailureRate, Calls: 20, Failures: 10}},
			`level=WARN msg="circuit breaker opened" dependency=d from=closed to=open reason="failure rate" calls=20 failures=10 open_for=5s`},
		"half-open": {Event{Kind: EventCircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.OpenTimePassed}},
			`level=DEBUG msg="circuit breaker half-open" dependency=d from=open to=half-open reason="open time passed" calls=0 failures=0`},
		"closed": {Event{Kind: EventCircuitChanged, Dependency: "d", Circuit: &breaker.Change{From: breaker.HalfOpen, To: breaker.Closed, Reason: breaker.ProbesSucceeded, Calls: 1}},
			`level=INFO msg="circuit breaker closed" dependency=d from=half-open to=closed reason="probes succeeded" calls=1 failures=0`},
		"no circuit": {Event{Kind: EventCircuitChanged, Dependency: "d"}, `level=INFO msg="circuit breaker changed" dependency=d attempt=0 of=0 elapsed=0s`},
	} {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		NewLogObserver(log).Observe(context.Background(), c.event)
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if NewLogObserver(nil) == nil {
		t.Error("no logger means the default one")
	}
}

func TestErrorTexts(t *testing.T) {
	last := errors.New("connection reset")
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Dependency: "d", Operation: "get", Attempts: 3, Elapsed: 1234567 * time.Microsecond, Reason: AttemptsExhausted, Last: last}, "d: get: attempts exhausted after 3 attempts in 1.23s: connection reset"},
		{Error{Dependency: "d", Attempts: 1, Elapsed: 1500 * time.Nanosecond, Reason: BudgetExhausted, Last: last}, "d: retry budget exhausted after 1 attempt in 1.5µs: connection reset"},
		{Error{Dependency: "d", Reason: CircuitOpen, RetryAt: 4321 * time.Millisecond}, "d: circuit breaker is open (next probe in 4.321s) before the first attempt"},
		{Error{Dependency: "d", Attempts: 1, Elapsed: 12345678, Reason: HintTooLong, Verdict: Verdict{After: time.Hour}, Last: last}, "d: server asked to wait for longer than the policy allows (1h0m0s) after 1 attempt in 12.35ms: connection reset"},
		{Error{Dependency: "d", Reason: CallerCanceled, Cause: context.Canceled}, "d: context canceled before the first attempt"},
		{Error{Dependency: "d", Attempts: 1, Reason: CallerCanceled, Cause: errors.New("shutdown"), Last: last}, "d: context canceled after 1 attempt in 0s: shutdown: connection reset"},
		{Error{Dependency: "d", Attempts: 1, Reason: 200}, "d: reason(200) after 1 attempt in 0s"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

func TestErrorTimeout(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want bool
	}{
		{Error{Reason: DeadlineReached}, true},
		{Error{Reason: AttemptsExhausted, Last: Transient(context.DeadlineExceeded)}, true},
		{Error{Reason: AttemptsExhausted, Last: errors.New("refused")}, false},
		{Error{Reason: CircuitOpen}, false},
	} {
		if got := c.err.Timeout(); got != c.want {
			t.Errorf("%v: Timeout is %v", &c.err, got)
		}
	}
}

// Every reason has a name and, but for success, an error of its own.
func TestReasons(t *testing.T) {
	names, errs := map[string]bool{}, map[error]bool{}
	for r := range reasons {
		names[r.String()] = true
		errs[r.Err()] = true
	}
	if len(names) != int(reasons) || len(errs) != int(reasons) || Succeeded.Err() != nil {
		t.Errorf("%d reasons have %d names and %d errors", reasons, len(names), len(errs))
	}
	if (reasons + 1).Err() != nil {
		t.Error("an unknown reason has an error")
	}
}
