package backoff

import "github.com/lullgo/lull/internal/choice"

// Kind is how the ceiling of the wait grows from one retry to the next.
type Kind uint8

const (
	// Exponential: Base × Factor^(retry-1), up to Cap. The zero Kind.
	Exponential Kind = iota
	// Linear: Base × retry, up to Cap.
	Linear
	// Constant: Base, every time.
	Constant
	// Immediate: one retry, at once, and then no more (Limit is 1).
	Immediate
	// Ethernet: the truncated binary exponential backoff of IEEE 802.3: r slots of Base
	// each, r uniform in 0 … 2^min(retry,10)-1. The sixteenth attempt is the last (Limit is
	// 15). Timers do not resolve a slot of 51.2 µs ([Schedule]).
	Ethernet
)

var kindNames = [...]string{"exponential", "linear", "constant", "immediate", "ethernet"}

// String is the kind in lower case, such as "exponential".
func (k Kind) String() string { return choice.Name("kind", kindNames[:], k) }

// Jitter is how chance spreads the wait below the ceiling c. The page docs/mechanisms.md
// has which to take when.
type Jitter uint8

const (
	// Full: uniform in [Floor, c]. The zero Jitter.
	Full Jitter = iota
	// Equal: uniform in [c/2, c], and not below Floor.
	Equal
	// None: exactly c, or Floor if that is more.
	None
	// Decorrelated: uniform in [Base, 3 × the previous wait], up to Cap. It grows by
	// itself, so it needs Kind Exponential and no Factor.
	Decorrelated
	// Proportional: uniform in [0.8c, 1.2c], and not below Floor. c is at most Cap/1.2.
	Proportional
)

var jitterNames = [...]string{"full", "equal", "none", "decorrelated", "proportional"}

// String is the jitter in lower case, such as "full".
func (j Jitter) String() string { return choice.Name("jitter", jitterNames[:], j) }
