package execute

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/problem"
)

// run runs lull exec with flags and a shell script.
func run(t *testing.T, stdin io.Reader, flags, script string) (code int, stdout, stderr string) {
	t.Helper()
	needsShell(t)
	return clitest.Run[Command](cli.Env{Context: t.Context(), Stdin: stdin}, "exec", append(strings.Fields(flags), "--", "sh", "-c", script)...)
}

func needsShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh to run here")
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	code, out, errs := run(t, nil, "--attempts 0 --timeout soon --deadline -1s --wait 0s --max-wait 2 --kill-after x --transient 0,75,9-3,all", "exit 0")
	if code != 125 || out != "" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
	for _, want := range []string{`--attempts is "0": want a whole number from 1 to 1000`, `--timeout is "soon"`, `--deadline is "-1s"`, `--wait is "0s"`, `--max-wait is "2"`, `--kill-after is "x"`, `--transient is "0": want an exit code`, `--transient is "9-3"`, `--transient is "all"`} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %s in\n%s", want, errs)
		}
	}
	for _, args := range []string{"", "--", "--attempts 3", "--no-such-flag -- true"} {
		code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "exec", strings.Fields(args)...)
		if code != 125 || out != "" || errs == "" {
			t.Errorf("lull exec %s: exit code %d, printed %q and %q", args, code, out, errs)
		}
	}
	for flags, want := range map[string]string{
		"--timeout 2s --deadline 1s": `--timeout is "2s": want no more than the deadline of 1s`,
		"--wait 2m":                  `--wait is "2m": want no more than --max-wait, 1m0s`,
	} {
		if code, _, errs := run(t, nil, flags, "exit 0"); code != 125 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, printed %s", flags, code, errs)
		}
	}
}

func FuzzCodes(f *testing.F) {
	for _, s := range []string{"", defaultCodes, "75", "1-255", "0", "9-3", "256", "signal,signal", "1--2", " 7 , 8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l problem.List
		c := readCodes(&l, cli.Texts{cli.Text(text)})
		if c.code[0] {
			t.Errorf("%q makes a success transient", text)
		}
		var back []string
		for code, is := range c.code {
			if is {
				back = append(back, fmt.Sprint(code))
			}
		}
		if c.signal {
			back = append(back, "signal")
		}
		if len(l) == 0 && len(back) > 0 {
			if again := readCodes(&l, cli.Texts{cli.Text(strings.Join(back, ","))}); again != c || len(l) > 0 {
				t.Errorf("%q, written as %v, is read as something else", text, back)
			}
		}
	})
}
