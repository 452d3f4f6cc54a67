package budget

import (
	"math"
	"time"
)

// Inherit has a budget that takes the place of another, because its configuration was
// changed, go on with what that has left, and no more than it can hold: a change is no
// gift of a full stock in the middle of an outage, and does not take away what was
// earned. It is for accounts and buckets; a budget of another kind that takes over
// begins as new. To must not have been used yet; from may be, and what it is asked for
// meanwhile may be missed.
func Inherit(now time.Duration, to, from Budget) {
	switch to := to.(type) {
	case *Account:
		to.stock.inherit(now, from)
		if from, ok := from.(*Account); ok {
			to.window.Store(from.window.Load())
			to.last.Store(from.last.Load())
		}
	case *Bucket:
		to.inherit(now, from)
	}
}

func (b *Bucket) inherit(now time.Duration, from Budget) {
	var had float64
	switch from := from.(type) {
	case *Account:
		had = from.stock.Tokens()
	case *Bucket:
		had = from.Tokens()
	case nil:
		return
	default:
		had = math.Floor(from.Balance(now))
	}
	full := b.terms.full()
	if had = max(had, 0); had < float64(full)/stateToken { // NaN and more than there is room for: it stays full
		b.state.Store(uint64(had*token+0.5) * stateUnit)
	}
}
