package hedge_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/hedge"
)

const ms = time.Millisecond

// The steps of a driver for one call. Here time is a constant, and the first attempt takes
// half a second.
func Example() {
	h, err := hedge.New(hedge.Config{Attempts: 2, Delay: 20 * ms, Share: -1})
	if err != nil {
		panic(err)
	}
	now := time.Duration(0)
	flight := h.Start(now) // and the first attempt with it
	if delay, ok := flight.Delay(); ok {
		now += delay // a timer fires, and nothing has succeeded
		if why := h.Fire(now, &flight); why == hedge.Granted {
			fmt.Println("a second attempt starts at", now)
			now += 10 * ms // it succeeds
			h.Release()
		}
	}
	h.Done(now, &flight, false) // the first attempt is cancelled
	fmt.Println("the call ends at", now)
	// Output:
	// a second attempt starts at 20ms
	// the call ends at 30ms
}

// taught is a hedger that has seen a thousand calls of 1 to 100 ms.
func taught() (h *hedge.Hedger, now time.Duration) {
	h, _ = hedge.New(hedge.Config{Attempts: 2})
	for i := range 1000 {
		now += ms
		flight := h.Start(now)
		h.Done(now+time.Duration(1+i%100)*ms, &flight, true)
	}
	return h, now + 100*ms
}

func ExampleNew() {
	h, err := hedge.New(hedge.Config{Attempts: 2}) // on, with the recommended settings
	fmt.Println(h != nil, err)
	h, err = hedge.New(hedge.Config{}) // off
	fmt.Println(h != nil, err)
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleConfig_Validate() {
	c := hedge.Config{Attempts: 2, Percentile: 95, Window: -1, Share: 0.01}
	fmt.Println(c.Validate())
	// Output:
	// Percentile is 95: want zero (0.95), or a share from 0.5 to 0.999 (95 % is 0.95: was that meant?)
	// Window is -1ns: want zero (30s), or a duration from 1s to 1h
}

// As gRPC's hedgingPolicy with maxAttempts 4 and hedgingDelay "0.5s".
func ExampleConfig_grpc() {
	h, _ := hedge.New(hedge.Config{Attempts: 4, Delay: 500 * ms, Share: -1, InFlight: -1})
	now := time.Duration(0)
	flight := h.Start(now)
	fmt.Println("attempt at", now)
	for range 10 {
		delay, ok := flight.Delay()
		if !ok {
			break
		}
		now += delay
		if h.Fire(now, &flight) == hedge.Granted {
			fmt.Println("attempt at", now)
		}
	}
	// Output:
	// attempt at 0s
	// attempt at 500ms
	// attempt at 1s
	// attempt at 1.5s
}

// When everything is slow nothing is hedged.
func ExampleHedger_Fire() {
	h, now := taught()
	granted := map[hedge.FireResult]int{}
	for range 500 { // all of them late
		now += ms
		flight := h.Start(now)
		granted[h.Fire(now, &flight)]++
	}
	fmt.Println(granted[hedge.Granted] <= 50, granted[hedge.TooManyLate] >= 450)
	// Output: true true
}

// That an attempt was cut short after a millisecond does not make the percentile
// less.
func ExampleHedger_Done() {
	h, now := taught()
	before, _ := h.Delay(now)
	for range 100 {
		flight := h.Start(now)
		h.Done(now+ms, &flight, false)
	}
	after, _ := h.Delay(now + time.Second)
	fmt.Println(before == after)
	// Output: true
}

func ExampleHedger_Counts() {
	h, _ := hedge.New(hedge.Config{Attempts: 2, Delay: 20 * ms})
	for i := range 100 {
		now := time.Duration(i) * 5 * ms
		flight := h.Start(now)
		if i%25 == 0 {
			h.Fire(now+20*ms, &flight)
		}
	}
	fmt.Println(h.Counts(500 * ms))
	fmt.Println(h.Counts(time.Minute))
	// Output:
	// 100 4
	// 0 0
}

// Many hedgers of one kind: what they have in common is there once.
func ExamplePrepare() {
	plan, err := hedge.Prepare(hedge.Config{Attempts: 2, Delay: 20 * ms})
	if err != nil {
		panic(err)
	}
	shards := []*hedge.Hedger{plan.New(), plan.New(), plan.New()}
	flight := shards[1].Start(0)
	fmt.Println(flight.Delay())
	// Output: 20ms true
}
