package engine

import "github.com/lullgo/lull/internal/choice"

// NestedRetries is whether a call is retried that a server makes on behalf of a
// request which is itself a retry.
type NestedRetries uint8

const (
	// NestedNever: it is not. The zero value.
	//
	// Retries multiply from layer to layer. Only the layer next to the failure should
	// retry. Two things make it so, by way of the inbound.Request in a handler's context:
	// a server whose calls have failed for good answers "don't retry", and what is done
	// for a retry is neither repeated nor hedged.
	NestedNever NestedRetries = iota
	// NestedAlways: as any other call. For a server whose callers' retries are known
	// to be rare, or whose attempt numbers are not to be trusted.
	NestedAlways
	nestedRules
)

var nestedNames = [nestedRules]string{"never", "always"}

var nestedAllowed = choice.List(nestedNames[:])

// String is the rule as in a file, such as "never".
func (n NestedRetries) String() string { return choice.Name("nested", nestedNames[:], n) }

// MarshalText is String, for a rule that is one.
func (n NestedRetries) MarshalText() ([]byte, error) {
	return choice.Marshal("Nested", nestedNames[:], n)
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (n *NestedRetries) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Nested", nestedNames[:], n, text)
}
