package budget

import "github.com/lullgo/lull/internal/choice"

// Earn is which calls fill the budget.
type Earn uint8

const (
	// Successes earn: the default. A collapsed service can then recover at a high load.
	Successes Earn = iota
	// Arrivals earn: every call that starts, as in Finagle.
	Arrivals
)

var earnNames = [...]string{"successes", "arrivals"}

// String is the way of earning in lower case, such as "successes".
func (e Earn) String() string { return choice.Name("earn", earnNames[:], e) }

// MarshalText is String, for an Earn that is one.
func (e Earn) MarshalText() ([]byte, error) { return choice.Marshal("Earn", earnNames[:], e) }

// UnmarshalText reads the text of MarshalText, in any case.
func (e *Earn) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Earn", earnNames[:], e, text)
}
