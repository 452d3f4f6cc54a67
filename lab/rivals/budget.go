package rivals

import (
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/problem"
)

// Budget is the kind of retry budget that a client has, and its configuration.
// At most one of them is set; a zero stands for "not this one". The zero Budget
// leaves the choice to Policy.Budget.
type Budget struct {
	AWS     AWSConfig
	GRPC    budget.GRPCConfig
	Envoy   EnvoyConfig
	Finagle FinagleConfig
	Bucket  budget.Config // of a budget.Bucket: without a Window
	Running Running

	// Warmup is the number of calls, beginning with the first of the process,
	// during which the budget is not asked.
	Warmup int
}

// Validate reports everything that is wrong, each problem naming its field.
func (b Budget) Validate() error {
	var l problem.List
	set := 0
	check := func(field string, used bool, validate func() error) {
		if !used {
			return
		}
		if set++; set == 2 {
			l.Add(field, "set", "only one kind of budget at a time")
		}
		l.In(field, validate())
	}
	check("AWS", b.AWS != AWSConfig{}, b.AWS.Validate)
	check("GRPC", b.GRPC != budget.GRPCConfig{}, b.GRPC.Validate)
	check("Envoy", b.Envoy != EnvoyConfig{}, b.Envoy.Validate)
	check("Finagle", b.Finagle != FinagleConfig{}, b.Finagle.Validate)
	check("Bucket", b.Bucket != budget.Config{}, func() error { _, err := budget.NewBucket(b.Bucket); return err })
	check("Running", b.Running != Running{}, b.Running.Validate)
	l.Check(b.Warmup >= 0, "Warmup", b.Warmup, "zero or a positive number of calls")
	l.Check(b.Warmup <= 0 || set > 0, "Warmup", b.Warmup, "zero, where no kind of budget is set")
	return l.Err()
}

// New makes the budget of one process. Where Validate reports something it is one
// that pays for no retry.
func (b Budget) New() budget.Budget {
	if b.Validate() != nil {
		return new(budget.Bucket)
	}
	return b.build()
}

// build is New for what Validate has passed: a simulator makes millions.
func (b Budget) build() budget.Budget {
	made := b.kind()
	if b.Warmup > 0 {
		return newWarmup(b.Warmup, made)
	}
	return made
}

func (b Budget) kind() (made budget.Budget) {
	switch {
	case b.AWS != AWSConfig{}:
		return newAWSQuota(b.AWS)
	case b.GRPC != budget.GRPCConfig{}:
		made, _ = budget.NewGRPCThrottle(b.GRPC)
	case b.Envoy != EnvoyConfig{}:
		return &envoyConcurrency{cfg: b.Envoy}
	case b.Finagle != FinagleConfig{}:
		return newFinagleBucket(b.Finagle)
	case b.Bucket != budget.Config{}:
		made, _ = budget.NewBucket(b.Bucket)
	case b.Running != Running{}:
		return &running{cfg: b.Running}
	default:
		made, _ = budget.New(budget.Config{}) // nothing is set: as Policy.Budget would be
	}
	return made
}

// An indifferent budget does nothing when a call begins, when an attempt fails (a failure costs only if it is
// retried), and when a retry is over.
type indifferent struct{}

func (indifferent) Start(time.Duration)                   {}
func (indifferent) Failed(time.Duration)                  {}
func (indifferent) Release(time.Duration, budget.Receipt) {}
