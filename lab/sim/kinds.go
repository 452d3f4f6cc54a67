package sim

import "github.com/lullgo/lull/internal/choice"

// ArrivalKind is how calls arrive.
type ArrivalKind uint8

const (
	// Poisson: independently of one another, at Rate.
	Poisson ArrivalKind = iota
	// Constant: at equal distances, at Rate.
	Constant
	// AtOnce: all at At, or spread over Within from then.
	AtOnce
	// Periodic: each process every Every, at a phase of its own.
	Periodic
	// Closed: each caller makes its next call when the one before has ended and a
	// pause (Think) is over.
	Closed
)

var arrivalKinds = []string{"poisson", "constant", "at-once", "periodic", "closed"}

// Order is which of the waiting attempts is served next.
type Order uint8

const (
	// FIFO: the one that has waited longest.
	FIFO Order = iota
	// LIFO: the one that came last. When the queue is full, the oldest makes room.
	LIFO
)

var orders = []string{"fifo", "lifo"}

// FaultKind is what goes wrong.
type FaultKind uint8

const (
	// Stall: the workers stand still, and attempts wait.
	Stall FaultKind = iota
	// Errors: attempts fail at once.
	Errors
	// BrownOut: only a share of the workers is left.
	BrownOut
	// SlowDown: work continues at a share of its speed.
	SlowDown
	// Crash: everything in hand is lost, connections are refused for a time, and
	// the cache is cold afterwards.
	Crash
	// Flush: the caches of the service's own calls (Hop.Cache) lose what is in them. For
	// as long as it lasts they find nothing and keep nothing.
	Flush
)

var faultKinds = []string{"stall", "errors", "brown-out", "slow-down", "crash", "flush"}

// PoolKind is how a pool dials.
type PoolKind uint8

const (
	// HTTP is the way of net/http: an attempt takes what is free first, the connection that is
	// dialled for it or one that another attempt gives back. Dialling goes on when the attempt
	// has been given up. Attempts are served in the order of their arrival.
	HTTP PoolKind = iota
	// SQL is the way of database/sql: an attempt for which a connection is dialled waits for
	// that one, and dialling ends with the attempt. Where the pool is full, attempts are served in no
	// order, and connections in the place of broken ones are dialled one after the other.
	SQL
)

var poolKinds = []string{"http", "sql"}

// DistributionKind is the shape of a distribution.
type DistributionKind uint8

const (
	// Fixed: always Mean.
	Fixed DistributionKind = iota
	// Exponential with the given Mean.
	Exponential
	// LogNormal with the given Mean, and Sigma of the logarithm.
	LogNormal
	// Normal with Mean and Deviation; the absolute value is taken.
	Normal
	// Uniform between Min and Max.
	Uniform
	// Bimodal: exponential with Mean, but for a share Slow of the cases, whose mean
	// is SlowMean.
	Bimodal
	// Histogram: uniform within a bar that is chosen by its weight.
	Histogram
)

var distributionKinds = []string{"fixed", "exponential", "lognormal", "normal", "uniform", "bimodal", "histogram"}

// String is the kind as in a file, such as "at-once".
func (k ArrivalKind) String() string { return choice.Name("unknown", arrivalKinds, k) }

func (o Order) String() string { return choice.Name("unknown", orders, o) }

func (k FaultKind) String() string { return choice.Name("unknown", faultKinds, k) }

// String is the kind as in a file, such as "http".
func (k PoolKind) String() string { return choice.Name("unknown", poolKinds, k) }

func (k DistributionKind) String() string { return choice.Name("unknown", distributionKinds, k) }

func (k ArrivalKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (k FaultKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k PoolKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k DistributionKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (k *ArrivalKind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("ArrivalKind", arrivalKinds, k, text)
}

func (o *Order) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Order", orders, o, text)
}

func (k *FaultKind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("FaultKind", faultKinds, k, text)
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (k *PoolKind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("PoolKind", poolKinds, k, text)
}

func (k *DistributionKind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("DistributionKind", distributionKinds, k, text)
}
