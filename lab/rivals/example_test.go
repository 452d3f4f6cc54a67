package rivals_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
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
	// lull              1002 attempts for 1000 calls
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
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	d, err := lull.NewDependency("orders", p.Policy, p.Options()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Budget().Balance(0), "retries if everything fails")
	// Output: 25 retries if everything fails
}

// The AWS SDKs charge by the kind of the failure, and give back the last cost only.
func ExampleAWSLegacy() {
	fmt.Printf("%+v\n", rivals.AWSLegacy())
	b := rivals.Budget{AWS: rivals.AWSLegacy()}.New()
	b.Withdraw(0, budget.Timeout, nil)
	g := b.Withdraw(0, budget.Transient, nil)
	fmt.Println("paid", g.Receipt, "retries left", b.Balance(0))
	b.Done(0, true, g.Receipt, 1)
	fmt.Println("retries left", b.Balance(0))
	// Output:
	// {Capacity:500 RetryCost:5 TimeoutCost:10 RateLimitedCost:5 NoRetryIncrement:1}
	// paid 5 retries left 97
	// retries left 98
}

// Envoy limits the retries under way to a share of the calls under way.
func ExampleEnvoyDefault() {
	fmt.Printf("%+v\n", rivals.EnvoyDefault())
	b := rivals.Budget{Envoy: rivals.EnvoyDefault()}.New()
	for range 20 {
		b.Start(0)
	}
	fmt.Println("at once:", b.Balance(0))
	g := b.Withdraw(0, budget.Transient, nil)
	fmt.Println("with one under way:", b.Balance(0))
	b.Release(0, g.Receipt)
	fmt.Println("when it is over:", b.Balance(0))
	// Output:
	// {Percent:20 MinConcurrency:3}
	// at once: 4
	// with one under way: 3
	// when it is over: 4
}

// Finagle's default: a fifth of the calls, and ten retries a second for each
// process besides.
func ExampleFinagleDefault() {
	fmt.Printf("%+v\n", rivals.FinagleDefault())
	b := rivals.Budget{Finagle: rivals.FinagleDefault()}.New()
	fmt.Println("before the first call:", b.Balance(0))
	for range 50 {
		b.Start(0)
	}
	fmt.Println("after 50 calls:", b.Balance(0))
	// Output:
	// {TTL:10s MinPerSecond:10 Percent:0.2 OnSuccess:false}
	// before the first call: 100
	// after 50 calls: 110
}
