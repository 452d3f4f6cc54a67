//go:build servers

package execute

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// TestMain is lull itself for the tests that send signals to it.
func TestMain(m *testing.M) {
	if os.Getenv("LULL_TEST_PROGRAM") != "" {
		cli.Main(func(env cli.Env, args []string) int {
			return cli.Run(env, &struct {
				Exec Command `cmd:""`
			}{}, args)
		})
	}
	os.Exit(m.Run())
}

const quick = "--wait 1ms --max-wait 1ms "

func TestRepeatsUntilItSucceeds(t *testing.T) {
	code, out, errs := run(t, nil, quick, `echo out $LULL_ATTEMPT; echo err $LULL_ATTEMPT >&2; test $LULL_ATTEMPT = 3`)
	if code != 0 || out != "out 3\n" {
		t.Errorf("exit code %d, standard output %q: want that of the third attempt alone", code, out)
	}
	last := 0
	for _, want := range []string{"err 1\n", "out 1\n", "lull: attempt 1 of 5: exit code 1 after ", "err 2\n", "out 2\n", "lull: attempt 2 of 5: exit code 1 after ", "err 3\n", "lull: attempt 3 of 5 succeeded\n"} {
		at := strings.Index(errs, want)
		if at < last {
			t.Errorf("%q is missing or out of order:\n%s", want, errs)
		}
		last = at
	}
	if strings.Contains(errs, "out 3") {
		t.Errorf("the output of the last attempt is on standard error:\n%s", errs)
	}
}

func TestTheExitCodeIsThatOfTheLastAttempt(t *testing.T) {
	code, out, errs := run(t, nil, quick+"--attempts 4", `echo out $LULL_ATTEMPT; exit $((40 + LULL_ATTEMPT))`)
	if code != 44 || out != "out 4\n" {
		t.Errorf("exit code %d, printed %q: want 44 and the last output", code, out)
	}
	if want := "lull: sh failed after 4 attempts ("; !strings.Contains(errs, want) || !strings.HasSuffix(errs, "; not repeated, because --attempts allows no more: exit code 44\n") {
		t.Errorf("want %q...:\n%s", want, errs)
	}
}

func TestWhichEndsAreTransient(t *testing.T) {
	for _, c := range []struct {
		flags, script string
		code          int
		attempts      int
	}{
		{"", "exit 1", 1, 2},
		{"", "exit 126", 126, 1},
		{"", "exit 127", 127, 1},
		{"", "kill -9 $$", 128 + 9, 2},
		{"--transient 75", "exit 1", 1, 1},
		{"--transient 75", "exit 75", 75, 2},
		{"--transient 1-3,75", "exit 3", 3, 2},
		{"--transient 75 --transient 4", "exit 4", 4, 2},
		{"--transient 1-255", "kill -9 $$", 128 + 9, 1},
		{"--transient signal", "kill -9 $$", 128 + 9, 2},
		{"--transient 126", "exit 126", 126, 2},
	} {
		code, _, errs := run(t, nil, quick+"--attempts 2 "+c.flags, "echo began >&2; "+c.script)
		if n := strings.Count(errs, "began"); code != c.code || n != c.attempts {
			t.Errorf("%s, %s: exit code %d after %d attempts, want %d after %d\n%s", c.flags, c.script, code, n, c.code, c.attempts, errs)
		}
		if c.attempts == 1 && !strings.Contains(errs, "because --transient does not have this") {
			t.Errorf("%s, %s: %s", c.flags, c.script, errs)
		}
	}
}

func TestCommandsThatCannotBeRun(t *testing.T) {
	needsShell(t)
	plain := filepath.Join(t.TempDir(), "plain")
	must.Succeed(os.WriteFile(plain, []byte("text"), 0o644))
	garbage := filepath.Join(t.TempDir(), "garbage")
	must.Succeed(os.WriteFile(garbage, []byte{0, 1, 2, 3}, 0o755))
	for name, want := range map[string]int{"no-such-command-here": 127, plain + "-that-is-missing": 127, plain: 126, garbage: 126} {
		code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "exec", "--quiet", "--", name)
		if code != want || out != "" || !strings.Contains(errs, name) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d; printed %q and %q", name, code, want, out, errs)
		}
	}
}

// An attempt that takes too long is ended, with what it has started, and repeated.
func TestTimeouts(t *testing.T) {
	code, out, errs := run(t, nil, quick+"--attempts 2 --timeout 300ms", `echo began; sleep 600 & wait`)
	if code != 124 || out != "began\n" || strings.Count(errs, "began") != 1 || !strings.Contains(errs, "lull: attempt 1 of 2: ran out of time after ") {
		t.Errorf("exit code %d, printed %q and\n%s", code, out, errs)
	}
	code, _, errs = run(t, nil, quick+"--attempts 1 --timeout 300ms --kill-after 10ms", `trap '' TERM; while :; do sleep 1; done`)
	check.Equal(t, code, 124, "exit code where SIGTERM is ignored\n%s", errs)
	code, out, _ = run(t, nil, quick+"--timeout 300ms", `trap 'echo done; exit 0' TERM; while :; do sleep 0.01; done`)
	if code != 0 || out != "done\n" {
		t.Errorf("a command that succeeds when it is ended has succeeded; exit code %d, printed %q", code, out)
	}
}

// The odds that the wait is drawn below a minute are one in ten million.
func TestNoWaitCrossesTheDeadline(t *testing.T) {
	code, _, errs := run(t, nil, "--wait 8760h --max-wait 8760h --deadline 1m", `exit 9`)
	if code != 9 || !strings.Contains(errs, "lull: sh failed after 1 attempt (") || !strings.HasSuffix(errs, "; not repeated, because no time is left before the deadline (--deadline): exit code 9\n") {
		t.Errorf("exit code %d, printed\n%s", code, errs)
	}
	code, _, errs = run(t, nil, quick+"--deadline 300ms", `exec sleep 600`)
	if code != 124 || strings.Contains(errs, "attempt 1 of") {
		t.Errorf("a command that runs at the deadline: exit code %d, printed\n%s", code, errs)
	}
}

const letter = "one\ntwo\nthree\n"

// Each attempt reads the input from its beginning, whatever the one before it has read.
func TestInputIsGivenToEachAttempt(t *testing.T) {
	file := must.Have(os.Create(filepath.Join(t.TempDir(), "file")))
	defer file.Close()
	const read = 5 // by the shell, before lull
	must.Have(io.WriteString(file, "zero\n"+letter))
	must.Have(file.Seek(read, io.SeekStart))
	r, w, err := os.Pipe()
	must.Succeed(err)
	defer r.Close()
	go func() { defer w.Close(); _, _ = io.WriteString(w, letter) }()
	for name, stdin := range map[string]io.Reader{"file": file, "pipe": r, "reader": strings.NewReader(letter)} {
		code, out, errs := run(t, stdin, quick, `if [ $LULL_ATTEMPT = 1 ]; then read line; exit 1; elif [ $LULL_ATTEMPT = 2 ]; then exit 1; fi; cat`)
		if code != 0 || out != letter {
			t.Errorf("%s: exit code %d, printed %q and\n%s", name, code, out, errs)
		}
	}
}

func TestLongInputIsGivenToEachAttempt(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 1<<16)
	code, out, errs := run(t, strings.NewReader(long), quick, `if [ $LULL_ATTEMPT = 1 ]; then head -c 300000 >/dev/null; exit 1; fi; cat`)
	if code != 0 || out != long {
		t.Errorf("exit code %d, %d bytes, want %d\n%s", code, len(out), len(long), errs)
	}
}

// A command that does not read its input ends though nothing arrives there.
func TestInputThatNeverComes(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	if code, out, errs := run(t, r, quick, `echo $LULL_ATTEMPT; test $LULL_ATTEMPT = 3`); code != 0 || out != "3\n" {
		t.Errorf("exit code %d, printed %q and\n%s", code, out, errs)
	}
}

// An input that cannot be read to its end is not one that is shorter: the command does not see an end, and it is no
// success, whatever the command says.
func TestRule24InputThatIsCutShort(t *testing.T) {
	cut := errors.New("the disk is broken")
	for what, script := range map[string]string{"an end": "cat", "success all the same": "trap 'exit 0' TERM; exec 3<&0; cat <&3 & wait", "an end, then more": "cat; echo all"} {
		for n, in := range map[int]io.Reader{0: iotest.ErrReader(cut), len(letter): io.MultiReader(strings.NewReader(letter), iotest.ErrReader(cut))} {
			code, out, errs := run(t, in, quick+"--quiet --kill-after 1s ", script)
			if code != exitOwn || strings.Contains(out, "all") || !strings.Contains(errs, "lull: standard input was cut short: the disk is broken") {
				t.Errorf("%s, after %d bytes: exit code %d, printed %q and\n%s", what, n, code, out, errs)
			}
		}
	}
}

func TestStreamAndQuiet(t *testing.T) {
	code, out, errs := run(t, nil, quick+"--stream --quiet --attempts 3", `echo out $LULL_ATTEMPT; echo err >&2; exit 5`)
	if code != 5 || out != "out 1\nout 2\nout 3\n" || errs != "err\nerr\nerr\n" {
		t.Errorf("exit code %d, printed %q and %q", code, out, errs)
	}
}

// Flags after the command are its own, with -- and without.
func TestFlagsOfTheCommand(t *testing.T) {
	needsShell(t)
	for _, args := range [][]string{{"echo", "--attempts", "-n"}, {"--", "echo", "--attempts", "-n"}, {"--attempts=2", "--", "echo", "--attempts", "-n"}} {
		code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "exec", args...)
		if code != 0 || out != "--attempts -n\n" || errs != "" {
			t.Errorf("%v: exit code %d, printed %q and %q", args, code, out, errs)
		}
	}
}

// program is lull exec as a process that signals can be sent to.
type program struct {
	*exec.Cmd
	out  bytes.Buffer
	errs *bufio.Reader
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	needsShell(t)
	self := must.Have(os.Executable())
	p := &program{Cmd: exec.CommandContext(t.Context(), self, append([]string{"exec"}, args...)...)}
	p.Env = append(os.Environ(), "LULL_TEST_PROGRAM=1")
	p.Stdout = &p.out
	errs := must.Have(p.StderrPipe())
	p.errs = bufio.NewReader(errs)
	must.Succeed(p.Start())
	return p
}

// until reads lines of standard error until one begins with text.
func (p *program) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := p.errs.ReadString('\n')
		if err != nil {
			t.Fatalf("%v before %q", err, text)
		}
		if strings.HasPrefix(line, text) {
			return
		}
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := start(t, "--", "sh", "-c", `trap 'echo got; exit 33' INT TERM HUP; echo ready >&2; while :; do sleep 0.01; done`)
		p.until(t, "ready")
		must.Succeed(p.Process.Signal(s))
		p.until(t, "lull: sh failed after 1 attempt (")
		if err := p.Wait(); p.ProcessState.ExitCode() != 33 || p.out.String() != "got\n" {
			t.Errorf("%v: %v, printed %q; want the exit code of the command, 33", s, err, p.out.String())
		}
	}
}

// The same without a trap: what the command has started ends too.
func TestSignalsReachWhatTheCommandHasStarted(t *testing.T) {
	p := start(t, "--", "sh", "-c", `sleep 600 & echo ready >&2; wait`)
	p.until(t, "ready")
	must.Succeed(p.Process.Signal(syscall.SIGTERM))
	rest := must.Have(io.ReadAll(p.errs)) // until all have closed it, sleep too
	if err := p.Wait(); p.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) || !strings.Contains(string(rest), "because a signal asked it to end: signal SIGTERM") {
		t.Errorf("%v, printed %s", err, rest)
	}
}

// In a wait there is nobody to pass a signal on to.
func TestASignalEndsTheWait(t *testing.T) {
	p := start(t, "--wait", "8760h", "--max-wait", "8760h", "--", "sh", "-c", "exit 7")
	p.until(t, "lull: attempt 1 of 5: exit code 7")
	must.Succeed(p.Process.Signal(os.Interrupt))
	rest, _ := io.ReadAll(p.errs)
	if err := p.Wait(); p.ProcessState.ExitCode() != 7 || !strings.Contains(string(rest), "because a signal asked it to end") {
		t.Errorf("%v, printed %s", err, rest)
	}
}

func TestOtherSignalsDoNotEndTheCall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGUSR1 here")
	}
	p := start(t, "--wait", "1ms", "--max-wait", "1ms", "--attempts", "2", "--", "sh", "-c",
		`trap 'exit 3' USR1; [ $LULL_ATTEMPT = 2 ] && exit 0; echo ready >&2; while :; do sleep 0.01; done`)
	p.until(t, "ready")
	must.Succeed(p.Process.Signal(passedOn[4]))
	p.until(t, "lull: attempt 1 of 2: exit code 3")
	p.until(t, "lull: attempt 2 of 2 succeeded")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}
