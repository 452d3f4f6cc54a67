package breaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/breaker"
)

func Example() {
	b, err := breaker.New(breaker.Config{})
	if err != nil {
		panic(err)
	}
	epoch := time.Now()

	call := func(op func() error) error {
		token, ok := b.Start(time.Since(epoch))
		if !ok {
			return errors.New("circuit open")
		}
		outcome := breaker.Neutral // of a call that panics: it says nothing about the dependency
		defer func() { b.Done(time.Since(epoch), token, outcome, rand.Uint64) }()
		err := op()
		if outcome = breaker.Success; err != nil {
			outcome = breaker.Failure
		}
		return err
	}

	down := func() error { return errors.New("connection refused") }
	for range 20 {
		_ = call(down)
	}
	fmt.Println(call(down))
	// Output: circuit open
}

func ExampleNew() {
	b, _ := breaker.New(breaker.Config{Consecutive: 3, OpenJitter: -1}, func(c breaker.Change) {
		fmt.Printf("%v, until %v\n", c, c.Until)
	})
	for range 3 {
		token, _ := b.Start(time.Second)
		b.Done(time.Second, token, breaker.Failure, nil)
	}
	// Output: closed to open: consecutive failures (3 of 3), until 6s
}

func ExampleConfig_Validate() {
	c := breaker.Config{FailureRate: 50, SlowRate: 0.5, Probes: -1}
	fmt.Println(c.Validate())
	// Output:
	// FailureRate is 50: want a share above 0 and up to 1, zero for the default, or negative for none
	// SlowCall is 0s: want a positive duration when SlowRate is set, else zero or positive
	// Probes is -1: want zero or 1 to 1000
}

// A call that the breaker admits is reported in whatever way it ends.
func ExampleBreaker_Start() {
	b, _ := breaker.New(breaker.Config{})
	now := 10 * time.Second
	token, ok := b.Start(now)
	fmt.Println(ok, token.Probe())
	b.Done(now+80*time.Millisecond, token, breaker.Success, rand.Uint64)
	// Output: true false
}

// A caller that went away says nothing about the dependency.
func ExampleBreaker_Done() {
	b, _ := breaker.New(breaker.Config{MinCalls: 2})
	for _, o := range []breaker.Outcome{breaker.Success, breaker.Neutral, breaker.Failure} {
		token, ok := b.Start(0)
		b.Done(0, token, o, rand.Uint64)
		fmt.Println(ok, o, b.State(0))
	}
	// Output:
	// true success closed
	// true neutral closed
	// true failure open
}

func ExampleBreaker_State() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1, OpenFor: 4 * time.Second, OpenJitter: -1})
	token, _ := b.Start(0)
	b.Done(0, token, breaker.Failure, nil)
	for now := time.Duration(0); now <= 4*time.Second; now += 2 * time.Second {
		fmt.Println(now, b.State(now))
	}
	// Output:
	// 0s open
	// 2s open
	// 4s half-open
}

func ExampleBreaker_RetryAt() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1, OpenJitter: -1})
	token, _ := b.Start(0)
	b.Done(0, token, breaker.Failure, nil)

	now := 2 * time.Second
	if _, ok := b.Start(now); !ok {
		fmt.Printf("circuit open, try again in %v\n", b.RetryAt(now)-now)
	}
	// Output: circuit open, try again in 3s
}

func ExampleBreaker_Counts() {
	b, _ := breaker.New(breaker.Config{})
	for _, o := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Success} {
		token, _ := b.Start(0)
		b.Done(0, token, o, nil)
	}
	fmt.Println(b.Counts(0))
	fmt.Println(b.Counts(time.Minute))
	// Output:
	// 3 1 0
	// 0 0 0
}

// Taking a dependency out of service by hand, and leaving it to the breaker
// again: a probe decides.
func ExampleBreaker_ForceOpen() {
	b, _ := breaker.New(breaker.Config{})
	b.ForceOpen(0)
	_, ok := b.Start(time.Hour)
	fmt.Println(ok, b.State(time.Hour))
	b.Auto(time.Hour)
	token, ok := b.Start(time.Hour)
	fmt.Println(ok, b.State(time.Hour))
	b.Done(time.Hour, token, breaker.Success, nil)
	fmt.Println(b.State(time.Hour))
	// Output:
	// false open
	// true half-open
	// closed
}

func ExampleBreaker_ForceClosed() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1})
	b.ForceClosed(0)
	for range 3 {
		token, ok := b.Start(0)
		b.Done(0, token, breaker.Failure, nil)
		fmt.Println(ok, b.State(0))
	}
	// Output:
	// true closed
	// true closed
	// true closed
}

func ExampleBreaker_Auto() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1})
	b.ForceClosed(0)
	b.Auto(0)
	token, _ := b.Start(0)
	b.Done(0, token, breaker.Failure, nil)
	fmt.Println(b.State(0))
	// Output: open
}

// Trying a configuration out before it may refuse anything.
func Example_metricsOnly() {
	b, _ := breaker.New(breaker.Config{MetricsOnly: true}, func(c breaker.Change) { fmt.Println(c) })
	refused := 0
	for range 100 {
		token, ok := b.Start(0)
		if !ok {
			refused++
		}
		b.Done(0, token, breaker.Failure, nil)
	}
	fmt.Println(refused, "refused")
	// Output:
	// closed to open: failure rate (20 of 20), metrics only
	// 0 refused
}

func ExampleToken_Probe() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1, OpenJitter: -1})
	token, _ := b.Start(0)
	b.Done(0, token, breaker.Failure, nil)
	token, ok := b.Start(5 * time.Second)
	fmt.Println(ok, token.Probe())
	// Output: true true
}
