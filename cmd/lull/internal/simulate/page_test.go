package simulate

import (
	"slices"
	"testing"
)

func TestUnwrapped(t *testing.T) {
	got := unwrapped([]string{"Back: a,", "  b,", "  c.", "Not back: d."})
	if want := []string{"Back: a, b, c.", "Not back: d."}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
