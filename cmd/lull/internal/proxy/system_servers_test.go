//go:build servers && linux

package proxy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/lullgo/lull/internal/must"
)

// Pages that are given back are no longer resident, and are there again when they are read.
func TestPagesAreGivenBack(t *testing.T) {
	resident := func() (kB int) {
		_, line, _ := strings.Cut(string(must.Have(os.ReadFile("/proc/self/status"))), "RssFile:")
		must.Have(fmt.Sscan(line, &kB))
		return kB
	}
	before := resident()
	dropPages()
	if after := resident(); after > before/2 {
		t.Errorf("%d kB of files are resident, and %d kB were before", after, before)
	}
	for r := range rune(unicode.MaxRune) {
		if unicode.IsUpper(r) && unicode.ToLower(unicode.ToUpper(r)) == 0 {
			t.Errorf("%x has no lower case", r)
		}
	}
}
