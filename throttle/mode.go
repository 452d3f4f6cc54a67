package throttle

import "github.com/lullgo/lull/internal/choice"

// Mode is the kind of throttle.
type Mode uint8

const (
	// Off: nothing is refused, delayed or counted. The default.
	Off Mode = iota
	// Adaptive refuses a share of the attempts, by the share of them that the
	// backend accepted lately: the adaptive throttling of the SRE book.
	Adaptive
	// Cubic delays attempts to a rate, which falls with every rate-limited answer and
	// grows in between along a cubic curve: the adaptive retry mode of the AWS SDKs.
	Cubic
)

var modeNames = [...]string{"off", "adaptive", "cubic"}

// String is the mode in lower case, such as "adaptive".
func (m Mode) String() string { return choice.Name("mode", modeNames[:], m) }

// MarshalText is String, for a Mode that is one.
func (m Mode) MarshalText() ([]byte, error) { return choice.Marshal("Mode", modeNames[:], m) }

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (m *Mode) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Mode", modeNames[:], m, text)
}
