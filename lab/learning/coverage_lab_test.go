//go:build lab

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// A few worlds, as each of the sources: most of what is stated is true. (The table of 200 has the share.)
func TestCoverage(t *testing.T) {
	options.worlds, options.seed = 3, 1001
	var out bytes.Buffer
	must.Succeed(runCoverage(t.Context(), &out))
	t.Log("\n" + out.String())
	wrong := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "- ") && strings.Contains(line, "lull learn:") {
			t.Error(line)
		}
		if strings.HasPrefix(line, "- ") && !strings.Contains(line, "the incident is") {
			wrong++
		}
	}
	if stated := options.worlds * len(sources) * 4; wrong > stated/10 {
		t.Errorf("%d of some %d statements are wrong", wrong, stated)
	}
}
