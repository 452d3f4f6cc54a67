package budget

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// Earn says which calls fill the budget.
type Earn uint8

const (
	// Successes earn: the default, and the one that lets a collapsed service
	// come back at high load (see the package comment).
	Successes Earn = iota
	// Arrivals earn: every call that begins, as in Finagle.
	Arrivals
)

var earnNames = [...]string{"successes", "arrivals"}

const earnAllowed = "successes or arrivals"

// String is the way of earning in lower case, such as "successes".
func (e Earn) String() string {
	if int(e) < len(earnNames) {
		return earnNames[e]
	}
	return fmt.Sprintf("earn(%d)", uint8(e))
}

// MarshalText is String, for an Earn that is one.
func (e Earn) MarshalText() ([]byte, error) {
	if int(e) >= len(earnNames) {
		return nil, problem.Problem{Field: "Earn", Value: e, Allowed: earnAllowed}
	}
	return []byte(earnNames[e]), nil
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (e *Earn) UnmarshalText(text []byte) error {
	for i, name := range earnNames {
		// Of equal length: folding takes some letters that are not ASCII for ones
		// that are.
		if len(name) == len(text) && strings.EqualFold(name, string(text)) {
			*e = Earn(i)
			return nil
		}
	}
	return problem.Problem{Field: "Earn", Value: strconv.Quote(string(text)), Allowed: earnAllowed}
}
