package engine_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
)

// A driver with a clock of its own: the engine takes the decisions, and the
// driver only passes it the time and the verdict on each attempt.
func ExampleCall() {
	plan, _ := engine.NewPlan(engine.Policy{Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Jitter: backoff.None}}, engine.Parts{})
	var s engine.State
	plan.Init(&s, nil)
	now := time.Duration(0)
	c, step := s.Start(now, engine.Spec{})
	for !step.Done {
		if step = c.Attempt(now, nil); step.Done {
			break
		}
		if step.Wait > 0 { // held back: ask again then
			now += step.Wait
			continue
		}
		now += 20 * time.Millisecond // the attempt takes its time, and fails
		step = c.Next(now, engine.Verdict{Kind: engine.KindTransient}, nil)
		fmt.Println("at", now, "wait", step.Wait)
		now += step.Wait
	}
	fmt.Println(step.Reason, "after", c.Attempts(), "attempts")
	// Output:
	// at 20ms wait 100ms
	// at 140ms wait 200ms
	// at 360ms wait 400ms
	// at 780ms wait 800ms
	// at 1.6s wait 0s
	// attempts_exhausted after 5 attempts
}

// The decisions about one call.
func Example() {
	now, random := time.Duration(0), func() uint64 { return 1 }
	verdict := engine.Verdict{Kind: engine.KindTransient}
	plan, err := engine.NewPlan(engine.Policy{}, engine.Parts{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var s engine.State
	plan.Init(&s, nil)
	c, step := s.Start(now, engine.Spec{}) // may the call begin?
	step = c.Attempt(now, random)          // may its first attempt?
	step = c.Next(now, verdict, random)    // it ended like this: what now?
	fmt.Println(step.Done)
	// Output: false
}
