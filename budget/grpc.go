package budget

import (
	"math"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/edge"
	"github.com/lullgo/lull/internal/problem"
)

// GRPCConfig is the retryThrottling of a gRPC service config. It has no defaults.
type GRPCConfig struct {
	// MaxTokens is the size of the bucket, 1 to 1000. It starts full.
	MaxTokens int
	// TokenRatio is what a successful call adds, 0.001 or more, with three decimals.
	TokenRatio float64
}

// Validate returns every mistake in one error, each with its field, or nil.
func (c GRPCConfig) Validate() error {
	var l problem.List
	l.Check(c.MaxTokens >= 1 && c.MaxTokens <= 1000, "MaxTokens", c.MaxTokens, "a number from 1 to 1000")
	l.Check(c.TokenRatio >= 0.001 && !math.IsInf(c.TokenRatio, 1), "TokenRatio", c.TokenRatio, "a number from 0.001")
	return l.Err()
}

// milliRatio is the ratio in whole thousandths of a token, a million at most, which fill
// any bucket.
func (c GRPCConfig) milliRatio() int64 {
	m := min(c.TokenRatio*1000, 1e6)
	// 0.007 × 1000 may be 6.9999999. All of three written decimals must be kept.
	if r := math.Round(m); math.Abs(m-r) < 1e-6 {
		return int64(r)
	}
	return int64(m)
}

// GRPCThrottle is the retry throttle of gRPC (proposal A6), in thousandths of a token as in
// gRPC core and grpc-java:
//
//	a failed attempt that might be retried: tokens = max(0, tokens-1)
//	a call that succeeded:                  tokens = min(max, tokens+ratio)
//	a retry is allowed iff                  tokens > max/2
//
// Failures pay, also if no retry is wanted, and Withdraw takes nothing. It has no clock, so
// after an outage it allows nothing until up to max/2/ratio calls have succeeded.
type GRPCThrottle struct {
	mu     sync.Mutex // guards max, ratio, tokens
	max    int64      // all three in thousandths
	ratio  int64
	tokens int64
	edge   edge.Edge
}

// NewGRPCThrottle returns a full bucket.
func NewGRPCThrottle(c GRPCConfig) (*GRPCThrottle, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := int64(c.MaxTokens) * 1000
	return &GRPCThrottle{max: m, ratio: c.milliRatio(), tokens: m}, nil
}

// Rescale sets a new configuration. The bucket stays as full in proportion, as in gRPC
// core: tokens × new max / old max.
func (t *GRPCThrottle) Rescale(c GRPCConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := int64(c.MaxTokens) * 1000
	if t.max > 0 {
		t.tokens = t.tokens * m / t.max
	}
	t.max, t.ratio = m, c.milliRatio()
	return nil
}

// Start does nothing.
func (*GRPCThrottle) Start(time.Duration) {}

// Failed takes a token.
func (t *GRPCThrottle) Failed(time.Duration) {
	t.mu.Lock()
	t.tokens = max(0, t.tokens-1000)
	t.mu.Unlock()
}

// Withdraw allows a retry while more than half of the tokens are left. The receipt is zero.
func (t *GRPCThrottle) Withdraw(time.Duration, Class, func() uint64) Grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens > t.max/2 {
		t.edge.RecordGrant()
		return Grant{OK: true}
	}
	return Grant{Exhausted: t.edge.RecordRefusal()}
}

// Release does nothing.
func (*GRPCThrottle) Release(time.Duration, Receipt) {}

// Done adds the ratio, if the call succeeded.
func (t *GRPCThrottle) Done(_ time.Duration, success bool, _ Receipt, _ int) {
	if !success {
		return
	}
	t.mu.Lock()
	t.tokens = min(t.max, t.tokens+t.ratio)
	t.mu.Unlock()
}

// Balance returns how many retries would be allowed if each of them failed.
func (t *GRPCThrottle) Balance(time.Duration) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return float64(max(0, (t.tokens-t.max/2+999)/1000))
}

// Tokens returns the content of the bucket.
func (t *GRPCThrottle) Tokens() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return float64(t.tokens) / 1000
}
