package lullgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/recent"
)

// A Client makes the calls of gRPC connections under a [lull.Policy], with one [lull.Dependency]
// for each target. Make one with New. It is safe for concurrent use, and for several connections.
// Its two interceptors share their state: what one learns from unary calls holds for streams.
type Client struct {
	options
	targets *recent.Cache[*target]
	methods *recent.Cache[*method]
}

// New returns a Client under policy p.
func New(p lull.Policy, opts ...Option) (*Client, error) {
	c := &Client{options: defaultOptions(p)}
	if err := option.Apply(&c.options, opts); err != nil {
		return nil, err
	}
	c.wiring = append(c.wiring, lull.ClassifiedBy("lullgrpc.WithClassifier"))
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.targets = recent.New(c.size, c.newTarget)
	c.methods = recent.New(maxMethods, c.describeMethod)
	return c, nil
}

// DialOptions returns the options for grpc.NewClient that put policy p in force: the
// [Client.DialOptions] of a new Client.
func DialOptions(p lull.Policy, opts ...Option) ([]grpc.DialOption, error) {
	c, err := New(p, opts...)
	if err != nil {
		return nil, err
	}
	return c.DialOptions(), nil
}

// DialOptions returns the two interceptors, chained, and grpc.WithDisableRetry, so that only one
// layer retries. Interceptors that are chained before them see a call once. Those that are chained
// after them see each attempt.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(c.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(c.StreamClientInterceptor()),
	}
}

// UnaryClientInterceptor makes unary calls under the policy. If you install it by hand, install
// grpc.WithDisableRetry as well: see DialOptions.
func (c *Client) UnaryClientInterceptor() grpc.UnaryClientInterceptor { return c.invoke }

// StreamClientInterceptor makes streaming calls under the policy. If you install it by hand,
// install grpc.WithDisableRetry as well: see DialOptions.
func (c *Client) StreamClientInterceptor() grpc.StreamClientInterceptor { return c.newStream }

// Dependency returns the dependency that a call of method ("/service/method") to target would use,
// to look at its budget and breaker. The target is the string that grpc.NewClient got.
func (c *Client) Dependency(ctx context.Context, target, method string) *lull.Dependency {
	return c.dependency(ctx, target, c.methods.Get(method))
}

// Dependencies calls yield with every dependency that the client made, in no
// particular order, until it returns false.
func (c *Client) Dependencies(yield func(*lull.Dependency) bool) {
	for _, t := range c.targets.All {
		for i := range t.deps {
			if d := t.deps[i].Load(); d != nil && !yield(d) {
				return
			}
		}
	}
}

func (c *Client) dependency(ctx context.Context, target string, m *method) *lull.Dependency {
	if c.pick != nil {
		if d := c.pick(ctx, target, m.name); d != nil {
			return d
		}
	}
	return c.targets.Get(target).dependency(&c.options, m.rule)
}

// targetOf returns the name of a connection's dependency. Stubs in tests have no connection.
func targetOf(cc *grpc.ClientConn) string {
	if cc == nil || cc.Target() == "" {
		return "unknown target"
	}
	return cc.Target()
}
