package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What a zero Config means. These are provisional: they were chosen with a
// first simulation, and a search with the full simulator may move them.
const (
	DefaultRatio  = 0.1              // retries for each call that earns
	DefaultWindow = 10 * time.Second // how far back the budget looks
)

// The limits that Validate holds a Config to.
const (
	MinRatio  = 1.0 / token // a ratio keeps five decimals; this is the last
	MaxRatio  = 10.0
	MinWindow = 100 * time.Millisecond
	MaxWindow = time.Hour
	MaxFloor  = 1e6 // retries per second
	MaxStock  = 1e6 // retries
)

// Earn says which calls fill the budget.
type Earn uint8

const (
	// Successes earn: the default, and the one that lets a collapsed service
	// come back at high load (see the package comment).
	Successes Earn = iota
	// Arrivals earn: every call that begins, as in Finagle, tower and Linkerd.
	Arrivals
)

var earnNames = [...]string{"successes", "arrivals"}

// String is the way of earning in lower case, such as "successes".
func (e Earn) String() string {
	if int(e) < len(earnNames) {
		return earnNames[e]
	}
	return fmt.Sprintf("earn(%d)", uint8(e))
}

// Config configures a Ratio. It is plain data, and the zero value is the
// recommended setting.
type Config struct {
	// Ratio is the number of retries for each call that earns: 0.1 is 10 %.
	// Zero means DefaultRatio; otherwise MinRatio to MaxRatio. Five decimals
	// are kept.
	Ratio float64

	// Window is how far back the budget looks. Zero means DefaultWindow;
	// otherwise MinWindow to MaxWindow. It is cut into ten slots that leave one
	// at a time, so that a call counts for nine tenths of the window at least.
	Window time.Duration

	// Earn says which calls fill the budget. Zero means Successes.
	Earn Earn

	// Floor adds that many retries per second to what is earned, as a constant
	// in the balance that Floor × Window withdrawals use up and that comes back
	// as they expire. Zero, the default, means none. Floors do not compose: M
	// processes may together send M × Floor.
	Floor float64

	// Cooldown is how long nothing is granted after a refusal. Zero, the
	// default, means that the next success may already pay for a retry.
	Cooldown time.Duration

	// Stock is how many retries there are at the first use, over the fraction
	// that a budget earned by successes starts with. It expires with the window.
	// Zero, the default, means none. Over M processes it is M × Stock retries
	// that nobody earned.
	Stock float64

	// Unlimited grants every retry and counts nothing.
	Unlimited bool
}

// What Validate says is allowed, made once: a simulator validates millions.
var (
	allowedRatio  = fmt.Sprintf("zero (%v), or a ratio from %v to %v", DefaultRatio, MinRatio, MaxRatio)
	allowedWindow = fmt.Sprintf("zero (%v), or a duration from %v to %v", DefaultWindow, MinWindow, MaxWindow)
	allowedFloor  = fmt.Sprintf("zero (none), or retries per second up to %.0f", MaxFloor)
	allowedStock  = fmt.Sprintf("zero (none), or retries up to %.0f", MaxStock)
)

// Validate reports every field that is out of its limits.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Ratio == 0 || c.Ratio >= MinRatio && c.Ratio <= MaxRatio, "Ratio", c.Ratio, allowedRatio)
	l.Check(c.Window == 0 || c.Window >= MinWindow && c.Window <= MaxWindow, "Window", c.Window, allowedWindow)
	l.Check(c.Earn <= Arrivals, "Earn", c.Earn, "Successes or Arrivals")
	l.Check(c.Floor >= 0 && c.Floor <= MaxFloor, "Floor", c.Floor, allowedFloor)
	l.Check(c.Cooldown >= 0, "Cooldown", c.Cooldown, "zero (none) or a positive duration")
	l.Check(c.Stock >= 0 && c.Stock <= MaxStock, "Stock", c.Stock, allowedStock)
	return l.Err()
}

// units converts a number of retries that Validate has passed.
func units(retries float64) int64 { return int64(math.Round(retries * token)) }
