package backoff

import (
	"strings"
	"testing"
)

// Whatever is taken is a name, and comes back as that name.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "full", "Linear", "ethernet", "ſ", "immediate\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var k Kind
		if err := k.UnmarshalText([]byte(s)); err == nil && !strings.EqualFold(k.String(), s) {
			t.Errorf("%q became %v", s, k)
		}
		var j Jitter
		if err := j.UnmarshalText([]byte(s)); err == nil && !strings.EqualFold(j.String(), s) {
			t.Errorf("%q became %v", s, j)
		}
	})
}
