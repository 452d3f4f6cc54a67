package lull

import (
	"time"

	"github.com/lullgo/lull/engine"
)

// A Policy describes how calls to one dependency are made. The zero Policy is the recommended one.
type Policy = engine.Policy

// A Verdict is a classifier's judgement on the end of one attempt. The zero Verdict is
// unclassified, never a success.
type Verdict = engine.Verdict

// A Reason is why a call ended. Its values are in package engine; those that users ask for
// are errors here.
type Reason = engine.Reason

// The kinds of verdicts. See package engine for what each means.
const (
	KindUnclassified = engine.KindUnclassified
	KindSuccess      = engine.KindSuccess
	KindTransient    = engine.KindTransient
	KindRateLimited  = engine.KindRateLimited
	KindOverloaded   = engine.KindOverloaded
	KindPermanent    = engine.KindPermanent
	KindCanceled     = engine.KindCanceled
)

// NoTimeout switches a timeout off: Policy.AttemptTimeout, Policy.Deadline.
const NoTimeout time.Duration = engine.NoTimeout

// Values of Policy.Timeouts and Policy.Nested beside their zero values.
const (
	TimeoutsAlways = engine.TimeoutsAlways // repeat an attempt that timed out as any other
	TimeoutsNever  = engine.TimeoutsNever  // a timeout is final
	NestedAlways   = engine.NestedAlways   // retry also what is done for a request that is itself a retry
)
