package probe

import (
	"path/filepath"
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

// Nothing is sent if anything is wrong: nobody listens there.
func TestMistakes(t *testing.T) {
	const url = "http://127.0.0.1:1/"
	clients := clitest.Write(t, filepath.Join(t.TempDir(), "clients.json"), `{"cards": [{"name": "curl"}]}`)
	for args, want := range map[string]string{
		"":                                        "lull: URL is missing: want the address of a server",
		url:                                       "lull: --i-own-this is missing",
		"--i-own-this ftp://a":                    `URL is "ftp://a": want http://HOST/PATH`,
		"--i-own-this --post a " + url:            `--post is "a": want a path`,
		"--i-own-this --together 1 " + url:        `--together is "1": want a whole number from 2 to 1000`,
		"--i-own-this --requests 0 " + url:        `--requests is "0"`,
		"--i-own-this --rate NaN " + url:          `--rate is "NaN"`,
		"--i-own-this --case nothing " + url:      `no case is named "nothing"`,
		"--i-own-this --header nothing " + url:    "--header is a line without a name: want NAME: VALUE",
		"--i-own-this --body /there/is/no " + url: "no such file",
		"--from /there/is/no":                     "no such file",
		"--from " + clients:                       "the cards are those of clients: lull torture --from",
	} {
		code, out, errs := run(t, strings.Fields(args)...)
		if code == cli.OK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, printed %s%s, want %s", args, code, out, errs, want)
		}
	}
}
