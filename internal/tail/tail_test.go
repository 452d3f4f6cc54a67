package tail

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func TestTheEndIsKept(t *testing.T) {
	var x Tail
	check.Equal(t, x.String(), "", "nothing was written")
	for i := range 10_000 {
		line := fmt.Sprintf("line %d\n", i)
		if n, err := x.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	got := x.String()
	if !strings.HasSuffix(got, "\nline 9998\nline 9999") || len(got) > maxBytes || len(got) < maxBytes-20 {
		t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-30):])
	}
}
