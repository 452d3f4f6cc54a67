package rivals_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/rivals"
)

// What three clients do to a dependency that fails every call for a second, at a
// thousand calls a second, and has not answered one before: nothing has been
// earned, and what is in stock is spent.
func Example() {
	for _, name := range []string{"go-retryablehttp", "aws-standard-2.1", "lull"} {
		p, err := rivals.Find(name) // such as "aws-standard-2.1"
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := lull.NewDependency("orders", p.Policy, p.Options()...)
		if err != nil {
			fmt.Println(err)
			return
		}
		attempts := 0
		for i := range 1000 {
			now := time.Duration(i) * time.Millisecond
			call, step := d.State().Start(now, engine.Spec{})
			for ; !step.Done; now += step.Wait {
				call.Attempt(now, nil)
				failure := lull.Verdict{Kind: lull.KindTransient, Code: "503"}
				step = call.Next(now, p.Reads.Verdict(failure), nil)
			}
			attempts += call.Attempts()
		}
		fmt.Printf("%-17s %4d attempts for 1000 calls\n", p.Name, attempts)
	}
	// Output:
	// go-retryablehttp  5000 attempts for 1000 calls
	// aws-standard-2.1  1035 attempts for 1000 calls
	// lull              1020 attempts for 1000 calls
}

// A team that has changed a default sets that in the policy.
func ExamplePreset_Options() {
	p, err := rivals.Find("grpc")
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Policy.Attempts = 3
	p.Budget.GRPC.MaxTokens = 50
	d, err := lull.NewDependency("orders", p.Policy, p.Options()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Budget().Balance(0), "retries if everything fails")
	// Output: 25 retries if everything fails
}
