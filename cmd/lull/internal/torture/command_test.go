package torture

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: t.Context()}, "torture", args...)
}

func TestList(t *testing.T) {
	code, out, errs := run(t, "--list")
	if code != cli.OK || errs != "" || !strings.Contains(out, "RFC 9110, 10.2.3") || !strings.Contains(out, "\n  status-503\n") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
	}
	clitest.Width(t, out, 80)
}

func TestMistakes(t *testing.T) {
	list := clitest.Write(t, filepath.Join(t.TempDir(), "clients"), "# a remark\n\ncurl\t8\tcurl {url}\nwget 1 wget\n")
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0":                  `--listen: the address is "0.0.0.0:0": want a loopback address`,
		"--client curl":                       `--client is "curl": want one of lullhttp`,
		"--client lullhttp --case nothing":    `no case is named "nothing"`,
		"--client lullhttp --together 0":      `--together is "0": want a whole number from 1 to 64`,
		"--adapters " + list:                  list + `:4 is "wget 1 wget": want NAME, VERSION and the command, between tabs`,
		"--adapters /there/is/no/such":        "no such file",
		"--from /there/is/no/such":            "no such file",
		"--client net/http,net/http --keep k": `--keep is "k": want clients of different names, by which it knows their cards; two are named "net/http"`,
		"--adapters /dev/null":                `--adapters is "/dev/null", which has no client`,
		"--client net/http --keep " + list:    "invalid character",
		"-- /there/is/none":                   "/there/is/none cannot be run: no such file",
		"--client net/http --frob":            "--frob",
	} {
		code, out, errs := run(t, strings.Fields(args)...)
		if code == cli.OK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, printed %s%s, want %s", args, code, out, errs, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	code, out, errs := clitest.Run[Command](cli.Env{Context: ctx}, "torture", "--client", "net/http")
	if code != cli.Failed || out != "" || errs != "lull: net/http: interrupted\n" {
		t.Errorf("exit code %d, printed %s%s", code, out, errs)
	}
}
