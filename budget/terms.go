package budget

import (
	"cmp"
	"time"
)

// terms are the rules of a Bucket and an Account, in one word, because a simulator holds
// millions of them.
//
//	bits 0 to 37   the state of a full Bucket
//	bits 38 to 58  what one call that earns adds to the state
//	bit 59         calls earn when they start
//	bit 60         everything is granted
type terms uint64

const (
	fullBits     = 38 // for MaxStock, in stateUnits of 1/100,000
	earnedBits   = 21 // for MaxRatio, likewise
	arrivalsBit  = 1 << (fullBits + earnedBits)
	unlimitedBit = arrivalsBit << 1
)

// newTerms returns the terms of a valid Config.
func newTerms(c Config) terms {
	if c.Unlimited {
		return unlimitedBit
	}
	t := units(cmp.Or(c.Stock, DefaultStock)) * stateUnit
	t |= units(cmp.Or(c.Ratio, DefaultRatio)) * stateUnit << fullBits
	if c.Earn == Arrivals {
		t |= arrivalsBit
	}
	return terms(t)
}

func (t terms) full() uint64    { return uint64(t) & (1<<fullBits - 1) }
func (t terms) earned() uint64  { return uint64(t) >> fullBits & (1<<earnedBits - 1) }
func (t terms) arrivals() bool  { return t&arrivalsBit != 0 }
func (t terms) unlimited() bool { return t&unlimitedBit != 0 }

func (t terms) quietGap() time.Duration {
	if t.full() == 0 {
		return 0
	}
	return accountWindow * time.Duration(t.earned()) / time.Duration(t.full())
}
