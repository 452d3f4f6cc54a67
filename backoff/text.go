package backoff

import "github.com/lullgo/lull/internal/choice"

// The texts of what Validate allows, made once: a simulator validates millions.
var (
	kindsAllowed   = choice.List(kindNames[:])
	jittersAllowed = choice.List(jitterNames[:])
)

// MarshalText is String, for a Kind that is one.
func (k Kind) MarshalText() ([]byte, error) { return choice.Marshal("Kind", kindNames[:], k) }

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (k *Kind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Kind", kindNames[:], k, text)
}

// MarshalText is String, for a Jitter that is one.
func (j Jitter) MarshalText() ([]byte, error) { return choice.Marshal("Jitter", jitterNames[:], j) }

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (j *Jitter) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Jitter", jitterNames[:], j, text)
}
