package requeue_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/requeue"
)

// Request is what a controller is to reconcile.
type Request struct{ Namespace, Name string }

// A limiter for the options of a controller. While the circuit is open no item comes back.
func Example() {
	d, err := lull.NewDependency("cloud", requeue.Policy())
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := requeue.New[Request](d) // reconcile.Request, as a rule
	if err != nil {
		log.Fatal(err)
	}
	// controller.Options{RateLimiter: limiter}

	first := Request{"default", "first"}
	fmt.Println(limiter.When(first) <= 5*time.Millisecond, limiter.NumRequeues(first))
	limiter.Forget(first)
	fmt.Println(limiter.NumRequeues(first))
	// Output:
	// true 1
	// 0
}

func ExamplePolicy() {
	p := requeue.Policy()
	fmt.Println(p.Backoff.Base, p.Backoff.Cap, p.Validate())
	// Output: 5ms 16m40s <nil>
}
