package sim

import (
	"time"

	"github.com/lullgo/lull"
)

// A Contender is a policy under comparison, with the wiring that cannot be data.
type Contender struct {
	Name    string
	Title   string // one line for people; may be empty
	Policy  lull.Policy
	Options []lull.Option `json:"-"`
	// Verdict, if not nil, returns the verdict of this client about a failure for which lull
	// has the given one. Clients that are played by the engine read less of an answer than
	// lull does, or read it differently.
	Verdict func(lull.Verdict) lull.Verdict `json:"-"`
	// Holds: of messages, retries are made by the handler, which sleeps with the message in
	// hand. Attempts are those of one delivery. The lease is not extended: a message that is
	// not handled when it ends is a dead letter.
	Holds bool
}

// A Result is that of one contender in one run.
type Result struct {
	Contender string
	Seed      uint64
	// Interrupted: the run was stopped at End, before the Horizon.
	Interrupted bool
	End         time.Duration

	Totals Totals
	// Recovery is how the goodput came back after the last fault; zero if the
	// scenario has none.
	Recovery Recovery
	Latency  Latency // of calls that succeeded, from the first attempt's start
	Series   Series
	// Connections are zero without pools.
	Connections ConnectionTotals
	// Links are zero without messages that wait for a [Link].
	Links  LinkTotals
	Fleets []FleetResult // one for each, in the order of the scenario; nil if it has only one
	Topics []TopicResult // one for each, in the order of the scenario; nil if it has none
}

// Totals count what happened after the warm-up. Calls are counted when they
// begin, and what became of them belongs to them.
type Totals struct {
	Calls     int64
	Succeeded int64
	// Refused calls made no attempt.
	Refused int64
	// Unfinished calls had not ended when the run did.
	Unfinished int64
	// Reasons counts the ends of calls by lull.Reason.
	Reasons map[string]int64
	// Attempts of the service that got most of them, and how many were retries.
	Attempts, Retries int64
	// Hedges are attempts that began beside another of the same call. They are
	// retries as well. Lost are attempts that were in flight when their call ended.
	Hedges, Lost int64
	// AttemptsTimedOut ended by the attempt's timeout, AttemptsFailed by an answer.
	AttemptsTimedOut, AttemptsFailed int64
	// Wasted attempts were worked on for a caller that had gone.
	Wasted int64
	// Turned away by services: queue full, rate limit, fault, and dropped because
	// expired.
	QueueFull, RateLimited, Errors, Dropped int64
	// Shed is attempts that admission control refused, at once or after a wait.
	Shed int64
	// Effects is how often operations were carried out, Duplicates how many of
	// those were repetitions of one carried out before.
	Effects, Duplicates int64
	// Reloads are calls that users made because the one before had failed.
	Reloads int64
	// Hits is how often a cache had what was asked for, Misses how often not.
	Hits, Misses int64
	// Collections of garbage on all hosts took Paused together. OutOfMemory is crashes.
	Collections, OutOfMemory int64
	Paused                   time.Duration
	// Disconnects is how many connections of a [Link] were lost.
	Disconnects int64
	// Ejections is how often a process has left out a host.
	Ejections int64
	// Amplification is Attempts / Calls: below 1 where calls were refused.
	Amplification float64
	// PeakRate is the most attempts per second in any Window, PeakAt its end.
	// NormalRate is the mean before the first fault; PeakOverNormal their quotient
	// (zero if there is no normal).
	PeakRate, NormalRate, PeakOverNormal float64
	PeakAt                               time.Duration
	// WorstMinute is the most attempts per call begun over any minute (or over the
	// whole run if that is shorter).
	WorstMinute float64
	// Oldest is the longest time that a user waited: from the first call to the success, or to the
	// end of the last call that was made instead of it. Who was still there when the run ended
	// has waited until then, to the exactness of a Window. Messages are not counted.
	Oldest time.Duration
	// Last is when the last call ended.
	Last time.Duration
	// MeanCompletion is the mean time from the beginning of a call to its success.
	MeanCompletion time.Duration
	// Events is how many events the simulator worked off.
	Events int64
}

// Recovery is when things were normal again.
type Recovery struct {
	// Measured: the scenario has a fault, or a time in which more arrives than a service can do,
	// with time and calls after it.
	Measured bool
	// Few: so few calls were made after it that there is no verdict.
	Few bool
	// From is the end of the last fault.
	From time.Duration
	// Recovered: from Time after From on, of the calls of any five windows at least 95 % of
	// the share succeeded that did before the first fault, as far as chance allows to say; and
	// so it was to the end of the run.
	Recovered bool
	Time      time.Duration
	// First is when they did for the first time, and Relapses how often they did not afterwards.
	First    time.Duration
	Relapses int
	// Within is how exactly these times are known: five windows, or as long as it takes for
	// twenty calls to be made.
	Within time.Duration
	// Normal is the share of calls that succeeded before the first fault, Final
	// that in the last tenth of the run after the fault.
	Normal, Final float64
}

// Latency of successful calls.
type Latency struct {
	Count                          int64
	Mean, P50, P90, P99, P999, Max time.Duration
}

// Series are figures through time, one for each Step. Rates are per second.
type Series struct {
	Step time.Duration
	// Calls that began, and attempts: the first ones, and retries.
	Calls, First, Retries []float64
	// Goodput is calls that succeeded, by the time at which they did; Good is the
	// share of the calls that began in the step and succeeded in the end.
	Goodput, Good []float64
	// Failed is calls that ended otherwise, refused ones included.
	Failed []float64
	// Wasted is work finished for callers that had gone.
	Wasted []float64
	// Queue is how many attempts waited at the end of the step, Busy how many
	// were being worked on, over all services.
	Queue, Busy []float64
	// Open is how many processes had an open (or half-open) breaker at the end of
	// the step.
	Open []float64
	// Refused is calls that ended for each reason but success, by reason.
	Refused map[string][]float64
	// P50 and P99 are latencies of calls that succeeded in the step; 0 if none.
	P50, P99 []time.Duration
}

// A Summary summarizes the results of one contender with several seeds.
type Summary struct {
	Contender Contender
	Results   []Result // one for each seed, in their order
	// Of the seeds, with the half width of a 95 % confidence interval (Student's
	// t; zero for a single seed). Wasted is a share of the attempts, Success and Refused are
	// shares of the calls.
	Success, Amplification, PeakOverNormal, P99, Wasted, Refused, Recovery Estimate
	// Recovered is how many of the seeds recovered; Recovery.Mean is over those.
	Recovered int
}

// An Estimate is a mean and the half width of its 95 % confidence interval.
type Estimate struct{ Mean, Half float64 }
