package bulkhead_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/bulkhead"
)

func ExampleNew() {
	_, err := bulkhead.New(bulkhead.Config{InFlight: -1, MaxQueue: 5})
	fmt.Println(err)
	// Output:
	// InFlight is -1: want zero or a positive number of at most 2147483647
	// MaxQueue is 5: want zero, because without a MaxWait nobody waits
}

func ExampleLimiter_TryAcquire() {
	l, _ := bulkhead.New(bulkhead.Config{InFlight: 1})
	fmt.Println(l.TryAcquire(), l.TryAcquire())
	l.Release()
	fmt.Println(l.TryAcquire())
	// Output:
	// true false
	// true
}

func ExampleLimiter_Release() {
	l, _ := bulkhead.New(bulkhead.Config{InFlight: 10})
	call := func() {
		if !l.TryAcquire() {
			return
		}
		defer l.Release() // also when the call panics
		fmt.Println("in flight:", l.InFlight())
	}
	call()
	fmt.Println("in flight:", l.InFlight())
	// Output:
	// in flight: 1
	// in flight: 0
}

// A caller that waits in real time.
func ExampleLimiter_Join_realTime() {
	l, _ := bulkhead.New(bulkhead.Config{InFlight: 1, MaxWait: time.Millisecond})
	acquire := func() bool {
		turn := make(chan struct{})
		place := &bulkhead.Waiter{Admit: func() { close(turn) }}
		if a := l.Join(0, place); a != bulkhead.Queued {
			return a == bulkhead.Admitted
		}
		select {
		case <-turn:
			return true
		case <-time.After(place.Deadline): //clock: nobody gives a permit back, so it ends whenever it fires
			return !l.Leave(place) // it was admitted in the same moment
		}
	}
	fmt.Println(acquire(), acquire())
	// Output: true false
}

// A driver with a clock of its own passes its time.
func ExampleLimiter_Join() {
	l, _ := bulkhead.New(bulkhead.Config{InFlight: 1, MaxWait: 2 * time.Second})
	first := &bulkhead.Waiter{}
	second := &bulkhead.Waiter{Admit: func() { fmt.Println("second has its permit") }}
	third := &bulkhead.Waiter{}
	fmt.Println(l.Join(10*time.Second, first))
	fmt.Println(l.Join(11*time.Second, second), "until", second.Deadline)
	fmt.Println(l.Join(12*time.Second, third))
	l.Release()
	// Output:
	// admitted
	// queued until 13s
	// refused
	// second has its permit
}
