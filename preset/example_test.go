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
