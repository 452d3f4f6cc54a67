package lint

import (
	"fmt"

	"github.com/lullgo/lull/internal/choice"
)

// Severity is how bad a finding is.
type Severity uint8

const (
	// Note: worth knowing; there may be nothing to change.
	Note Severity = iota
	// Warning: it works until the day that it is for.
	Warning
	// Error: it cannot do what it says, or does harm.
	Error
	severities
)

var severityNames = [severities]string{"note", "warning", "error"}

// String is the severity as it is printed and typed, such as "warning".
func (s Severity) String() string {
	if s < severities {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// MarshalText is String, for a severity that is one.
func (s Severity) MarshalText() ([]byte, error) {
	return choice.Marshal("Severity", severityNames[:], s)
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the text and
// what is allowed.
func (s *Severity) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Severity", severityNames[:], s, text)
}
