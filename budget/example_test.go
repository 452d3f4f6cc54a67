package budget_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/budget"
)

// The default: two retries to begin with, and ten calls that succeed pay for one
// more. A call that fails pays for none.
func ExampleNew() {
	b, err := budget.New(budget.Config{})
	if err != nil {
		panic(err)
	}
	fail := func(now time.Duration) bool {
		b.Start(now)
		b.Failed(now)
		g := b.Withdraw(now, budget.Transient, nil)
		b.Done(now, false, g.Receipt, 1)
		return g.OK
	}
	retries := 0
	for range 1000 { // an outage
		if fail(0) {
			retries++
		}
	}
	fmt.Println("retries in 1000 calls that fail:", retries)
	for range 15 {
		b.Start(time.Second)
		b.Done(time.Second, true, 0, 0)
	}
	fmt.Println("after 15 successes:", b.Balance(time.Second))
	// Output:
	// retries in 1000 calls that fail: 20
	// after 15 successes: 1
}

// The first refusal after a retry that was paid for is worth an event.
func ExampleNewBucket() {
	b, err := budget.NewBucket(budget.Config{Stock: 1, Ratio: 0.25})
	if err != nil {
		panic(err)
	}
	for range 3 {
		g := b.Withdraw(0, budget.Transient, nil)
		fmt.Printf("paid: %v, newly exhausted: %v\n", g.OK, g.Exhausted)
	}
	b.Done(0, true, 0, 0)
	fmt.Println("tokens:", b.Tokens())
	// Output:
	// paid: true, newly exhausted: false
	// paid: false, newly exhausted: true
	// paid: false, newly exhausted: false
	// tokens: 0.25
}

// In a sliding window ten calls that succeed pay for one retry. Time is handed
// in: a driver passes time.Since(start).
func ExampleRatio() {
	b, err := budget.New(budget.Config{Window: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	for range 9 {
		b.Start(time.Second)
		b.Done(time.Second, true, 0, 0)
	}
	fmt.Println("balance:", b.Balance(time.Second)) // 9, and one to begin with

	for n := range 2 {
		g := b.Withdraw(2*time.Second, budget.Transient, rand.Uint64)
		fmt.Printf("retry %d: %v, exhausted: %v\n", n+1, g.OK, g.Exhausted)
	}
	// Output:
	// balance: 1
	// retry 1: true, exhausted: false
	// retry 2: false, exhausted: true
}

// A full budget is nothing to remember: make it when a retry is first wanted, or
// when two calls have succeeded closer together than QuietGap.
func ExampleConfig_CanStartLate() {
	var c budget.Config
	var b budget.Budget // of a process that has not failed yet
	last := -c.QuietGap()
	succeeded := func(now time.Duration) {
		if b == nil && (!c.CanStartLate() || now-last < c.QuietGap()) {
			b, _ = budget.New(c)
		}
		if b != nil {
			b.Done(now, true, 0, 0)
		}
		last = now
	}
	retry := func(now time.Duration) bool {
		if b == nil {
			b, _ = budget.New(c)
		}
		return b.Withdraw(now, budget.Transient, nil).OK
	}
	for n := range 1000 {
		succeeded(time.Duration(n) * 12 * time.Second)
	}
	fmt.Println("remembers something:", b != nil)
	fmt.Println(retry(time.Hour), b.Balance(time.Hour))
	// Output:
	// remembers something: false
	// true 19
}

// The whole of one call: the retry is paid before the wait, released when its
// attempt is over, and handed to Done.
func ExampleBudget() {
	var b budget.Budget
	b, err := budget.NewBucket(budget.Config{Stock: 100})
	if err != nil {
		panic(err)
	}
	attempts := []bool{false, false, true} // how they will end

	var now time.Duration
	var last budget.Receipt
	b.Start(now)
	for n, success := range attempts {
		if n > 0 {
			b.Release(now, last)
		}
		if success {
			b.Done(now, true, last, 1)
			break
		}
		b.Failed(now)
		g := b.Withdraw(now, budget.Transient, rand.Uint64)
		if !g.OK {
			b.Done(now, false, last, 1)
			break
		}
		last = g.Receipt
		now += 100 * time.Millisecond // the wait, already paid for
	}
	fmt.Println("retries left:", b.Balance(now)) // two paid, and a success earned a tenth
	// Output: retries left: 98
}

// A mistaken configuration is reported whole.
func ExampleConfig_Validate() {
	err := budget.Config{Ratio: 20, Floor: -1, Window: time.Millisecond}.Validate()
	fmt.Println(err)
	// Output:
	// Ratio is 20: want zero (0.1), or a ratio from 1e-05 to 4 (20 % is 0.2: was that meant?)
	// Window is 1ms: want zero (none), or a duration from 100ms to 1h0m0s
	// Floor is -1: want zero (none), or retries per second up to 1000000
}

// gRPC retries while more than half of the tokens are left; failures pay.
func ExampleNewGRPCThrottle() {
	b, err := budget.NewGRPCThrottle(budget.GRPCConfig{MaxTokens: 4, TokenRatio: 0.5})
	if err != nil {
		panic(err)
	}
	for range 2 {
		b.Failed(0)
		fmt.Println(b.Withdraw(0, budget.Transient, nil).OK, b.Tokens())
	}
	b.Done(0, true, 0, 0)
	fmt.Println(b.Tokens())
	// Output:
	// true 3
	// false 2
	// 2.5
}

// A new configuration keeps the bucket as full in proportion as it was.
func ExampleGRPCThrottle_Rescale() {
	b, err := budget.NewGRPCThrottle(budget.GRPCConfig{MaxTokens: 4, TokenRatio: 1})
	if err != nil {
		panic(err)
	}
	b.Failed(0)
	if err := b.Rescale(budget.GRPCConfig{MaxTokens: 10, TokenRatio: 3}); err != nil {
		panic(err)
	}
	fmt.Println(b.Tokens())
	// Output: 7.5
}

// Text, as configuration files have it.
func ExampleEarn_UnmarshalText() {
	var e budget.Earn
	fmt.Println(e.UnmarshalText([]byte("Arrivals")), e)
	fmt.Println(e.UnmarshalText([]byte("failures")))
	// Output:
	// <nil> arrivals
	// Earn is "failures": want successes or arrivals
}
