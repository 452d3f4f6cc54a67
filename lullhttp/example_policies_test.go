package lullhttp_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// Policies for hosts and routes, in one map. A long poll and an upload take longer than
// other requests, and should not count against them.
func ExampleWithPolicies() {
	transport, err := lullhttp.New(lull.Policy{}, lullhttp.WithPolicies(map[string]lull.Policy{
		"payments.internal":            {Attempts: 2},
		"GET queue.internal/poll":      {AttemptTimeout: 30 * time.Second, Deadline: time.Minute},
		"PUT files.internal/{object}/": {AttemptTimeout: 10 * time.Minute, Deadline: lull.NoTimeout},
	}))
	if err != nil {
		panic(err)
	}
	for _, path := range []string{"/poll", "/send"} {
		req, _ := http.NewRequest("GET", "http://queue.internal"+path, nil)
		d := transport.Dependency(req)
		fmt.Printf("%s: %q, attempts of at most %v\n", path, d.Name(), d.Policy().AttemptTimeout)
	}
	// Output:
	// /poll: "GET queue.internal/poll", attempts of at most 30s
	// /send: "queue.internal", attempts of at most 10s
}
