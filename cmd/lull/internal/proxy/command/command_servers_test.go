//go:build servers

package command

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
)

func TestTheDemoShowsWhatTheProxyAdds(t *testing.T) {
	code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "proxy", "demo")
	if code != cli.OK || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{"..x..x", "20 of 30 answered, 30 requests", "0 of 30 answered, 30 requests"} {
		if strings.Count(out, want) < 1 {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Count(out, "30 of 30 answered") != 2 {
		t.Errorf("not all calls through the proxy were answered:\n%s", out)
	}
	clitest.Width(t, out, 108)
}
