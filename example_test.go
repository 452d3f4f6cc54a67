package lull_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/preset"
)

// The call of a flaky service, made again until it answers. Retries are paid for
// by calls that succeed: under the zero policy ten of them earn one retry.
func ExampleDo() {
	users, err := lull.NewDependency("users", lull.Policy{})
	if err != nil {
		panic(err)
	}
	for range 10 {
		lull.Run(context.Background(), users, func(context.Context) error { return nil })
	}
	tries := 0
	name, err := lull.Do(context.Background(), users, func(ctx context.Context) (string, error) {
		if tries++; tries < 2 {
			return "", lull.Transient(errors.New("connection reset"))
		}
		return "Ada", nil
	}, lull.Operation("get"))
	fmt.Println(name, err, tries)
	// Output: Ada <nil> 2
}

// The error of a failed call has the reason why it was not tried again, and the last error.
func ExampleRun() {
	broken := errors.New("503 from upstream")
	d, _ := lull.NewDependency("ledger", lull.Policy{Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Base: time.Millisecond}})
	err := lull.Run(context.Background(), d, func(context.Context) error { return lull.Transient(broken) })
	fmt.Println(errors.Is(err, lull.ErrAttemptsExhausted), errors.Is(err, broken))
	var e *lull.Error
	if errors.As(err, &e) {
		fmt.Println(e.Dependency, e.Attempts, e.Reason)
	}
	// Output:
	// true true
	// ledger 5 attempts_exhausted
}

// A charge is not repeated, unless the request provably never left.
func ExampleNotIdempotent() {
	d, _ := lull.NewDependency("payments", lull.Policy{Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant}})
	charge := func(failure error) {
		attempts := 0
		err := lull.Run(context.Background(), d, func(context.Context) error { attempts++; return failure }, lull.NotIdempotent())
		fmt.Println(attempts, errors.Is(err, lull.ErrNotIdempotent))
	}
	charge(lull.Transient(errors.New("connection reset while reading the answer")))
	charge(lull.NeverSent(errors.New("connection refused")))
	// Output:
	// 1 true
	// 5 false
}

// An operation passes on what the server asked for.
func ExampleRetryAfter() {
	d, _ := lull.NewDependency("quota", lull.Policy{HintLimit: time.Minute})
	err := lull.Run(context.Background(), d, func(context.Context) error {
		return lull.RetryAfter(errors.New("quota used up"), time.Hour)
	})
	var e *lull.Error
	if errors.As(err, &e) {
		fmt.Println(e.Reason, e.Verdict.After, e.Last)
	}
	// Output: hint_too_long 1h0m0s quota used up
}

// Errors that lull does not know are not retried until a classifier knows them.
func ExampleWithClassifier() {
	errLocked := errors.New("row is locked")
	d, _ := lull.NewDependency("db", lull.Policy{Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant}},
		lull.WithClassifier(func(err error) lull.Verdict {
			if errors.Is(err, errLocked) {
				return lull.Verdict{Kind: lull.KindTransient, Code: "locked"}
			}
			return lull.Classify(err)
		}))
	tries := 0
	err := lull.Run(context.Background(), d, func(context.Context) error {
		if tries++; tries < 3 {
			return errLocked
		}
		return nil
	})
	fmt.Println(tries, err)
	// Output: 3 <nil>
}

// A failure that the operation itself knows to be a passing one.
func ExampleTransient() {
	errBusy := errors.New("database is locked")
	err := lull.Transient(errBusy)
	fmt.Println(err, errors.Is(err, errBusy), lull.Classify(err).Kind, lull.Classify(errBusy).Kind)
	// Output: database is locked true transient unclassified
}

// Dependencies that share one budget of another kind: gRPC's retry throttling.
func ExampleWithBudget() {
	throttle, err := budget.NewGRPCThrottle(budget.GRPCConfig{MaxTokens: 4, TokenRatio: 0.1})
	if err != nil {
		panic(err)
	}
	shared := lull.WithBudget(func() budget.Budget { return throttle })
	reads, _ := lull.NewDependency("reads", lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Constant}}, shared)
	for range 3 {
		attempts := 0
		lull.Run(context.Background(), reads.Clone("reads"), func(context.Context) error { attempts++; return lull.Transient(errors.New("down")) })
		fmt.Println(attempts, throttle.Tokens())
	}
	// Output:
	// 2 2
	// 1 1
	// 1 0
}

// A schedule of one's own: the waits of a table.
func ExampleWithBackoff() {
	waits := []time.Duration{0, time.Millisecond, 2 * time.Millisecond}
	d, _ := lull.NewDependency("files", lull.Policy{Attempts: 4, Budget: budget.Config{Stock: 5}},
		lull.WithBackoff(func(retry int, _ time.Duration, _ func() uint64) time.Duration { return waits[retry-1] }),
		lull.WithObserver(printWaits{}))
	lull.Run(context.Background(), d, func(context.Context) error { return lull.Transient(errors.New("busy")) })
	// Output:
	// wait 0s
	// wait 1ms
	// wait 2ms
}

type printWaits struct{}

func (printWaits) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled {
		fmt.Println("wait", e.Delay)
	}
}

// A protocol whose failures are no Go errors: the driver classifies them.
func ExampleDependency_Drive() {
	d, _ := lull.NewDependency("printer", lull.Policy{Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant}})
	answers := []string{"BUSY", "BUSY", "DONE"}
	answer := ""
	result := d.Drive(context.Background(), engine.Spec{Operation: "print"}, func(context.Context) lull.Verdict {
		answer, answers = answers[0], answers[1:]
		if answer == "BUSY" {
			return lull.Verdict{Kind: lull.KindTransient, Code: answer}
		}
		return lull.Verdict{Kind: lull.KindSuccess}
	}, nil, nil)
	fmt.Println(answer, result.Reason, result.Attempts)
	// Output: DONE success 3
}

// Maintenance: nobody calls until it is over.
func ExampleDependency_Breaker() {
	d, _ := lull.NewDependency("search", lull.Policy{})
	d.Breaker().ForceOpen(d.Now())
	err := lull.Run(context.Background(), d, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, lull.ErrCircuitOpen))
	d.Breaker().ForceClosed(d.Now())
	fmt.Println(lull.Run(context.Background(), d, func(context.Context) error { return nil }))
	// Output:
	// true
	// <nil>
}

// Every mistake of a policy is reported at once.
func ExamplePolicy_Validate() {
	err := lull.Policy{
		Attempts: -1,
		Backoff:  backoff.Schedule{Base: time.Minute, Cap: time.Second},
		Limit:    bulkhead.Config{InFlight: -5},
	}.Validate()
	var problems engine.Problems
	errors.As(err, &problems)
	for _, p := range problems {
		fmt.Println(p.Field)
	}
	// Output:
	// Attempts
	// Backoff.Cap
	// Limit.InFlight
}

func ExamplePolicy_WorstCase() {
	fmt.Println(lull.Policy{}.WorstCase(), preset.InternalService().WorstCase())
	// Output: 30s 3s
}

// What an operation can learn of the attempt that it is.
func ExampleAttemptFrom() {
	d, _ := lull.NewDependency("users", lull.Policy{Attempts: 3, Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant}})
	lull.Run(context.Background(), d, func(ctx context.Context) error {
		a, _ := lull.AttemptFrom(ctx)
		fmt.Println("attempt", a.Number, "of", a.Of)
		return lull.Transient(errors.New("blip"))
	})
	// Output:
	// attempt 1 of 3
	// attempt 2 of 3
	// attempt 3 of 3
}

// A dependency for each tenant, of which the busiest thousand are remembered.
func ExampleRegistry() {
	tenants, err := lull.NewRegistry(preset.InternalService(), 1000)
	if err != nil {
		panic(err)
	}
	d := tenants.Get("tenant-7")
	fmt.Println(d.Name(), d == tenants.Get("tenant-7"), tenants.Len())
	// Output: tenant-7 true 1
}

type orderKey struct{}

// unknowns lists the calls of which nobody knows whether they were carried out.
type unknowns struct{}

func (unknowns) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == event.CallEnded && e.OutcomeUnknown {
		fmt.Println("look at", e.Dependency, e.Operation, ctx.Value(orderKey{}), "-", e.Err)
	}
}

// The list of charges that a person must look at. The key of each comes from the caller's context.
func Example_outcomeUnknown() {
	d, _ := lull.NewDependency("payments", lull.Policy{}, lull.WithObserver(unknowns{}))
	charge := func(order string, failure error) {
		ctx := context.WithValue(context.Background(), orderKey{}, order)
		lull.Run(ctx, d, func(context.Context) error { return failure }, lull.NotIdempotent(), lull.Operation("charge"))
	}
	charge("order 6", nil)
	charge("order 7", lull.Transient(errors.New("connection reset while reading the answer")))
	charge("order 8", lull.Permanent(errors.New("card declined")))
	// Output: look at payments charge order 7 - connection reset while reading the answer
}

// A change of a document that others change, too. If one of them was first, the server answers 412
// (or 409). The operation reads the document again, so it may be repeated, and at once: the other
// change is over. It looks for its own change: a PUT that was carried out, and whose answer was lost,
// is repeated by an HTTP client, and gets a 412 as well.
func Example_conflict() {
	document, version := "tea", 1
	policy := lull.Policy{Backoff: backoff.Schedule{FastFirst: true}}
	d, _ := lull.NewDependency("lists", policy, lull.WithObserver(printWaits{}))
	err := lull.Run(context.Background(), d, func(ctx context.Context) error {
		read, etag := document, version // GET
		if strings.Contains(read, "salt") {
			return nil
		}
		if version == 1 {
			document, version = "tea, soap", 2 // somebody else
		}
		if etag != version { // PUT with If-Match
			return lull.Transient(errors.New("412 Precondition Failed"))
		}
		document, version = read+", salt", version+1
		return nil
	})
	fmt.Println(document, err)
	// Output:
	// wait 0s
	// tea, soap, salt <nil>
}
