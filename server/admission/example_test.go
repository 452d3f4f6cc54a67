package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/lullgo/lull/server/admission"
)

// The core, as a simulator or another protocol's driver uses it: time is an argument.
func ExampleController() {
	c, err := admission.New(admission.Config{Limit: 1, MaxWait: 100 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	now := time.Second
	first := &admission.Ticket{}
	fmt.Println(c.Arrive(now, admission.Request{}, first).Outcome)

	second := &admission.Ticket{Settled: func(_ *admission.Ticket, d admission.Decision) { fmt.Println("then", d.Outcome) }}
	fmt.Println(c.Arrive(now, admission.Request{}, second).Outcome, "until", second.Until)

	hedge := &admission.Ticket{}
	d := c.Arrive(now, admission.Request{Hedge: true}, hedge)
	fmt.Println(d.Outcome, d.Reason, "pushback", d.Pushback())

	now += 20 * time.Millisecond
	c.Depart(now, first, admission.Done)
	// Output:
	// admitted
	// queued until 1.1s
	// refused shed_hedge pushback -1ms
	// then admitted
}

// A server that has just started fills its caches. It takes four requests at a time, then
// sixteen, and then what the limit finds.
func ExampleGate_SetMax() {
	c, err := admission.New(admission.Config{Limit: 32, MaxWait: -1})
	if err != nil {
		panic(err)
	}
	g := admission.NewGate(c)
	for _, most := range []int{4, 16, 0} {
		if err := g.SetMax(most); err != nil {
			panic(err)
		}
		fmt.Println("at most", g.Snapshot().Limit)
		// ... fill another part of the cache
	}
	// Output:
	// at most 4
	// at most 16
	// at most 32
}

func ExampleMiddleware() {
	m, err := admission.NewMiddleware(admission.Config{Limit: 1, MaxWait: -1})
	if err != nil {
		panic(err)
	}
	var h http.Handler
	h = m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// While this request is worked on, another comes, which is a retry.
		again := httptest.NewRequest("GET", "/", nil)
		again.Header.Set("Lull-Attempt", "2")
		refused := httptest.NewRecorder()
		h.ServeHTTP(refused, again)
		fmt.Println(refused.Code, "should retry:", refused.Header().Get("X-Should-Retry"))
		fmt.Println(refused.Body)
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code)
	// Output:
	// 503 should retry: false
	// {"type":"tag:lullgo.github.io,2026:overloaded-do-not-retry","title":"overloaded; don't retry","status":503,"reason":"full"}
	// 200
}

// What an interceptor of another protocol does.
func ExampleGate() {
	c, err := admission.New(admission.Config{})
	if err != nil {
		panic(err)
	}
	gate := admission.NewGate(c)
	serve := func(previousAttempts int, work func() error) error {
		pass, d := gate.Enter(context.Background(), admission.Request{Attempt: previousAttempts + 1})
		if d.Outcome != admission.Admitted {
			return fmt.Errorf("unavailable: %v; grpc-retry-pushback-ms: %d", d.Reason, d.Pushback().Milliseconds())
		}
		result := admission.Failed
		defer func() { pass.Depart(result) }()
		err := work()
		if err == nil {
			result = admission.Done
		}
		return err
	}
	fmt.Println(serve(0, func() error { return nil }))
	s := gate.Snapshot()
	fmt.Println(s.Admitted(admission.First), "admitted,", s.InFlight, "in flight, limit", s.Limit)
	// Output:
	// <nil>
	// 1 admitted, 0 in flight, limit 10000
}

func ExampleConfig_Validate() {
	err := admission.Config{Limit: 10, Min: 2, RetryRatio: 20}.Validate()
	fmt.Println(err)
	// Output:
	// Min is 2: want zero beside a Limit, which does not adapt
	// RetryRatio is 20: want zero (0.2), a ratio of up to 10, or a negative number for any (20 % is 0.2: was that meant?)
}

func ExamplePriorityOf() {
	h := http.Header{}
	h.Set("lull-criticality", "sheddable")
	fmt.Println(admission.PriorityOf(h))
	// Output: sheddable
}
