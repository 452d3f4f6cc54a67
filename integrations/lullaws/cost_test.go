package lullaws

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cost"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// costs are the SDK's step that repeats, and the one in its place, for an attempt that succeeds.
func costs(t testing.TB) cost.Calls {
	d := must.Have(lull.NewDependency("queues", lull.Policy{}, lull.WithRand(seed.Source(t))))
	sdks := retry.NewAttemptMiddleware(retry.NewStandard(), smithyhttp.RequestCloner)
	once := singleAttemptStep(retry.NewStandard())
	own := &step{sdks: sdks, of: func(context.Context) (*lull.Dependency, *retry.Attempt) { return d, once }}
	next := middleware.FinalizeHandlerFunc(func(context.Context, middleware.FinalizeInput) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
		return out, m, nil
	})
	in := middleware.FinalizeInput{Request: smithyhttp.NewStackRequest()}
	return cost.Calls{"step": {
		func(ctx context.Context) error { _, _, err := sdks.HandleFinalize(ctx, in, next); return err },
		func(ctx context.Context) error { _, _, err := own.HandleFinalize(ctx, in, next); return err },
	}}
}

// A call of a client takes some hundred allocations. This adds one to those of a client under a time
// limit: the call, with a copy of the SDK's step.
func TestCost(t *testing.T) {
	cost.Check(t, costs(t), map[string]cost.Most{"step": {Bare: 6, Bounded: 1}})
}

func BenchmarkStep(b *testing.B) { cost.Bench(b, costs(b)) }
