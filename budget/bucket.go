package budget

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// Bucket is a token bucket without a clock: the stock of an Account, and a budget of its
// own. It starts full, a retry takes a token, and each call that earns puts a fraction of
// one back. Make one with NewBucket; a zero Bucket refuses every retry. Its methods may be
// called concurrently, and take no lock.
type Bucket struct {
	terms terms
	// state is the balance in units, times two, plus one if a retry was refused since the
	// last that was paid. It is one word, so a full bucket is known by one load.
	state atomic.Uint64
}

// In the state of a Bucket.
const (
	refusedBit = 1
	stateUnit  = 2
	stateToken = token * stateUnit
)

// NewBucket returns a full bucket, or an error if c is not valid or has a Window.
func NewBucket(c Config) (*Bucket, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Window != 0 {
		return nil, problem.List{{Field: "Window", Value: c.Window, Allowed: "zero for a Bucket"}}
	}
	return newBucket(c), nil
}

func newBucket(c Config) *Bucket {
	b := new(Bucket)
	b.fill(newTerms(c))
	return b
}

func (b *Bucket) fill(t terms) {
	b.terms = t
	b.state.Store(t.full())
}

// Start earns, if arrivals do.
func (b *Bucket) Start(time.Duration) {
	if b.terms.arrivals() {
		b.earn()
	}
}

func (*Bucket) Failed(time.Duration)           {}
func (*Bucket) Release(time.Duration, Receipt) {}

// Refund puts a token back.
func (b *Bucket) Refund(time.Duration, Receipt) { b.add(stateToken) }

// Done earns, if the call succeeded and successes do.
func (b *Bucket) Done(_ time.Duration, success bool, _ Receipt, _ int) {
	if success && !b.terms.arrivals() {
		b.earn()
	}
}

// earn adds what one call earns, and returns the units that did not fit. It does not write
// to a full bucket, so cores can share its cache line while nothing fails.
func (b *Bucket) earn() (over int64) { return b.add(b.terms.earned()) }

// add adds n, in the unit of the state, and returns the units that did not fit.
func (b *Bucket) add(n uint64) (over int64) {
	full := b.terms.full()
	for {
		s := b.state.Load()
		if s >= full {
			return int64(n / stateUnit)
		}
		have := s &^ refusedBit
		more := min(have+n, full)
		// Only a retry that is paid clears the bit.
		if b.state.CompareAndSwap(s, more|s&refusedBit) {
			return int64((have + n - more) / stateUnit)
		}
	}
}

// clearRefused records that the window paid for a retry, so the next refusal is Exhausted.
func (b *Bucket) clearRefused() {
	for s := b.state.Load(); s&refusedBit != 0; s = b.state.Load() {
		if b.state.CompareAndSwap(s, s&^refusedBit) {
			return
		}
	}
}

// Withdraw takes one token for one retry, or refuses and takes nothing. Only the first of
// several refusals writes.
func (b *Bucket) Withdraw(time.Duration, Class, func() uint64) Grant {
	if b.terms.unlimited() {
		return Grant{OK: true}
	}
	for {
		s := b.state.Load()
		if s >= stateToken {
			if b.state.CompareAndSwap(s, s&^refusedBit-stateToken) {
				return Grant{OK: true, Receipt: 1}
			}
			continue
		}
		if s&refusedBit != 0 {
			return Grant{}
		}
		if b.state.CompareAndSwap(s, s|refusedBit) {
			return Grant{Exhausted: true}
		}
	}
}

// Balance returns the whole tokens in the bucket.
func (b *Bucket) Balance(time.Duration) float64 {
	if b.terms.unlimited() {
		return math.Inf(1)
	}
	return float64(b.state.Load() / stateToken)
}

// Tokens returns the tokens in the bucket, with fractions.
func (b *Bucket) Tokens() float64 {
	if b.terms.unlimited() {
		return math.Inf(1)
	}
	return float64(b.state.Load()/stateUnit) / token
}

// Stock returns how many tokens a full bucket has.
func (b *Bucket) Stock() float64 {
	if b.terms.unlimited() {
		return math.Inf(1)
	}
	return float64(b.terms.full()) / stateToken
}
