package command

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
)

func TestExitCodes(t *testing.T) {
	run := func(args ...string) (int, string, string) {
		return clitest.Run[Command](cli.Env{Context: t.Context()}, "proxy", args...)
	}
	if code, out, errs := run("--check", "--to", "https://api.example.com"); code != cli.OK || errs != "" || !strings.Contains(out, "api.example.com  127.0.0.1:9001  -> https://api.example.com") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if code, out, errs := run("--check", "../file/testdata/mistakes.yaml"); code != cli.Misused || out != "" || strings.Count(errs, "\n") < 10 || strings.Contains(errs, "lull: \n") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if code, _, errs := run(); code != cli.Misused || !strings.Contains(errs, "--to URL") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
