package battery

import (
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A Difference is by how much one policy is better than another in one figure.
type Difference struct {
	Figure string // success, back, held, attempts
	// By is in the unit of the figure: a share, seconds, calls in progress, attempts for each call. Infinite: only one of
	// them is back.
	By float64
	// Least is the least that counts, Half the half of the 95 % interval.
	Least, Half float64
}

// Better reports whether the difference counts.
func (d Difference) Better() bool { return gain{d.By, d.Least, d.Half}.sure() }

// Worse reports whether it is worse by more than the least that counts, even if that may be chance.
func (d Difference) Worse() bool { return d.By < -d.Least }

// SurelyWorse reports whether it is worse by more than chance as well.
func (d Difference) SurelyWorse() bool { return gain{-d.By, d.Least, d.Half}.sure() }

// Differences compares a with b, flown in s with the same seeds, by the rules of the judge. patience is how long
// callers need to wait for an attempt, and slack is how much later a may be back (World.Slack).
func Differences(a, b []Figures, s *sim.Scenario, patience, slack time.Duration) []Difference {
	calls := mean(b, func(f Figures) float64 { return float64(f.Calls) })
	room := leastRoom * patience.Seconds() * calls / s.Horizon.Seconds()
	of := func(name string, g gain) Difference { return Difference{name, g.by, g.least, g.half} }
	return []Difference{
		of("success", successes(a, b)),
		of("back", recovery(a, b, slack)),
		of("held", fewer(a, b, held, leastHeld, room)),
		of("attempts", fewer(a, b, Figures.attempts, leastAttempts, 0)),
	}
}
