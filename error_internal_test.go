package lull

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

// The text of an error has what happened, in order, and the one setting that would
// change it.
func TestErrorTexts(t *testing.T) {
	last := errors.New("connection reset")
	timeout := Verdict{Kind: KindTransient, Code: engine.CodeTimeout}
	after := func(n int, r Reason, v Verdict) Error {
		return Error{Dependency: "d", Operation: "get", Attempts: n, Elapsed: 1234567 * time.Microsecond, Reason: r, Verdict: v, Last: last}
	}
	blip := Verdict{Kind: KindTransient, Code: "503"}
	for _, c := range []struct {
		err  Error
		want string
	}{
		{after(3, engine.AttemptsExhausted, blip), "d: get: failed after 3 attempts (1.23s); not repeated, because the policy allows no more attempts (Policy.Attempts): connection reset"},
		{after(1, engine.Permanent, Verdict{Kind: KindPermanent, Code: "404"}), "d: get: failed after 1 attempt (1.23s); not repeated, because another attempt would fail the same way: connection reset"},
		{after(1, engine.Permanent, Verdict{Code: engine.CodeUnclassified}), "d: get: failed after 1 attempt (1.23s); not repeated, because nothing is known of this error (lull.Transient, lull.WithClassifier): connection reset"},
		{Error{Dependency: "d", Attempts: 1, Reason: engine.Permanent, classifier: "lullhttp.WithClassifier"}, "d: failed after 1 attempt (0s); not repeated, because nothing is known of this error (lull.Transient, lullhttp.WithClassifier)"},
		{after(1, engine.Permanent, Verdict{Kind: KindPermanent, Code: engine.CodeRetriedBelow}), "d: get: failed after 1 attempt (1.23s); not repeated, because the call below has made the retries (lull.Transient): connection reset"},
		{after(1, engine.HintTooLong, Verdict{Kind: KindRateLimited, After: time.Hour}), "d: get: rate-limited after 1 attempt (1.23s); not repeated, because the server asked to wait for 1h0m0s (Policy.HintLimit): connection reset"},
		{after(2, engine.Deadline, timeout), "d: get: timed out after 2 attempts (1.23s); not repeated, because no time is left before the deadline (Policy.Deadline, or the caller's context): connection reset"},
		{after(1, engine.BudgetExhausted, timeout), "d: get: timed out after 1 attempt (1.23s); not repeated, because the retry budget is exhausted (Policy.Budget, Policy.Timeouts): connection reset"},
		{Error{Dependency: "d", Attempts: 1, Elapsed: 10 * time.Second, Reason: engine.Unanswered, Verdict: timeout, final: true}, "d: timed out after 1 attempt (10s); not repeated, because the policy repeats no timeout (Policy.Timeouts)"},
		{after(1, engine.CircuitOpen, blip), "d: get: failed after 1 attempt (1.23s); not repeated, because the circuit breaker has opened (Policy.Breaker): connection reset"},
		{Error{Dependency: "d", Reason: engine.CircuitOpen}, "d: not attempted, because the circuit breaker is open (Policy.Breaker)"},
		{Error{Dependency: "d", Reason: engine.CircuitOpen, RetryAt: 4 * time.Second, OpenFor: 3 * time.Second, OpenedBy: last}, "d: not attempted, because the circuit breaker has been open for 3s, and the next probe is in 4s (Policy.Breaker); the last failure: connection reset"},
		{Error{Dependency: "d", Reason: engine.Canceled, Cause: context.Canceled}, "d: not attempted, because the caller's context has ended"},
		{Error{Dependency: "d", Attempts: 1, Reason: engine.Canceled, Cause: errors.New("shutdown"), Last: last}, "d: canceled after 1 attempt (0s); not repeated, because the caller's context has ended: shutdown: connection reset"},
		{Error{Dependency: "d", Attempts: 1, Reason: 200}, "d: failed after 1 attempt (0s); not repeated, because reason(200)"},
		{Error{Dependency: "d", Attempts: 1, Reason: Reason(engine.Reasons)}, "d: failed after 1 attempt (0s); not repeated, because reason(" + strconv.Itoa(int(engine.Reasons)) + ")"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	for r := engine.Permanent; int(r) < engine.Reasons; r++ {
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
		{Error{Reason: engine.Deadline}, true},
		{Error{Reason: engine.AttemptsExhausted, Last: Transient(context.DeadlineExceeded)}, true},
		{Error{Reason: engine.AttemptsExhausted, Last: errors.New("refused")}, false},
		{Error{Reason: engine.CircuitOpen}, false},
	} {
		check.Equal(t, c.err.Timeout(), c.want, "%v: Timeout", &c.err)
	}
}

// Every reason has a name and, but for success, an error of its own.
func TestReasons(t *testing.T) {
	names, errs := map[string]bool{}, map[error]bool{}
	for r := range Reason(engine.Reasons) {
		names[r.String()] = true
		errs[errOf(r)] = true
		for other := engine.Permanent; int(other) < engine.Reasons; other++ {
			if other != engine.Canceled && errors.Is(&Error{Reason: r}, errOf(other)) != (r == other) {
				t.Errorf("an error for the reason %v is one for %v", r, other)
			}
		}
	}
	if len(names) != engine.Reasons || len(errs) != engine.Reasons || errOf(engine.Success) != nil {
		t.Errorf("%d reasons have %d names and %d errors", engine.Reasons, len(names), len(errs))
	}
	check.Equal(t, Reason(200).Meaning(), "reason(200)", "an unknown reason means")
}
