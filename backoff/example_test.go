package backoff_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/backoff"
)

// The zero Schedule: what a wait is drawn from, retry by retry.
func ExampleSchedule() {
	var s backoff.Schedule
	for _, retry := range []int{1, 2, 3, 8, 9, 100} {
		fmt.Printf("retry %d: up to %v\n", retry, s.Ceiling(retry))
	}
	// Output:
	// retry 1: up to 100ms
	// retry 2: up to 200ms
	// retry 3: up to 400ms
	// retry 8: up to 12.8s
	// retry 9: up to 20s
	// retry 100: up to 20s
}

func ExampleSchedule_Delay() {
	s := backoff.Schedule{Base: 50 * time.Millisecond, Cap: 5 * time.Second}
	var wait time.Duration
	for retry := 1; retry <= 3; retry++ {
		// The wait before is handed back in for Decorrelated; the others ignore it.
		wait = s.Delay(retry, wait, rand.Uint64)
		fmt.Println(wait >= 0 && wait <= s.Max(retry))
	}
	// Output:
	// true
	// true
	// true
}

func ExampleSchedule_Ceiling() {
	s := backoff.Schedule{Kind: backoff.Linear, Base: time.Second, Cap: 3 * time.Second, FastFirst: true}
	fmt.Println(s.Ceiling(1), s.Ceiling(2), s.Ceiling(3), s.Ceiling(4), s.Ceiling(5))
	// Output: 0s 1s 2s 3s 3s
}

// The longest that a call with three retries can spend waiting.
func ExampleSchedule_Max() {
	s := backoff.Schedule{Jitter: backoff.Proportional}
	var worst time.Duration
	for retry := 1; retry <= 3; retry++ {
		worst += s.Max(retry)
	}
	fmt.Println(worst)
	// Output: 840ms
}

func ExampleSchedule_Limit() {
	fmt.Println(
		backoff.Schedule{}.Limit(),
		backoff.Schedule{Kind: backoff.Immediate}.Limit(),
		backoff.Schedule{Kind: backoff.Ethernet}.Limit(),
	)
	// Output: 0 1 15
}

func ExampleSchedule_Validate() {
	s := backoff.Schedule{Base: 10 * time.Second, Cap: time.Second, Factor: 0.5}
	fmt.Println(s.Validate())
	// Output:
	// Cap is 1s: want zero or at least Base (10s)
	// Factor is 0.5: want zero or a number of at least 1
}

// A Func may be anything that keeps to the contract, such as a fixed list.
func ExampleFunc() {
	waits := []time.Duration{time.Second, 5 * time.Second, time.Minute}
	var f backoff.Func = func(retry int, _ time.Duration, _ func() uint64) time.Duration {
		return waits[min(max(retry, 1), len(waits))-1]
	}
	fmt.Println(f(1, 0, nil), f(3, 0, nil), f(9, 0, nil))
	// Output: 1s 1m0s 1m0s
}
