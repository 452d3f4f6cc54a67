package probe

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: t.Context()}, "probe", args...)
}

func TestList(t *testing.T) {
	code, out, errs := run(t, "--list")
	if code != cli.OK || errs != "" || !strings.Contains(out, "RFC 9110, 10.2.3") || !strings.Contains(out, "\n  key-again\n") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
	}
	clitest.Width(t, out, 80)
}
