//go:build servers

package simulate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

func TestSimulateInterrupted(t *testing.T) {
	for _, extra := range [][]string{nil, {"--seeds=2"}, {"--sweep=clients=1,10"}, {"--json"}, {"--csv"}} {
		args := append([]string{tiny, "--policy=none,lull", "--horizon=9000h", "--set=step=1h", "--set=window=1m", "--set=fleets.0.arrivals.rate=1", "--workers=1", "--force"}, extra...)
		want := "Interrupted"
		if slices.Contains(extra, "--json") {
			want = `"interrupted":true`
		} else if slices.Contains(extra, "--csv") {
			want = "none,1,"
		}
		for after := 300 * time.Millisecond; ; after *= 3 { // a busy machine may not have begun by then
			ctx, cancel := context.WithTimeout(t.Context(), after)
			code, stdout, stderr := lullProgram(ctx, args...)
			cancel()
			if code != cli.Failed || !strings.Contains(stderr, "interrupted") {
				t.Errorf("%v: exit code %d, stderr %q", extra, code, stderr)
			}
			if strings.Contains(stdout, want) {
				break
			}
			if after > 5*time.Second {
				t.Fatalf("%v: printed nothing of what it had:\n%.2000s", extra, stdout)
			}
		}
	}
}
