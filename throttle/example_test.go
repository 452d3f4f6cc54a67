package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/throttle"
)

// One line switches it on. A backend that refuses everything gets fewer and fewer
// attempts, and never none.
func Example() {
	t, err := throttle.New(throttle.Config{Mode: throttle.Adaptive})
	if err != nil {
		fmt.Println(err)
		return
	}
	random := rand.New(rand.NewPCG(1, 2)).Uint64 // math/rand/v2's Uint64 in a program
	for minute := range 4 {
		sent := 0
		for call := range 6000 {
			now := time.Duration(minute)*time.Minute + time.Duration(call)*10*time.Millisecond
			if _, ok := t.Start(now, random); !ok {
				continue // fail at once
			}
			sent++
			t.Done(now, throttle.RateLimited)
		}
		fmt.Println("attempts sent:", sent)
	}
	// Output:
	// attempts sent: 16
	// attempts sent: 10
	// attempts sent: 9
	// attempts sent: 10
}

// Under Cubic an attempt may have to wait for its place. The engine carries the wait
// out. A caller that gives up before the end of the wait reports that.
func ExampleThrottle_Start() {
	t, _ := throttle.New(throttle.Config{Mode: throttle.Cubic})
	now := time.Duration(0)
	for range 100 { // ten calls a second
		t.Start(now, nil)
		t.Done(now, throttle.Accepted)
		now += 100 * time.Millisecond
	}
	t.Done(now, throttle.RateLimited)
	fmt.Printf("held to %.1f attempts/s\n", t.State(now).Rate)
	for range 9 {
		wait, ok := t.Start(now, nil)
		if wait > 0 {
			fmt.Println("wait", wait.Round(time.Millisecond), ok)
		}
	}

	t.Done(now, throttle.Unsent) // the last one gives up, and its place is free
	wait, _ := t.Start(now, nil)
	fmt.Println(wait.Round(time.Millisecond))
	// Output:
	// held to 7.0 attempts/s
	// wait 143ms true
	// wait 286ms true
	// 286ms
}

func ExampleThrottle_State() {
	t, _ := throttle.New(throttle.Config{Mode: throttle.Adaptive})
	for range 30 {
		t.Done(0, throttle.Accepted)
	}
	for range 90 {
		t.Done(0, throttle.RateLimited)
	}
	s := t.State(0)
	fmt.Printf("%d of %d accepted: the next is refused with a probability of %.2f\n", s.Accepts, s.Requests, s.Refusal)
	// Output: 30 of 120 accepted: the next is refused with a probability of 0.50
}

// The book's formula and nothing else.
func ExampleConfig_book() {
	c := throttle.Config{Mode: throttle.Adaptive, Recent: throttle.DefaultWindow, ProbeEvery: -1, MinRequests: 1}
	fmt.Println(c.Validate())
	// Output: <nil>
}

// The limiter of the AWS SDKs as they have it: each rate-limited answer lowers the
// rate, waits have no limit, and the limit never ends.
func ExampleConfig_aws() {
	const never = 1<<63 - 1
	c := throttle.Config{Mode: throttle.Cubic, FallEvery: -1, MaxWait: never, Window: never}
	fmt.Println(c.Validate())
	// Output: <nil>
}

func ExampleConfig_Validate() {
	err := throttle.Config{Mode: throttle.Adaptive, K: 1, Window: time.Millisecond}.Validate()
	fmt.Println(err)
	// Output:
	// Window is 1ms: want zero (2m0s), or a duration of at least 1s
	// K is 1: want zero (2), or a number from 1.05 to 1000
}

// A process with many dependencies prepares the configuration once.
func ExamplePrepare() {
	plan, err := throttle.Prepare(throttle.Config{Mode: throttle.Adaptive})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, payments := plan.New(), plan.New()
	for range 100 {
		orders.Done(0, throttle.RateLimited)
	}
	fmt.Printf("%.2f %.2f\n", orders.State(0).Refusal, payments.State(0).Refusal)
	// Output: 0.99 0.00
}
