package budget

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// Bucket is a token bucket without a clock: the stock of an Account, and a budget
// of its own. It starts full, a retry takes a token, and each call that earns puts
// a fraction of one back. Make one with NewBucket; a zero Bucket refuses every
// retry. Its methods may be called concurrently, take no lock, and look neither at
// the time nor at the class.
type Bucket struct {
	terms terms
	// state is the balance in units, twice, plus one once a retry has been
	// refused since the last that was paid. One word, so that the two change
	// together, and so that a full bucket is known by one load.
	state atomic.Uint64
}

// In the state of a Bucket.
const (
	refusedBit = 1
	stateUnit  = 2
	stateToken = token * stateUnit
)

// NewBucket returns a full bucket. The error lists everything that is wrong with
// c; a Window, which makes a Ratio, is.
func NewBucket(c Config) (*Bucket, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Window != 0 {
		return nil, problem.List{{Field: "Window", Value: c.Window, Allowed: "zero for a Bucket"}}
	}
	return newBucket(c), nil
}

// newBucket is NewBucket for what has been validated.
func newBucket(c Config) *Bucket {
	b := new(Bucket)
	b.fill(newTerms(c))
	return b
}

func (b *Bucket) fill(t terms) {
	b.terms = t
	b.state.Store(t.full())
}

// Begin earns, if arrivals do.
func (b *Bucket) Start(time.Duration) {
	if b.terms.arrivals() {
		b.earn()
	}
}

// Failed does nothing: a failure costs only if it is retried.
func (*Bucket) Failed(time.Duration) {}

// Settle does nothing: a retry has been paid for and stays so.
func (*Bucket) Release(time.Duration, Receipt) {}

// Repay puts a token back.
func (b *Bucket) Refund(time.Duration, Receipt) { b.add(stateToken) }

// End earns, if the call succeeded and successes do.
func (b *Bucket) Done(_ time.Duration, success bool, _ Receipt, _ int) {
	if success && !b.terms.arrivals() {
		b.earn()
	}
}

// earn puts back what one call is worth and returns the units that did not fit. A
// full bucket is only read: while nothing fails, cores share its cache line and
// never take it from one another.
func (b *Bucket) earn() (over int64) { return b.add(b.terms.earned()) }

// add puts in so much of the state's unit, and returns the units that did not fit.
func (b *Bucket) add(n uint64) (over int64) {
	full := b.terms.full()
	for {
		s := b.state.Load()
		if s >= full {
			return int64(n / stateUnit)
		}
		have := s &^ refusedBit
		more := min(have+n, full)
		// The bit that a refusal left stays: only a retry that is paid clears it.
		if b.state.CompareAndSwap(s, more|s&refusedBit) {
			return int64((have + n - more) / stateUnit)
		}
	}
}

// paidElsewhere notes that a retry was paid from another purse, so that the next
// refusal is news.
func (b *Bucket) clearRefused() {
	for s := b.state.Load(); s&refusedBit != 0; s = b.state.Load() {
		if b.state.CompareAndSwap(s, s&^refusedBit) {
			return
		}
	}
}

// Withdraw takes one token for one retry, or refuses and takes nothing. Nothing
// is drawn by chance. A refusal after the first writes nothing.
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

// Balance is the whole tokens in the bucket.
func (b *Bucket) Balance(time.Duration) float64 {
	if b.terms.unlimited() {
		return math.Inf(1)
	}
	return float64(b.state.Load() / stateToken)
}

// Tokens is the content of the bucket, fractions included.
func (b *Bucket) Tokens() float64 {
	if b.terms.unlimited() {
		return math.Inf(1)
	}
	return float64(b.state.Load()/stateUnit) / token
}
