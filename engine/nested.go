package engine

import "github.com/lullgo/lull/internal/choice"

// NestedRetries is whether a server's call is retried if it is made for a request which is itself
// a retry.
type NestedRetries uint8

const (
	// NestedNever: it is not. The zero value. Retries multiply from layer to layer, so only the
	// layer next to the failure should retry. inbound.Request carries this through a server: its
	// calls for a retry are neither repeated nor hedged, and if one has failed for good, the
	// server answers "don't retry".
	NestedNever NestedRetries = iota
	// NestedAlways: it is retried as any other call. It is for a server whose callers seldom
	// retry, or send attempt numbers that cannot be trusted.
	NestedAlways
	nestedRules
)

var nestedNames = [nestedRules]string{"never", "always"}

var nestedAllowed = choice.List(nestedNames[:])

// String returns the rule as in a file, such as "never".
func (n NestedRetries) String() string { return choice.Name("nested", nestedNames[:], n) }

// MarshalText returns String, or an error for a value that is no rule.
func (n NestedRetries) MarshalText() ([]byte, error) {
	return choice.Marshal("Nested", nestedNames[:], n)
}

// UnmarshalText reads what MarshalText returns, in any case.
func (n *NestedRetries) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Nested", nestedNames[:], n, text)
}
