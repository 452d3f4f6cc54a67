package throttle

import "github.com/lullgo/lull/internal/choice"

// Mode is the kind of throttle.
type Mode uint8

const (
	// Off: nothing is refused, delayed or counted. The default.
	Off Mode = iota
	// Adaptive refuses a share of the attempts, by the share that the backend accepted
	// lately: the adaptive throttling of the SRE book.
	Adaptive
	// Cubic delays attempts to a rate, which falls with a rate-limited answer and grows
	// along a cubic curve: the adaptive retry mode of the AWS SDKs.
	Cubic
)

var modeNames = [...]string{"off", "adaptive", "cubic"}

// String is the mode in lower case, such as "adaptive".
func (m Mode) String() string { return choice.Name("mode", modeNames[:], m) }

// MarshalText is String, for a Mode that is one.
func (m Mode) MarshalText() ([]byte, error) { return choice.Marshal("Mode", modeNames[:], m) }

// UnmarshalText reads the text of MarshalText, in any case.
func (m *Mode) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Mode", modeNames[:], m, text)
}
