package breaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/breaker"
)

func Example() {
	b, err := breaker.New(breaker.Config{Consecutive: 20, ConsecutiveFor: -1, OpenFor: time.Minute})
	if err != nil {
		panic(err)
	}
	epoch := time.Now() //clock: the circuit stays open for a minute

	call := func(op func() error) error {
		token, ok := b.Start(time.Since(epoch)) //clock: as above
		if !ok {
			return errors.New("circuit open")
		}
		outcome := breaker.Neutral                                                // of a call that panics: nothing is learned about the dependency
		defer func() { b.Done(time.Since(epoch), token, outcome, rand.Uint64) }() //clock: as above
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
	b, _ := breaker.New(breaker.Config{OpenJitter: -1}, func(c breaker.Change) {
		fmt.Printf("%v, from %v until %v\n", c, c.At, c.Until)
	})
	for _, now := range []time.Duration{0, 3 * time.Second, 6 * time.Second} {
		token, _ := b.Start(now)
		b.Done(now+time.Second, token, breaker.Failure, nil) // timed out
	}
	// Output: closed to open: consecutive failures (3 of 3), from 7s until 7.6s
}

func ExampleConfig_Validate() {
	c := breaker.Config{FailureRate: 50, SlowRate: 0.5, Probes: -1}
	fmt.Println(c.Validate())
	// Output:
	// FailureRate is 50: want a share above 0 and up to 1, or zero for none (50 % is 0.5: was that meant?)
	// SlowCall is 0s: want a positive duration when SlowRate is set, else zero or positive
	// Probes is -1: want zero or 1 to 1000
}

func ExampleBreaker_RetryAt() {
	b, _ := breaker.New(breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 5 * time.Second, OpenJitter: -1})
	token, _ := b.Start(0)
	b.Done(0, token, breaker.Failure, nil)

	now := 2 * time.Second
	if _, ok := b.Start(now); !ok {
		fmt.Printf("circuit open, try again in %v\n", b.RetryAt(now)-now)
	}
	// Output: circuit open, try again in 3s
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

// Trying a configuration out before it may refuse anything.
func Example_metricsOnly() {
	b, _ := breaker.New(breaker.Config{FailureRate: 0.5, OpenFor: time.Second, MetricsOnly: true}, func(c breaker.Change) { fmt.Println(c) })
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

// Many breakers of one kind: what they have in common is there once.
func ExamplePrepare() {
	plan, err := breaker.Prepare(breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second})
	if err != nil {
		panic(err)
	}
	shards := make([]*breaker.Breaker, 3)
	for i := range shards {
		shards[i] = plan.New(func(c breaker.Change) { fmt.Printf("shard %d: %v\n", i, c) })
	}
	token, _ := shards[1].Start(0)
	shards[1].Done(0, token, breaker.Failure, rand.Uint64)
	// Output: shard 1: closed to open: consecutive failures (1 of 1)
}

// A breaker made at the first failure: where nothing has failed there is none.
func ExampleLateTicket() {
	plan, _ := breaker.Prepare(breaker.Config{ConsecutiveFor: time.Second, OpenFor: time.Second}) // CanStartLate is true
	var b *breaker.Breaker
	for i := range 4 {
		now := time.Duration(i) * time.Second
		token := breaker.LateTicket(now)
		if b != nil {
			token, _ = b.Start(now)
		} else if i > 0 { // the first call succeeds
			b = plan.New()
		}
		if b != nil {
			b.Done(now, token, breaker.Failure, rand.Uint64)
			fmt.Println(b.State(now))
		}
	}
	// Output:
	// closed
	// closed
	// open
}
