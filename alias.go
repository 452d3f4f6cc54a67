package lull

import (
	"time"

	"github.com/lullgo/lull/engine"
)

// What the engine decides on, and with. See package engine.
type (
	Policy         = engine.Policy
	Problem        = engine.Problem
	Problems       = engine.Problems
	Verdict        = engine.Verdict
	Kind           = engine.Kind
	Reason         = engine.Reason
	TimeoutRetries = engine.TimeoutRetries
	NestedRetries  = engine.NestedRetries
	Spec           = engine.Spec
	Step           = engine.Step
	Decision       = engine.Decision
	Call           = engine.Call
	HedgedCall     = engine.HedgedCall
	Racer          = engine.HedgedAttempt
)

const (
	NoTimeout    time.Duration = engine.NoTimeout
	TimeoutRatio               = engine.TimeoutRatio
	never                      = engine.Never

	DefaultAttempts       = engine.DefaultAttempts
	DefaultAttemptTimeout = engine.DefaultAttemptTimeout
	DefaultDeadline       = engine.DefaultDeadline
	DefaultThrottleBase   = engine.DefaultThrottleBase
	DefaultHintLimit      = engine.DefaultHintLimit

	KindUnclassified = engine.KindUnclassified
	KindSuccess      = engine.KindSuccess
	KindTransient    = engine.KindTransient
	KindThrottled    = engine.KindThrottled
	KindOverloaded   = engine.KindOverloaded
	KindPermanent    = engine.KindPermanent
	KindCanceled     = engine.KindCanceled

	CodeUnclassified = engine.CodeUnclassified
	CodeRetriedBelow = engine.CodeRetriedBelow
	CodePanic        = engine.CodePanic
	CodeTimeout      = engine.CodeTimeout

	Succeeded         = engine.Succeeded
	FailedPermanent   = engine.FailedPermanent
	ServerSaidStop    = engine.ServerSaidStop
	UnsafeToRepeat    = engine.UnsafeToRepeat
	CannotReplay      = engine.CannotReplay
	AttemptsExhausted = engine.AttemptsExhausted
	CircuitOpen       = engine.CircuitOpen
	HintTooLong       = engine.HintTooLong
	DeadlineReached   = engine.DeadlineReached
	BudgetExhausted   = engine.BudgetExhausted
	Limited           = engine.Limited
	CallerCanceled    = engine.CallerCanceled
	Unanswered        = engine.Unanswered
	HeldBack          = engine.HeldBack
	TooManyLate       = engine.TooManyLate
	TooManyHedges     = engine.TooManyHedges
	RetriedAbove      = engine.RetriedAbove
	Panicked          = engine.Panicked

	TimeoutsWhenAnswered = engine.TimeoutsWhenAnswered
	TimeoutsAlways       = engine.TimeoutsAlways
	TimeoutsNever        = engine.TimeoutsNever
	NestedNever          = engine.NestedNever
	NestedAlways         = engine.NestedAlways
)
