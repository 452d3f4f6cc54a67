package backoff

import "github.com/lullgo/lull/internal/choice"

// Made once: a simulator validates millions of schedules.
var (
	kindsAllowed   = choice.List(kindNames[:])
	jittersAllowed = choice.List(jitterNames[:])
)

// MarshalText is String, for a Kind that is one.
func (k Kind) MarshalText() ([]byte, error) { return choice.Marshal("Kind", kindNames[:], k) }

// UnmarshalText reads the text of MarshalText, in any case.
func (k *Kind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Kind", kindNames[:], k, text)
}

// MarshalText is String, for a Jitter that is one.
func (j Jitter) MarshalText() ([]byte, error) { return choice.Marshal("Jitter", jitterNames[:], j) }

// UnmarshalText reads the text of MarshalText, in any case.
func (j *Jitter) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Jitter", jitterNames[:], j, text)
}
