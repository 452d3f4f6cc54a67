package main

import (
	"context"
	"slices"
	"strings"
)

// A group is one comparison: subjects that are given the same thing to do.
type group struct {
	name      string
	about     string
	reference string // the subject that ratios are taken to
	subjects  []subject
	extras    []extra
}

// An extra asks for what a subject costs more than another of its group, which
// does the same without it.
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
		{name: "RetrySuccess", about: "one call, whose first attempt succeeds", reference: "lull", subjects: calling(retryCallers(), succeed),
			extras: []extra{{"lull adaptive throttle", "lull"}, {"lull cubic throttle", "lull"}}},
		{name: "ComposedSuccess", about: "the same, through everything that the subject has", reference: "lull", subjects: calling(composedCallers(), succeed)},
		{name: "ThreeFailures", about: "one call, whose first three attempts fail; no delay between them", reference: "lull", subjects: calling(failureCallers(), failThrice)},
		{name: "HTTPGet", about: "GET over a transport that answers 200 at once", reference: "lullhttp", subjects: sending(senders(), "GET", nil),
			extras: []extra{{"lullhttp endpoints", "lullhttp"}}},
		{name: "HTTPPut1K", about: "PUT of 1 KiB over a transport that reads it and answers 200 at once", reference: "lullhttp", subjects: sending(senders(), "PUT", make([]byte, 1<<10))},
		{name: "HedgeSuccess", about: "one call with hedging on, whose first attempt succeeds in time", reference: "lull hedge", subjects: calling(hedgeCallers(), succeed),
			extras: []extra{{"lull fixed hedge", "lull"}, {"lull hedge", "lull"}, {"lull everything+hedge", "lull everything"}, {"lull zero policy+hedge", "lull zero policy"}}},
		{name: "HedgeGet", about: "GET with hedging on, over a transport that answers 200 at once", reference: "lullhttp hedge", subjects: sending(hedgeSenders(), "GET", nil),
			extras: []extra{{"lullhttp fixed hedge", "lullhttp"}, {"lullhttp hedge", "lullhttp"}, {"lullhttp zero policy+hedge", "lullhttp zero policy"}}},
		{name: "Metrics", about: "one call, whose first attempt succeeds, with OpenTelemetry metrics on", reference: "lull", subjects: calling(metricsCallers(), succeed),
			extras: []extra{{"lull timed", "lull"}, {"lull counted", "lull"}, {"lull metrics", "lull"}}},
		{name: "GRPCUnary", about: "a unary call to a server in the same process, which answers at once", reference: "lullgrpc", subjects: dialing(dialers()),
			extras: []extra{{"lullgrpc", "grpc-go"}, {"lullgrpc zero policy", "grpc-go deadline"}, {"lullgrpc zero policy+hedge", "lullgrpc zero policy"}}},
		{name: "Adapters", about: "one operation of a client that lull has an adapter for, which is answered at once", reference: "lullsql.Exec", subjects: adapted, extras: more},
	}
}
