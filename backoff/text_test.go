package backoff

import "testing"

// The texts of a kind and of a jitter are read back. Names and refusals are tested with all others, in
// the root package.
func TestTexts(t *testing.T) {
	for _, want := range []Schedule{{}, {Kind: Linear, Jitter: Decorrelated}} {
		var got Schedule
		kind, _ := want.Kind.MarshalText()
		jitter, _ := want.Jitter.MarshalText()
		if err := got.Kind.UnmarshalText(kind); err != nil || got.Kind != want.Kind {
			t.Errorf("%s: %v, %v", kind, got.Kind, err)
		}
		if err := got.Jitter.UnmarshalText(jitter); err != nil || got.Jitter != want.Jitter {
			t.Errorf("%s: %v, %v", jitter, got.Jitter, err)
		}
	}
}
