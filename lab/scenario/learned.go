package scenario

import "time"

// Learned is what a scenario that was made from measurements says of itself (lull learn). It is the section "learned" of a
// scenario file; the simulator does not need it.
type Learned struct {
	// Zero is the moment of the measurements that is the beginning of the scenario.
	Zero string
	// From says what was read.
	From []string
	// Values are the intervals (95 %) in which the values of the scenario lie.
	Values []Interval
	// Unknown is what the measurements cannot say, as questions.
	Unknown []Question
	// Seen are facts that are no values of the scenario: timeouts and retries of the callers.
	Seen []Fact
	// Observed is what was measured, in steps, to compare a simulation with.
	Observed Observed
}

// An Interval is what is known of one value.
type Interval struct {
	Path      string // as for Set: services.0.errors
	Low, High string // as in a file: 0.9%, 95ms, 1200
	By        string // how it was found: "1,204 of 120,000 attempts"
}

// A Question is about a value that is not known.
type Question struct {
	Path  string // of the value, as for Set
	Least string // it is at least that; "" if nothing is known
	Ask   string // in words
	Needs string // what would have to be measured
}

// String returns the question, and what would have to be measured.
func (q Question) String() string {
	if q.Needs == "" {
		return q.Ask
	}
	return q.Ask + " It needs " + q.Needs + "."
}

// A Fact is something that was seen, such as the timeout of an attempt.
type Fact struct {
	What      string // "attempt timeout", "retries for a failed call"
	Low, High string
	By        string
}

// Observed is what was measured, in steps. Lists have the same length; a number below 0 is unknown.
type Observed struct {
	Step     time.Duration
	Calls    []float64 // that began, for each second
	Attempts []float64 // that began, for each second
	Failed   []float64 // share of what ended in the step, of calls if they were measured, else of attempts
	P50, P99 []float64 // seconds, of what succeeded
}
