package bench

import (
	"context"
	"net/http"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
)

// hedgeAfter is the delay of all hedgers, and the least delay of one that learns its
// delay. It is so long that no call is late, however busy the machine is. So the
// benchmark measures the cost of hedging for the many calls that do not need it.
//
// (failsafe-go's learned delay has no lower bound: over operations that cost
// nothing it would hedge one call in twenty after a microsecond. So it has its
// fixed delay only.)
const hedgeAfter = time.Second

// learnsDelay is the recommended setting.
var (
	learnsDelay = hedge.Config{Attempts: 2, MinDelay: hedgeAfter}
	fixedDelay  = hedge.Config{Attempts: 2, Delay: hedgeAfter}
)

// hedged is p with hedges in the place of retries.
func hedged(p lull.Policy, h hedge.Config) lull.Policy {
	p.Attempts, p.Hedge = 0, h
	return p
}

func hedgeCallers() []caller {
	loop, all := retriesOnly(), untimed()
	all.Limit = bulkhead.Config{InFlight: inFlight}
	observer := lull.WithObserver(&seen)
	const each = retries | hedges | bounded | firstSuccess
	return []caller{
		bare(),
		{"goroutine+channel", hedges | firstSuccess, errBlip, stateless(func(ctx context.Context, op op) func() error {
			return func() error { return byHand(ctx, op) }
		})},
		failsafeCaller("failsafe-go hedge", hedges, failsafeHedge),
		failsafeContextCaller("failsafe-go hedge per context", hedges, failsafeHedge),
		failsafeContextCaller("failsafe-go cb+hedge+budget+bulkhead per context", hedges|bounded|breaks|limited,
			failsafeBreaker, failsafeBudgetedHedge, failsafeBulkhead),
		lullCaller("lull", retries, do, loop),
		lullCaller("lull fixed hedge", each, doHedged, hedged(loop, fixedDelay)),
		lullCaller("lull hedge", each|learned, doHedged, hedged(loop, learnsDelay)),
		lullCaller("lull everything", retries|budgeted|breaks|limited|observed, do, all, observer),
		lullCaller("lull everything+hedge", each|learned|budgeted|breaks|limited|observed, doHedged, hedged(all, learnsDelay), observer),
		lullCaller("lull zero policy", retries|budgeted|breaks|timed, do, lull.Policy{}),
		lullCaller("lull zero policy+hedge", each|learned|budgeted|breaks|timed, doHedged, hedged(lull.Policy{}, learnsDelay)),
	}
}

// byHand is the hedger that one writes first, without its usual mistakes: it lets
// no failure win while another attempt runs, and leaves no goroutine waiting.
func byHand(ctx context.Context, op op) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 2)
	attempt := func() { results <- op(ctx) }
	go attempt()
	timer := time.NewTimer(hedgeAfter)
	defer timer.Stop()
	for flying := 1; ; {
		select {
		case err := <-results:
			if flying--; err == nil || flying == 0 {
				return err
			}
		case <-timer.C:
			flying++
			go attempt()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func failsafeHedge() failsafe.Policy[any] { return hedgepolicy.NewWithDelay[any](hedgeAfter) }

func failsafeBudgetedHedge() failsafe.Policy[any] {
	return hedgepolicy.NewBuilderWithDelay[any](hedgeAfter).WithBudget(budget.New()).Build()
}

// do and doHedged are ways to make a call that returns a value, as operations that are hedged do.
func do(ctx context.Context, d *lull.Dependency, op op) func() error {
	attempt := valued(op)
	return func() error {
		_, err := lull.Do(ctx, d, attempt)
		return err
	}
}

func doHedged(ctx context.Context, d *lull.Dependency, op op) func() error {
	attempt := valued(op)
	return func() error {
		_, err := lull.DoHedged(ctx, d, attempt)
		return err
	}
}

func valued(op op) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, op(ctx) }
}

func hedgeSenders() []sender {
	const all = retries | hedges | bounded | firstSuccess | budgeted | breaks
	return []sender{
		bareSender(),
		hedgedHTTP(hedgeAfter),
		{"failsafehttp hedge", hedges, func(rt http.RoundTripper) send {
			policy := hedgepolicy.NewWithDelay[*http.Response](hedgeAfter)
			return through(&http.Client{Transport: failsafehttp.NewRoundTripper(rt, policy)})
		}},
		{"failsafehttp cb+hedge+budget", hedges | bounded | breaks, func(rt http.RoundTripper) send {
			policy := hedgepolicy.NewBuilderWithDelay[*http.Response](hedgeAfter).WithBudget(budget.New()).Build()
			return through(&http.Client{Transport: failsafehttp.NewRoundTripper(rt, failsafehttpBreaker(), policy)})
		}},
		lullSender("lullhttp", retries|budgeted|breaks, untimed()),
		lullSender("lullhttp fixed hedge", all, hedged(untimed(), fixedDelay)),
		lullSender("lullhttp hedge", all|learned, hedged(untimed(), learnsDelay)),
		lullSender("lullhttp zero policy", retries|budgeted|breaks|timed, lull.Policy{}),
		lullSender("lullhttp zero policy+hedge", all|learned|timed, hedged(lull.Policy{}, learnsDelay)),
	}
}

// hedgedHTTP is cristalhq/hedgedhttp. To it any response is a success. (It never ends
// the context that it makes for the attempt that won. Here these pile up in the
// goroutine's; to give each request one of its own, as servers do, costs it more than
// that.)
func hedgedHTTP(after time.Duration) sender {
	return sender{"hedgedhttp", hedges, func(rt http.RoundTripper) send {
		return through(&http.Client{Transport: must.Have(hedgedhttp.NewRoundTripper(after, 2, rt))})
	}}
}
