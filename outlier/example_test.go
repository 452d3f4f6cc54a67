package outlier_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/outlier"
)

// A call is tried at up to three endpoints, each time at another one.
func Example() {
	set, err := outlier.New(outlier.Config{})
	if err != nil {
		panic(err)
	}
	epoch := time.Now() //clock: three calls eject nobody, however long they take
	set.Update(0, []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"})

	call := func(send func(address string) error) (err error) {
		var tried outlier.Tried
		for range 3 {
			endpoint, ok := set.Pick(time.Since(epoch), rand.Uint64, &tried) //clock: as above
			if !ok {
				return errors.New("no endpoints")
			}
			err = send(endpoint.Key())
			outcome := outlier.Success
			if err != nil {
				outcome = outlier.LocalOrigin
			}
			set.Done(time.Since(epoch), endpoint, outcome, rand.Uint64) //clock: as above
			if err == nil {
				return nil
			}
		}
		return err
	}

	fmt.Println(call(func(address string) error {
		if address != "10.0.0.2:80" {
			return errors.New("connection refused")
		}
		return nil
	}))
	// Output: <nil>
}

func ExampleNew() {
	set, _ := outlier.New(outlier.Config{Jitter: -1}, func(c outlier.Change) {
		fmt.Printf("%v, at %v until %v\n", c, c.At, c.Until)
	})
	set.Update(0, []string{"a", "b", "c"})
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	for now := time.Duration(0); now < 60*time.Second; now += 20 * time.Millisecond {
		e, _ := set.Pick(now, random, nil)
		outcome := outlier.Success
		if e.Key() == "b" && now > 20*time.Second && random()%2 == 0 && now < 30*time.Second {
			outcome = outlier.FiveXX // it fails half of the time
		}
		set.Done(now, e, outcome, random)
	}
	// Output:
	// b ejected: success rate (42 of 160 failed), at 25s until 55s
	// b returned: time passed, at 55s until 0s
}

func ExampleConfig_Validate() {
	c := outlier.Config{Factor: -1, MaxEjected: 200, Enforce: outlier.Enforce{SuccessRate: 101}}
	fmt.Println(c.Validate())
	// Output:
	// Factor is -1: want zero or a positive number up to 1000
	// Enforce.SuccessRate is 101: want at most 100, zero for 100, or negative for none
	// MaxEjected is 200: want at most 100, zero for the default, or negative for none
}

// Envoy's defaults, with the one field set that most who use it set.
func ExampleEnvoyDefaults() {
	c := outlier.EnvoyDefaults()
	c.MaxEjected = 50 // max_ejection_percent
	set, _ := outlier.New(c, func(c outlier.Change) { fmt.Println(c) })
	set.Update(0, []string{"a", "b"})
	for range 10 {
		e, _ := set.Pick(0, nil, nil)
		outcome := outlier.Success
		if e.Key() == "b" {
			outcome = outlier.GatewayFailure
		}
		set.Done(0, e, outcome, nil)
	}
	// Output:
	// b spared: consecutive gateway failures (5 of 5 failed)
	// b ejected: consecutive failures (5 of 5 failed)
}

func ExampleSet_States() {
	set, _ := outlier.New(outlier.Config{})
	set.Update(0, []string{"a", "b"})
	for i := range 20 {
		e, _ := set.Pick(time.Second, nil, nil)
		if i == 7 {
			continue // still under way
		}
		set.Done(time.Second, e, outlier.Evidence(i%4/3), nil)
	}
	for _, s := range set.States(time.Second) {
		rate, _ := s.SuccessRate()
		fmt.Printf("%s: %d under way, %.0f %% of %d succeeded, ejected: %v\n", s.Key, s.Load, 100*rate, s.Calls, s.Ejected)
	}
	// Output:
	// a: 0 under way, 75 % of 12 succeeded, ejected: false
	// b: 1 under way, 86 % of 7 succeeded, ejected: false
}

func ExampleTried() {
	set, _ := outlier.New(outlier.Config{Choice: outlier.RoundRobin})
	set.Update(0, []string{"a", "b"})
	var tried outlier.Tried
	for range 4 {
		e, _ := set.Pick(0, nil, &tried)
		fmt.Print(e.Key(), " ")
		set.Done(0, e, outlier.FiveXX, nil)
	}
	// Output: a b a b
}

func ExampleLimit() {
	var l outlier.Limit
	fmt.Println(l, l.UnmarshalText([]byte("floor")))
	// Output: at-least-one Limit is "floor": want at-least-one, round-down or round-up
}
