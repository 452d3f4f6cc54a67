package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What zero fields of a Config stand for.
const (
	DefaultRatio = 0.1 // retries for each call that earns
	DefaultStock = 20  // retries that are in stock, also at the start
)

// The limits of the fields of a Config.
const (
	MinRatio  = 1.0 / token // a ratio keeps five decimals; this is the last
	MaxRatio  = 4.0         // more is a percentage that was not meant as one
	MinWindow = 100 * time.Millisecond
	MaxWindow = time.Hour
	MaxFloor  = 1e6 // retries per second
	MaxStock  = 1e6 // retries
)

// Config configures an Account, a Ratio (with a Window) or a Bucket. It is plain data, and
// the zero value is the recommended setting.
type Config struct {
	// Ratio is the number of retries for each call that earns, with five decimals: 0.1 is
	// 10 %. Zero: 0.1. Otherwise MinRatio to MaxRatio.
	Ratio float64

	// Window, if it is not zero, chooses a Ratio, and is how far back it looks: MinWindow
	// to MaxWindow. It has ten slots that expire one at a time, so a call counts for at
	// least nine tenths of it.
	Window time.Duration

	// Earn is which calls fill the budget. Zero: Successes.
	Earn Earn

	// Floor is a number of retries per second that a Ratio pays without earnings: Floor ×
	// Window in each Window. Each of M processes has it. Zero: none. It needs a Window.
	Floor float64

	// Cooldown is how long a Ratio grants nothing after a refusal. Zero: none. It needs a
	// Window.
	Cooldown time.Duration

	// Stock is how many retries an Account or a Bucket keeps without an end, and has at the
	// start: 1 to MaxStock. Each of M processes has it. Zero: 20.
	//
	// With a Window it is how many more retries there are at the first use. They expire
	// with the Window. Zero: none.
	Stock float64

	// Unlimited grants every retry and counts nothing.
	Unlimited bool
}

// Made once: a simulator validates millions of configurations.
var (
	allowedRatio  = fmt.Sprintf("zero (%v), or a ratio from %v to %v", DefaultRatio, MinRatio, MaxRatio)
	allowedWindow = fmt.Sprintf("zero (none), or a duration from %v to %v", MinWindow, MaxWindow)
	allowedFloor  = fmt.Sprintf("zero (none), or retries per second up to %.0f", MaxFloor)
	allowedStock  = fmt.Sprintf("zero (%v), or retries from 1 to %.0f", DefaultStock, MaxStock)
	allowedExtra  = fmt.Sprintf("zero (none), or retries up to %.0f", MaxStock)
)

const needsWindow = "zero where Window is zero"

// Validate returns every mistake in one error, each with its field, or nil.
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

// New returns an unused budget: an Account, a Ratio if c has a Window, or a Bucket that
// grants everything if c is Unlimited. The error is that of Validate.
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

// CanStartLate reports whether calls that need no retry leave a new budget unchanged, if no
// two that earn are closer together than QuietGap. This is true for an Account and for an
// Unlimited budget. Such a budget can be made when the first retry is wanted, or when two
// calls were that close.
func (c Config) CanStartLate() bool { return c.Window == 0 || c.Unlimited }

// QuietGap returns how far apart calls that earn must be for an Account to need no window:
// 0.15 s for the zero Config. Then half a minute of calls earns no more than the stock. It
// is zero for a Ratio and an Unlimited budget.
func (c Config) QuietGap() time.Duration {
	if c.Window != 0 {
		return 0
	}
	return newTerms(c).quietGap()
}

// units converts a valid number of retries.
func units(retries float64) int64 { return int64(math.Round(retries * token)) }
