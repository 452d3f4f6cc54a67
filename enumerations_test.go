package lull_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/throttle"
)

// The names of all enumerations, in the order of their values. They are labels in logs, metrics and files.
func TestNamesOfEnumerations(t *testing.T) {
	named(t, admission.Sheddable, "sheddable|sheddable-plus|critical|critical-plus", "priority")
	named(t, admission.First, "first|retry|hedge", "class")
	named(t, admission.Admitted, "admitted|queued|refused", "outcome")
	named(t, admission.NotRefused, "|full|waited|displaced|too_late|shed_retry|shed_hedge|retry_budget|gone", "reason")
	named(t, admission.Done, "done|failed|unmeasured", "result")
	named(t, backoff.Exponential, "exponential|linear|constant|immediate|ethernet", "kind")
	named(t, backoff.Full, "full|equal|none|decorrelated|proportional", "jitter")
	named(t, breaker.Closed, "closed|open|half-open", "unknown")
	named(t, breaker.Success, "success|failure|neutral", "unknown")
	named(t, breaker.FailureRate, "failure rate|consecutive failures|slow rate|probe failed|probe timed out|probes succeeded|forced|open time passed", "unknown")
	named(t, budget.Transient, "transient|timeout|rate_limited", "class")
	named(t, budget.Successes, "successes|arrivals", "earn")
	named(t, bulkhead.Admitted, "admitted|queued|refused", "outcome")
	named(t, hedge.Off, "off|granted|unlearned|attempts_in_use|too_many_late|too_many_in_flight", "reason")
	named(t, outlier.TwoChoices, "two-choices|least-loaded|round-robin|least-time", "choice")
	named(t, outlier.MedianMAD, "median-mad|mean-deviation|none", "statistic")
	named(t, outlier.AtLeastOne, "at-least-one|round-down|round-up", "limit")
	named(t, outlier.Success, "success|5xx|gateway failure|local origin|neutral", "outcome")
	named(t, outlier.Ejected, "ejected|returned|spared", "kind")
	named(t, throttle.Off, "off|adaptive|cubic", "mode")
	named(t, throttle.Accepted, "accepted|rate_limited|unanswered|neutral|unsent", "outcome")
}

// named also holds that a text that can be read is its name, in any case, and that no other is.
func named[T interface {
	~uint8 | ~int8
	fmt.Stringer
}](t *testing.T, first T, names, outside string) {
	t.Helper()
	all := strings.Split(names, "|")
	for i, want := range all {
		v := first + T(i)
		check.Equal(t, v.String(), want, "%T %d", v, i)
		if m, is := any(v).(encoding.TextMarshaler); is {
			if text, err := m.MarshalText(); string(text) != want || err != nil {
				t.Errorf("%T %d: MarshalText %q, %v, want %q", v, i, text, err, want)
			}
			back := first + 99
			if err := any(&back).(encoding.TextUnmarshaler).UnmarshalText([]byte(strings.ToUpper(want))); back != v || err != nil {
				t.Errorf("%T: %q is read as %v, %v", v, want, back, err)
			}
		}
	}
	past := first + T(len(all))
	check.Equal(t, past.String(), fmt.Sprintf("%s(%d)", outside, past), "%T beyond the last", past)
	m, is := any(past).(encoding.TextMarshaler)
	if !is {
		return
	}
	if text, err := m.MarshalText(); err == nil {
		t.Errorf("%T beyond the last has the text %q", past, text)
	}
	bad := []string{"", all[0] + " ", "0", past.String()}
	for _, name := range all {
		if strings.Contains(name, "s") {
			bad = append(bad, strings.Replace(name, "s", "ſ", 1)) // which folds to s
		}
	}
	for _, text := range bad {
		v := first
		if err := any(&v).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), all[0]) || v != first {
			t.Errorf("%T: %q is read as %v, %v", v, text, v, err)
		}
	}
}

// A policy survives JSON, with names in it.
func TestPolicyInJSON(t *testing.T) {
	want := lull.Policy{
		Backoff: backoff.Schedule{Kind: backoff.Linear, Jitter: backoff.Equal, Base: 5}, Budget: budget.Config{Ratio: 0.2, Earn: budget.Arrivals, Stock: 5},
		Throttle: throttle.Config{Mode: throttle.Cubic, MinRate: 2, MaxWait: -1},
	}
	data := must.Have(json.Marshal(want))
	for _, name := range []string{`"Kind":"linear"`, `"Jitter":"equal"`, `"Earn":"arrivals"`, `"Mode":"cubic"`} {
		if !strings.Contains(string(data), name) {
			t.Errorf("no %s in %s", name, data)
		}
	}
	var got lull.Policy
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// The states and events of package idempotency begin at other values than 0.
func TestNamesOfIdempotency(t *testing.T) {
	for s, want := range map[idempotency.KeyState]string{0: "none", idempotency.Claimed: "claimed", idempotency.Unknown: "unknown", 6: "state(6)"} {
		check.Equal(t, s.String(), want, "state %d", s)
	}
	for w, want := range map[idempotency.EventKind]string{idempotency.Ran: "ran", idempotency.Fenced: "fenced", idempotency.Fenced + 1: fmt.Sprintf("what(%d)", idempotency.Fenced+1)} {
		check.Equal(t, w.String(), want, "what %d", w)
	}
}
