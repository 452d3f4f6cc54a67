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
	"github.com/lullgo/lull/engine"
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

// The text of an error says what happened, in what order, and the one setting that would
// change it.
func TestErrorTexts(t *testing.T) {
	last := errors.New("connection reset")
	timeout := Verdict{Kind: KindTransient, Code: CodeTimeout}
	after := func(n int, r Reason, v Verdict) Error {
		return Error{Dependency: "d", Operation: "get", Attempts: n, Elapsed: 1234567 * time.Microsecond, Reason: r, Verdict: v, Last: last}
	}
	blip := Verdict{Kind: KindTransient, Code: "503"}
	for _, c := range []struct {
		err  Error
		want string
	}{
		{after(3, AttemptsExhausted, blip), "d: get: failed after 3 attempts (1.23s); not repeated, because the policy allows no more attempts (Policy.Attempts): connection reset"},
		{after(1, FailedPermanent, Verdict{Kind: KindPermanent, Code: "404"}), "d: get: failed after 1 attempt (1.23s); not repeated, because another attempt would fail the same way: connection reset"},
		{after(1, FailedPermanent, Verdict{Code: CodeUnclassified}), "d: get: failed after 1 attempt (1.23s); not repeated, because nothing is known of this error (lull.Transient, lull.WithClassifier): connection reset"},
		{Error{Dependency: "d", Attempts: 1, Reason: FailedPermanent, classifier: "lullhttp.WithClassifier"}, "d: failed after 1 attempt (0s); not repeated, because nothing is known of this error (lull.Transient, lullhttp.WithClassifier)"},
		{after(1, FailedPermanent, Verdict{Kind: KindPermanent, Code: CodeRetriedBelow}), "d: get: failed after 1 attempt (1.23s); not repeated, because the call below has made the retries (lull.Transient): connection reset"},
		{after(1, ServerSaidStop, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the server asked not to: connection reset"},
		{after(1, UnsafeToRepeat, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because it is not idempotent and may have been carried out (NotIdempotent; in HTTP, an Idempotency-Key makes it safe): connection reset"},
		{after(1, CannotReplay, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the request cannot be made a second time (in HTTP, Request.GetBody): connection reset"},
		{after(1, HintTooLong, Verdict{Kind: KindThrottled, After: time.Hour}), "d: get: throttled after 1 attempt (1.23s); not repeated, because the server asked to wait for 1h0m0s (Policy.HintLimit): connection reset"},
		{after(2, DeadlineReached, timeout), "d: get: timed out after 2 attempts (1.23s); not repeated, because no time is left before the deadline (Policy.Deadline, or the caller's context): connection reset"},
		{after(1, BudgetExhausted, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the retry budget is exhausted (Policy.Budget): connection reset"},
		{after(1, BudgetExhausted, timeout), "d: get: timed out after 1 attempt (1.23s); not repeated, because the retry budget is exhausted (Policy.Budget, Policy.Timeouts): connection reset"},
		{Error{Dependency: "d", Attempts: 1, Elapsed: 10 * time.Second, Reason: Unanswered, Verdict: timeout}, "d: timed out after 1 attempt (10s); not repeated, because the dependency answered no other call meanwhile (Policy.Timeouts)"},
		{Error{Dependency: "d", Attempts: 1, Elapsed: 10 * time.Second, Reason: Unanswered, Verdict: timeout, final: true}, "d: timed out after 1 attempt (10s); not repeated, because the policy repeats no timeout (Policy.Timeouts)"},
		{after(1, RetriedAbove, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because it was made for a request that is itself a retry (Policy.Nested): connection reset"},
		{after(1, HeldBack, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the client's own throttle held it back (Policy.Throttle): connection reset"},
		{after(1, CircuitOpen, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the circuit breaker has opened (Policy.Breaker): connection reset"},
		{Error{Dependency: "d", Reason: CircuitOpen}, "d: not attempted, because the circuit breaker is open (Policy.Breaker)"},
		{Error{Dependency: "d", Reason: CircuitOpen, RetryAt: 4 * time.Second, OpenFor: 3 * time.Second, OpenedBy: last}, "d: not attempted, because the circuit breaker has been open for 3s, and the next probe is in 4s (Policy.Breaker); the last failure: connection reset"},
		{Error{Dependency: "d", Reason: Limited}, "d: not attempted, because the concurrency limit has no room (Policy.Limit)"},
		{Error{Dependency: "d", Reason: HeldBack}, "d: not attempted, because the client's own throttle held it back (Policy.Throttle)"},
		{Error{Dependency: "d", Reason: DeadlineReached}, "d: not attempted, because no time is left before the deadline (Policy.Deadline, or the caller's context)"},
		{Error{Dependency: "d", Reason: CallerCanceled, Cause: context.Canceled}, "d: not attempted, because the caller's context has ended"},
		{Error{Dependency: "d", Attempts: 1, Reason: CallerCanceled, Cause: errors.New("shutdown"), Last: last}, "d: canceled after 1 attempt (0s); not repeated, because the caller's context has ended: shutdown: connection reset"},
		{Error{Dependency: "d", Attempts: 1, Reason: 200}, "d: failed after 1 attempt (0s); not repeated, because reason(200)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	for r := FailedPermanent; int(r) < engine.Reasons; r++ {
		for _, n := range []int{0, 1} {
			if text := (&Error{Dependency: "d", Reason: r, Attempts: n}).Error(); !strings.Contains(text, ", because ") || strings.Contains(text, "because  ") {
				t.Errorf("%v: %s", r, text)
			}
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
	for r := range Reason(engine.Reasons) {
		names[r.String()] = true
		errs[errOf(r)] = true
	}
	if len(names) != engine.Reasons || len(errs) != engine.Reasons || errOf(Succeeded) != nil {
		t.Errorf("%d reasons have %d names and %d errors", engine.Reasons, len(names), len(errs))
	}
	if got := Reason(200).Meaning(); got != "reason(200)" {
		t.Errorf("an unknown reason means %q", got)
	}
}
