package lint

import (
	"github.com/lullgo/lull/internal/choice"
)

// Severity is how serious a finding is.
type Severity uint8

const (
	// Note: worth knowing; perhaps nothing needs to change.
	Note Severity = iota
	// Warning: it works in normal operation, and not in an outage.
	Warning
	// Error: it cannot do what it promises, or does harm.
	Error
	severities
)

var severityNames = [severities]string{"note", "warning", "error"}

// String returns the severity as it is printed and typed, such as "warning".
func (s Severity) String() string { return choice.Name("severity", severityNames[:], s) }

// MarshalText returns the name of the severity. The error is for a value that is none.
func (s Severity) MarshalText() ([]byte, error) {
	return choice.Marshal("Severity", severityNames[:], s)
}

// UnmarshalText reads the name of a severity, in any case. The error names the text and what is
// allowed.
func (s *Severity) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Severity", severityNames[:], s, text)
}
