package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What a zero Config means. The package comment explains the choice.
const (
	DefaultRatio = 0.1 // retries for each call that earns
	DefaultStock = 2   // retries that are in stock, also at the start
)

// The limits that Validate holds a Config to.
const (
	MinRatio  = 1.0 / token // a ratio keeps five decimals; this is the last
	MaxRatio  = 4.0         // more is a percentage that was not meant as one
	MinWindow = 100 * time.Millisecond
	MaxWindow = time.Hour
	MaxFloor  = 1e6 // retries per second
	MaxStock  = 1e6 // retries
)

// Config configures an Account, a Bucket or, with a Window, a Ratio. It is plain
// data, and the zero value is the recommended setting.
type Config struct {
	// Ratio is the number of retries for each call that earns: 0.1 is 10 %.
	// Zero means DefaultRatio; otherwise MinRatio to MaxRatio. Five decimals
	// are kept.
	Ratio float64

	// Window chooses the kind. Zero, the default, means an Account, which keeps
	// what it has earned up to Stock for ever and the rest for ten seconds.
	// Otherwise, from MinWindow to MaxWindow, it is how far back a Ratio looks,
	// which forgets everything: the window is cut into ten slots that leave one at
	// a time, so that a call counts for nine tenths of it at least.
	Window time.Duration

	// Earn is which calls fill the budget. Zero means Successes.
	Earn Earn

	// Floor adds that many retries per second to what a Ratio has earned, as a
	// constant in the balance that Floor × Window withdrawals use up and that
	// comes back as they expire. Zero, the default, means none; more needs a
	// Window. Floors do not compose: M processes may together send M × Floor.
	Floor float64

	// Cooldown is how long a Ratio grants nothing after a refusal. Zero, the
	// default, means that the next success may already pay for a retry; more
	// needs a Window.
	Cooldown time.Duration

	// Stock is how many retries an Account or a Bucket keeps without an end, and
	// what it starts with. Zero means DefaultStock; otherwise 1 to MaxStock.
	// Stocks do not compose either: over M processes it is M × Stock retries that
	// nobody earned.
	//
	// With a Window it is how many retries there are at the first use, over the
	// fraction that a budget earned by successes starts with; it expires with the
	// window, and zero means none.
	Stock float64

	// Unlimited grants every retry and counts nothing.
	Unlimited bool
}

// The texts of what Validate allows, made once: a simulator validates millions.
var (
	allowedRatio  = fmt.Sprintf("zero (%v), or a ratio from %v to %v", DefaultRatio, MinRatio, MaxRatio)
	allowedWindow = fmt.Sprintf("zero (none), or a duration from %v to %v", MinWindow, MaxWindow)
	allowedFloor  = fmt.Sprintf("zero (none), or retries per second up to %.0f", MaxFloor)
	allowedStock  = fmt.Sprintf("zero (%v), or retries from 1 to %.0f", DefaultStock, MaxStock)
	allowedExtra  = fmt.Sprintf("zero (none), or retries up to %.0f", MaxStock)
)

const needsWindow = "zero where Window is zero"

// Validate reports every field that is out of its limits.
func (c Config) Validate() error {
	var l problem.List
	l.Share(c.Ratio == 0 || c.Ratio >= MinRatio && c.Ratio <= MaxRatio, "Ratio", c.Ratio, allowedRatio)
	l.Check(c.Window == 0 || c.Window >= MinWindow && c.Window <= MaxWindow, "Window", c.Window, allowedWindow)
	l.Check(c.Earn <= Arrivals, "Earn", c.Earn, "Successes or Arrivals")
	if c.Window == 0 {
		l.Check(c.Floor == 0, "Floor", c.Floor, needsWindow)
		l.Check(c.Cooldown == 0, "Cooldown", c.Cooldown, needsWindow)
		// A bucket of less than one token never holds a retry.
		l.Check(c.Stock == 0 || c.Stock >= 1 && c.Stock <= MaxStock, "Stock", c.Stock, allowedStock)
	} else {
		l.Check(c.Floor >= 0 && c.Floor <= MaxFloor, "Floor", c.Floor, allowedFloor)
		l.Check(c.Cooldown >= 0, "Cooldown", c.Cooldown, "zero (none) or a positive duration")
		l.Check(c.Stock >= 0 && c.Stock <= MaxStock, "Stock", c.Stock, allowedExtra)
	}
	return l.Err()
}

// New returns the budget that c describes, one that nobody has used yet: an
// Account, a Ratio if c has a Window, or, if it is Unlimited, a Bucket that grants
// everything. The error lists everything that is wrong with c.
func New(c Config) (Budget, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch {
	case c.Unlimited:
		return newBucket(c), nil
	case c.Window == 0:
		return newAccount(c), nil
	}
	return newRatio(c), nil
}

// FullAtStart reports whether a budget that has not yet paid for or refused a retry
// is as good as new, however many calls have succeeded, as long as no two of those
// that earn came closer together than QuietGap. It is so in an Account and in a
// Bucket, which start full, and in an Unlimited budget. So whoever keeps many
// budgets need not make one before a retry is wanted of it or two calls have come
// that close; Begin and End may be left out until then. (A Bucket is as good as
// new however close they come.)
func (c Config) CanStartLate() bool { return c.Window == 0 || c.Unlimited }

// QuietGap is how far apart the calls that earn must be for an Account to do
// without its window: at stock / ratio of them in half a minute, 1.5 s apart for
// the zero Config, the window could pay for no more than the stock does. It is
// zero, which no two calls are closer than, for a Ratio and an Unlimited budget.
func (c Config) QuietGap() time.Duration {
	if c.Window != 0 {
		return 0
	}
	return newTerms(c).quietGap()
}

// units converts a number of retries that Validate has passed.
func units(retries float64) int64 { return int64(math.Round(retries * token)) }
