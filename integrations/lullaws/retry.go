package lullaws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// AddTo puts the calls of all clients that are made of cfg from now on under the policies of r. Each
// service and region has a dependency of its own, by the key "SERVICE/REGION" with the SDK's name of
// the service: "SQS/eu-central-1".
//
// What is retryable is decided by a Retryer that cfg.Retryer makes, one for each key, or by one of
// cfg.RetryMode. Options of a single client that change its Retryer or RetryMode have no effect: use
// [Retry] for it. Call AddTo once for a cfg.
func AddTo(cfg *aws.Config, r *lull.Registry) error {
	switch {
	case cfg == nil:
		return errors.New("lullaws: AddTo: the config is nil: load one with config.LoadDefaultConfig")
	case r == nil:
		return errors.New("lullaws: AddTo: the registry is nil: make one with lull.NewRegistry")
	}
	newRetryer := cfg.Retryer
	if newRetryer == nil {
		newRetryer = func() aws.Retryer { return retry.NewStandard() }
		if cfg.RetryMode == aws.RetryModeAdaptive {
			newRetryer = func() aws.Retryer { return retry.NewAdaptiveMode() }
		}
	}
	var mu sync.Mutex
	steps := map[string]*retry.Attempt{}
	of := func(ctx context.Context) (*lull.Dependency, *retry.Attempt) {
		key := awsmiddleware.GetServiceID(ctx) + "/" + awsmiddleware.GetRegion(ctx)
		mu.Lock()
		defer mu.Unlock()
		once, ok := steps[key]
		if !ok {
			once = singleAttemptStep(newRetryer())
			steps[key] = once
		}
		return r.Get(key), once
	}
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), replaceStep(of))
	return nil
}

// Retry returns an option that puts the calls of one client under the policy of d, for the
// APIOptions of its options:
//
//	s3.NewFromConfig(cfg, func(o *s3.Options) { o.APIOptions = append(o.APIOptions, lullaws.Retry(d, nil)) })
//
// What is retryable is decided by r, which should not be shared with other services: in the adaptive
// mode it is what delays. Nil means retry.NewStandard. Its MaxAttempts, delays and tokens are not
// asked for. Retry panics if d is nil.
func Retry(d *lull.Dependency, r aws.Retryer) func(*middleware.Stack) error {
	if d == nil {
		panic("lullaws: Retry: the dependency is nil: make one with lull.NewDependency")
	}
	if r == nil {
		r = retry.NewStandard()
	}
	once := singleAttemptStep(r)
	return replaceStep(func(context.Context) (*lull.Dependency, *retry.Attempt) { return d, once })
}

type optionsKey struct{}

// With returns a context for calls of clients, with options: lull.NotIdempotent, lull.Once, or
// lull.Operation, without which the SDK's name of the operation is that of the call ("GetObject").
func With(ctx context.Context, opts ...lull.CallOption) context.Context {
	earlier, _ := ctx.Value(optionsKey{}).([]lull.CallOption)
	return context.WithValue(ctx, optionsKey{}, append(slices.Clip(earlier), opts...))
}

const retryStep = "Retry"

// replaceStep returns the option that replaces the step. A stack without the step makes no request that
// may be repeated (one that presigns).
func replaceStep(of func(context.Context) (*lull.Dependency, *retry.Attempt)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		m, ok := stack.Finalize.Get(retryStep)
		if !ok {
			return nil
		}
		sdks, ok := m.(*retry.Attempt)
		if !ok {
			return fmt.Errorf("lullaws: the step %s of the stack is a %T, and not the SDK's: only one package can replace it", retryStep, m)
		}
		_, err := stack.Finalize.Swap(retryStep, &step{sdks: sdks, of: of})
		return err
	}
}

type step struct {
	sdks *retry.Attempt                                           // as the client has configured it
	of   func(context.Context) (*lull.Dependency, *retry.Attempt) // which makes one attempt
}

func (*step) ID() string { return retryStep }

func (s *step) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	d, once := s.of(ctx)
	spec := engine.Spec{Operation: awsmiddleware.GetOperationName(ctx)}
	opts, _ := ctx.Value(optionsKey{}).([]lull.CallOption)
	for i := range opts {
		opts[i].Apply(&spec)
	}
	request, _ := in.Request.(*smithyhttp.Request)
	spec.NotReplayable = request != nil && request.GetStream() != nil && !request.IsStreamSeekable()
	c := call{once: *once, request: request, next: next, maxAttempts: d.Plan().Attempts()}
	c.once.LogAttempts, c.once.ClientSkew = s.sdks.LogAttempts, s.sdks.ClientSkew
	if m := s.sdks.OperationMeter; m != nil {
		c.once.OperationMeter = m
	}
	c.once.DisableClockSkewCorrection = s.sdks.DisableClockSkewCorrection
	r := d.Drive(ctx, spec, func(ctx context.Context) lull.Verdict { return c.attempt(ctx, in) }, nil, func() error { return c.err })
	if r.Reason == engine.Success {
		return c.out, c.metadata, nil
	}
	return c.out, c.metadata, d.Error(spec.Operation, r, c.err)
}

type call struct {
	once        retry.Attempt // the SDK's step, a copy: one allocation with the call
	request     *smithyhttp.Request
	next        middleware.FinalizeHandler
	maxAttempts int

	number   int // of the attempt
	out      middleware.FinalizeOutput
	metadata middleware.Metadata
	err      error
}

func (c *call) attempt(ctx context.Context, in middleware.FinalizeInput) lull.Verdict {
	if c.number++; c.number > 1 && c.request != nil {
		if err := c.request.RewindStream(); err != nil {
			c.err = errors.Join(fmt.Errorf("lullaws: the body of the request cannot be read again: %w", err), c.err)
			return lull.Verdict{Kind: lull.KindPermanent}
		}
	}
	c.out, c.metadata, c.err = c.once.HandleFinalize(ctx, in, c)
	if c.err == nil {
		detach(ctx, c.out.Result)
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	var again *retry.MaxAttemptsError // of the one attempt that the SDK's step may make
	retryable := errors.As(c.err, &again)
	if retryable {
		c.err = again.Err
	}
	return verdictOf(c.err, retryable)
}

// HandleFinalize makes the attempt, after the SDK's step has prepared it. For that step each attempt is
// the only one.
func (c *call) HandleFinalize(ctx context.Context, in middleware.FinalizeInput) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		const header = "Amz-Sdk-Request"
		if h := r.Header[header]; len(h) == 1 { // which the step has just made
			if ttl, ok := strings.CutPrefix(h[0], firstHeaders[1]); ok {
				h[0] = attemptOf(c.number, c.maxAttempts) + ttl
			}
		}
	}
	return c.next.HandleFinalize(ctx, in)
}

// firstHeaders are the headers of first attempts, by the number of attempts that the call may make.
var firstHeaders [10]string

func init() {
	for most := range firstHeaders {
		firstHeaders[most] = fmt.Sprintf("attempt=1; max=%d", most)
	}
}

func attemptOf(number, most int) string {
	if number == 1 && most < len(firstHeaders) {
		return firstHeaders[most]
	}
	return fmt.Sprintf("attempt=%d; max=%d", number, most)
}

// singleAttemptStep returns the SDK's step, for one attempt. What is retryable is decided by r.
func singleAttemptStep(r aws.Retryer) *retry.Attempt {
	return retry.NewAttemptMiddleware(oneAttempt{asV2(r)}, smithyhttp.RequestCloner)
}

// oneAttempt is a Retryer that allows one attempt. That the SDK's step would have made another shows in
// its error, a retry.MaxAttemptsError.
type oneAttempt struct{ aws.RetryerV2 }

func (oneAttempt) MaxAttempts() int { return 1 }

// asV2 returns r with the method that gives a token for each attempt, as the SDK does it.
func asV2(r aws.Retryer) aws.RetryerV2 {
	if v2, ok := r.(aws.RetryerV2); ok {
		return v2
	}
	return withoutAttemptToken{r}
}

type withoutAttemptToken struct{ aws.Retryer }

func (r withoutAttemptToken) GetAttemptToken(context.Context) (func(error) error, error) {
	return r.GetInitialToken(), nil
}
