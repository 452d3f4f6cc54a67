// Package bench measures lull beside the Go libraries that people use for the same job, in one run on one machine: failsafe-go,
// gobreaker, cenkalti/backoff, avast/retry-go, go-retryablehttp, hedgedhttp, and the retries that gRPC has itself. It has
// nothing but benchmarks and tests:
//
//	.ci/bench --peers                                     # everything, in a table of benchstat
//	go test -run '^$' -bench Composed -cpu 1,2 ./lab/bench   # the groups whose name contains that, once
//
// A group gives each subject the same work, which costs next to nothing: what is left is the library's own. (GRPCUnary is a whole call
// through memory, both halves of it, and Adapters has clients of databases, caches and clouds: there the differences count to the
// bare client with a deadline of its caller's. lullpgx is measured with a real server: go test -run '^$' -bench Cost
// ./integrations/postgres/lullpgx.) A subject is set up as its documentation shows, in the form that is cheapest to call again. What it does
// for every call is part of the benchmark's name: compare like with like. Of the groups on hedging no call is late: they measure those
// that are not hedged.
//
// With -cpu 1,2 each figure is measured on one core, and on two whose goroutines share the subject's state: there it is wall time divided by
// calls. .ci/bench gives each measurement a process of its own. In one process for all, those that come later pay for what a subject leaves
// behind: goroutines that have ended but are looked at by every collection, pools, timers, a heap that has been large. A round measures
// every subject once, in another order each time, so that what disturbs the machine disturbs all.
package bench

import (
	"context"
	"slices"
	"strings"
)

// A group is one comparison: subjects that are given the same thing to do.
type group struct {
	name     string
	subjects []subject
	extras   []extra
}

// An extra is a subject that does more than another of its group, and the same otherwise.
type extra struct{ subject, over string }

// index is where the named subject is, -1 if it is not there.
func (g group) index(name string) int {
	return slices.IndexFunc(g.subjects, func(s subject) bool { return s.name == name })
}

// A subject is one library in one configuration, with its work.
type subject struct {
	name string
	does feature
	// start makes the state that the goroutines of one process share. It runs
	// once per measurement; what it hands to atEnd runs after that.
	start func(atEnd func(func())) binder
}

// A binder readies a subject for one goroutine; call makes one logical call. The
// context is the caller's, cancellable as those of real servers are.
type binder func(ctx context.Context) (call func() error)

// A feature is something that a subject does for every call. It is printed
// beside the figures, and a test proves each of them.
type feature uint16

const (
	retries      feature = 1 << iota // repeats what failed
	budgeted                         // bounds the retries of all calls together
	breaks                           // stops calling what keeps failing
	limited                          // bounds the calls in flight
	observed                         // reports the end of every call to a counter
	timed                            // bounds the time of each attempt and of the call
	hedges                           // sends a second attempt beside one that is late, and takes the first result
	learned                          // knows what is late from the latencies of other calls
	bounded                          // bounds the hedges of all calls together
	firstSuccess                     // takes no failure for the result while another attempt runs
	throttled                        // holds attempts back from what has refused many
	chooses                          // sends each attempt to one of several endpoints
)

var featureNames = []string{"retry", "budget", "breaker", "limit", "observed", "timeouts", "hedge", "learned-delay", "hedge-bound", "first-success", "throttle", "endpoints"}

func (f feature) String() string {
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, "+")
}

func groups() []group {
	adapted, more := adapting(adapters())
	return []group{
		// One call, whose first attempt succeeds.
		{name: "RetrySuccess", subjects: calling(retryCallers(), succeed),
			extras: []extra{{"lull adaptive throttle", "lull"}, {"lull cubic throttle", "lull"}}},
		// The same, through everything that the subject has.
		{name: "ComposedSuccess", subjects: calling(composedCallers(), succeed)},
		// One call, whose first three attempts fail; no delay between them.
		{name: "ThreeFailures", subjects: calling(failureCallers(), failThrice)},
		// GET over a transport that answers 200 at once.
		{name: "HTTPGet", subjects: sending(senders(), "GET", nil),
			extras: []extra{{"lullhttp endpoints", "lullhttp"}}},
		// PUT of 1 KiB over a transport that reads it and answers 200 at once.
		{name: "HTTPPut1K", subjects: sending(senders(), "PUT", make([]byte, 1<<10))},
		// One call with hedging on, whose first attempt succeeds in time.
		{name: "HedgeSuccess", subjects: calling(hedgeCallers(), succeed),
			extras: []extra{{"lull fixed hedge", "lull"}, {"lull hedge", "lull"}, {"lull everything+hedge", "lull everything"}, {"lull zero policy+hedge", "lull zero policy"}}},
		// GET with hedging on, over a transport that answers 200 at once.
		{name: "HedgeGet", subjects: sending(hedgeSenders(), "GET", nil),
			extras: []extra{{"lullhttp fixed hedge", "lullhttp"}, {"lullhttp hedge", "lullhttp"}, {"lullhttp zero policy+hedge", "lullhttp zero policy"}}},
		// One call, whose first attempt succeeds, with OpenTelemetry metrics on.
		{name: "Metrics", subjects: calling(metricsCallers(), succeed),
			extras: []extra{{"lull timed", "lull"}, {"lull counted", "lull"}, {"lull metrics", "lull"}}},
		// A unary call to a server in the same process, which answers at once.
		{name: "GRPCUnary", subjects: dialing(dialers()),
			extras: []extra{{"lullgrpc", "grpc-go"}, {"lullgrpc zero policy", "grpc-go deadline"}, {"lullgrpc zero policy+hedge", "lullgrpc zero policy"}}},
		// One operation of a client that lull has an adapter for, which is answered at once.
		{name: "Adapters", subjects: adapted, extras: more},
	}
}
