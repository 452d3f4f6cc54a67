package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/lullhttp"
)

// tailClients in the order in which they are shown.
var tailClients = []client{
	{"no hedging", func(setting) string { return "one request" },
		func(s setting, base http.RoundTripper, url string) (caller, error) {
			s.Attempts = 1
			return naive(s, base, url, nil), nil
		}},
	{"naive", func(s setting) string {
		return fmt.Sprintf("a second request whenever there is no answer after %v;\nthe first answer counts, whatever it is", s.HedgeDelay)
	}, newNaiveHedger},
	{"lull", func(s setting) string {
		policy := s.hedgePolicyText()
		if len(policy) > 66 { // what fits beside the names
			policy = strings.Replace(policy, ", Hedge", ",\n  Hedge", 1)
		}
		return "lullhttp with a hedge, sent at the p95 that it has learned:\n" + policy
	}, newHedgingLull},
}

// newNaiveHedger is the hedger that everybody has written: a timer, a second
// request, and a channel of which one answer is read. It asks neither whether
// everything is slow nor whether that answer is a success.
func newNaiveHedger(s setting, base http.RoundTripper, url string) (caller, error) {
	httpClient := &http.Client{Transport: base}
	return func(ctx context.Context) bool {
		ctx, cancel := context.WithCancel(ctx) // whoever is second has lost
		defer cancel()
		answers := make(chan bool, 2)
		request := func() { answers <- attempt(ctx, httpClient, url, s.Timeout) }
		go request()
		timer := time.NewTimer(s.HedgeDelay)
		defer timer.Stop()
		select {
		case ok := <-answers:
			return ok
		case <-timer.C:
			go request()
		}
		return <-answers
	}, nil
}

// newHedgingLull is lull with its recommended hedging, used as anybody would.
func newHedgingLull(s setting, base http.RoundTripper, url string) (caller, error) {
	httpClient, err := lullhttp.NewClient(s.hedgePolicy(), lullhttp.WithBase(base), lullhttp.WithObserver(heldBack{}))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) bool { return get(ctx, httpClient, url) }, nil
}

// hedgePolicy is what lull is given: the zero policy but for the timeout, which all
// clients have, and the hedge.
func (s setting) hedgePolicy() lull.Policy {
	return lull.Policy{AttemptTimeout: s.Timeout, Hedge: hedge.Config{Attempts: s.Attempts}}
}

// hedgePolicyText is hedgePolicy as it would be written in Go.
func (s setting) hedgePolicyText() string {
	return fmt.Sprintf("lull.Policy{AttemptTimeout: %v, Hedge: hedge.Config{Attempts: %d}}", s.Timeout, s.Attempts)
}

// heldBack counts the hedges that lull did not send.
type heldBack struct{}

// Observe implements lull.Observer.
func (heldBack) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == lull.EventHedgeRefused {
		if t := tallyOf(ctx); t != nil {
			t.hold()
		}
	}
}
