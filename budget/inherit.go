package budget

import (
	"math"
	"time"
)

// Inherit gives to, an Account or a Bucket, what the budget that it replaces has left, and
// no more than it can hold. So a changed configuration is no new stock in an outage, and
// takes nothing away. Other kinds begin as new. to must be unused; from may be in use.
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
