package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
)

// A conflict is repeated at once if a retry would be allowed: by the call, by the circuit, by the
// policy, and by the budget, which pays one token for it.
func TestRepeatConflict(t *testing.T) {
	for _, x := range []struct {
		name     string
		policy   engine.Policy
		spec     engine.Spec
		forRetry bool
		want     int // of five in a row
	}{
		{"paid from the stock", engine.Policy{Budget: budget.Config{Stock: 2}}, engine.Spec{}, false, 2},
		{"no budget", engine.Policy{Budget: budget.Config{Unlimited: true}}, engine.Spec{}, false, 5},
		{"one attempt", engine.Policy{Attempts: 1}, engine.Spec{}, false, 0},
		{"once", engine.Policy{}, engine.Spec{Once: true}, false, 0},
		{"not replayable", engine.Policy{}, engine.Spec{NotReplayable: true}, false, 0},
		{"for a retry", engine.Policy{}, engine.Spec{}, true, 0},
		{"for a retry, by the spec", engine.Policy{}, engine.Spec{ForRetry: true}, false, 0},
		{"for a retry, nested always", engine.Policy{Nested: engine.NestedAlways, Budget: budget.Config{Stock: 2}}, engine.Spec{}, true, 2},
	} {
		plan, err := engine.NewPlan(x.policy, engine.Parts{})
		if err != nil {
			t.Fatal(err)
		}
		var s engine.State
		plan.Init(&s, nil)
		got := 0
		for range 5 {
			if settle, ok := s.RepeatConflict(time.Second, &x.spec, x.forRetry, nil); ok {
				got++
				settle(time.Second)
			}
		}
		if got != x.want {
			t.Errorf("%s: %d of 5 conflicts were repeated at once, want %d", x.name, got, x.want)
		}
	}
}

func TestRepeatConflictObeysTheBreaker(t *testing.T) {
	plan, err := engine.NewPlan(engine.Policy{}, engine.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	var s engine.State
	plan.Init(&s, nil)
	s.Breaker().ForceOpen(0)
	if _, ok := s.RepeatConflict(time.Second, &engine.Spec{}, false, nil); ok {
		t.Error("a conflict was repeated through an open circuit")
	}
}
