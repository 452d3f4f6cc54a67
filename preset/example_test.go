package preset_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/preset"
)

// A tool makes ten calls, and the service is down. By hand one would have written six attempts for
// each, sixty in all. After three calls the circuit breaker is open.
func ExampleCommandLine() {
	d, err := lull.NewDependency("api", preset.CommandLine())
	if err != nil {
		fmt.Println(err)
		return
	}
	var now time.Duration
	attempts := 0
	for range 10 {
		call, step := d.State().Start(now, engine.Spec{})
		for ; !step.Done; now += step.Wait {
			if step = call.Attempt(now, nil); !step.Done {
				step = call.Next(now, lull.Verdict{Kind: lull.KindTransient}, nil)
			}
		}
		attempts += call.Attempts()
	}
	fmt.Println(attempts, "attempts")
	// Output: 18 attempts
}

// A thousand phones make one call each while everything fails at once. A stock is for each
// process.
func ExampleEdge() {
	for _, c := range []struct {
		name   string
		policy lull.Policy
	}{{"zero", lull.Policy{}}, {"edge", preset.Edge()}} {
		attempts := 0
		for range 1000 {
			d, err := lull.NewDependency("api", c.policy)
			if err != nil {
				fmt.Println(err)
				return
			}
			var now time.Duration
			call, step := d.State().Start(now, engine.Spec{})
			for ; !step.Done; now += step.Wait {
				call.Attempt(now, nil)
				step = call.Next(now, lull.Verdict{Kind: lull.KindTransient}, nil)
			}
			attempts += call.Attempts()
		}
		fmt.Printf("%s: %d attempts for 1000 calls\n", c.name, attempts)
	}
	// Output:
	// zero: 5000 attempts for 1000 calls
	// edge: 2000 attempts for 1000 calls
}

// What a policy to start from returns is plain data, which can be changed.
func ExampleExternalAPI() {
	policy := preset.ExternalAPI()
	policy.Attempts = 3
	fmt.Println(policy.Attempts, policy.Validate(), preset.ExternalAPI().Attempts == policy.Attempts)
	// Output: 3 <nil> false
}

// Two viewers ask for a segment, and nothing works. One of the two calls is repeated. So is one for another segment, and
// one half a minute later.
func ExamplePerKey() {
	segments, err := lull.NewRegistry(preset.PerKey(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range []struct {
		at      time.Duration
		segment string
	}{{0, "7"}, {0, "7"}, {time.Second, "8"}, {34 * time.Second, "7"}} {
		call, step := segments.Get(c.segment).State().Start(c.at, engine.Spec{})
		for now := c.at; !step.Done; now += step.Wait {
			call.Attempt(now, nil)
			step = call.Next(now, lull.Verdict{Kind: lull.KindTransient}, nil)
		}
		fmt.Printf("%v, segment %s: %d attempts, %v\n", c.at, c.segment, call.Attempts(), step.Reason)
	}
	// Output:
	// 0s, segment 7: 2 attempts, attempts_exhausted
	// 0s, segment 7: 1 attempts, budget_exhausted
	// 1s, segment 8: 2 attempts, attempts_exhausted
	// 34s, segment 7: 2 attempts, attempts_exhausted
}
