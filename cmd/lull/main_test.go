package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/topic"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/torture"
)

// lullProgram runs the program and returns what it printed.
func lullProgram(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return lullWithInput(ctx, nil, args...)
}

// lullWithInput is lullProgram with standard input.
func lullWithInput(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = program(cli.Env{Context: ctx, Stdin: stdin, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}, args)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	_, want, _ := lullProgram(t.Context(), "--help")
	for _, args := range [][]string{{}, {"help"}, {"-h"}} {
		if code, got, _ := lullProgram(t.Context(), args...); code != cli.OK || got != want {
			t.Errorf("%v: exit code %d, printed\n%s", args, code, got)
		}
	}
	_, want, _ = lullProgram(t.Context(), "demo", "--help")
	if code, got, _ := lullProgram(t.Context(), "help", "demo"); code != cli.OK || got != want || !strings.Contains(got, "--outage") {
		t.Errorf("help demo: exit code %d, printed\n%s", code, got)
	}
	below(model(t).Model.Node, func(name string, _ *kong.Node) {
		_, got, _ := lullProgram(t.Context(), append([]string{"help"}, strings.Fields(name)...)...)
		clitest.Width(t, got, 82)
	})
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		if code, got, _ := lullProgram(t.Context(), arg); code != cli.OK || !strings.HasPrefix(got, "lull ") {
			t.Errorf("%s: exit code %d, printed %q", arg, code, got)
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	for _, args := range [][]string{{"dmo"}, {"help", "dmo"}, {"--json"}} {
		code, stdout, stderr := lullProgram(t.Context(), args...)
		if code != cli.Misused || stdout != "" || !strings.Contains(stderr, args[len(args)-1]) || !strings.Contains(stderr, "demo, simulate, battery, learn, tune, replay, lint, convert, schema, proxy, exec, torture, probe, queue, worker, version, completion, man, help") {
			t.Errorf("%v: exit code %d, stdout %q, stderr\n%s", args, code, stdout, stderr)
		}
	}
}

// The pages of lull help TOPIC are listed where a user looks, and those alone.
func TestHelpOfTopics(t *testing.T) {
	for _, name := range topic.Names {
		code, page, errs := lullProgram(t.Context(), "help", name)
		if code != cli.OK || len(page) < 200 || errs != "" || strings.Contains(page, "{{") {
			t.Errorf("help %s: exit code %d, printed %q and\n%s", name, code, errs, page)
		}
		clitest.Width(t, page, 80)
	}
	if code, got, _ := lullProgram(t.Context(), "help", "Exit", "codes"); code != cli.OK || !strings.HasPrefix(got, "EXIT CODES\n") {
		t.Errorf("in other words: exit code %d, printed\n%s", code, got)
	}
	if page, _ := topic.Page("policies"); !strings.Contains(page, fmt.Sprintf("\n  attempts            %d, ", engine.DefaultAttempts)) || !strings.Contains(page, fmt.Sprintf("%ds for the whole call", engine.DefaultDeadline/time.Second)) {
		t.Errorf("other figures than those of package engine:\n%s", page)
	}
	listed := strings.Join(topic.Names, ", ") + "."
	if _, got, _ := lullProgram(t.Context(), "help"); !strings.Contains(strings.Join(strings.Fields(got), " "), "a topic: "+listed) {
		t.Errorf("not listed: %s\n%s", listed, got)
	}
	if code, _, errs := lullProgram(t.Context(), "help", "jiter"); code != cli.Misused || !strings.Contains(errs, "jiter") || !strings.HasSuffix(errs, "Topics: "+listed+"\nDid you mean lull help jitter?\n") {
		t.Errorf("help jiter: exit code %d, printed\n%s", code, errs)
	}
}

// Every command line in a page of help can be parsed.
func TestExamplesInHelp(t *testing.T) {
	var texts []string
	for _, name := range topic.Names {
		page, _ := topic.Page(name)
		texts = append(texts, page)
	}
	for _, command := range []string{"demo", "simulate", "battery", "learn", "tune", "replay", "lint", "convert", "schema", "proxy", "exec", "torture", "completion", "man"} {
		_, page, _ := lullProgram(t.Context(), "help", command)
		texts = append(texts, page)
	}
	examples := 0
	for _, text := range texts {
		for line := range strings.Lines(text) {
			at := strings.Index(line, "lull ")
			if indent := line[:max(at, 0)]; indent != "  " && indent != "    " && !strings.HasSuffix(indent, "| ") {
				continue
			}
			line, _, _ = strings.Cut(line[at:], "  ") // an explanation
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " < ")
			line, _, _ = strings.Cut(line, " > ")
			parser := must.Have(kong.New(&commands{}, kong.Name("lull")))
			examples++
			if ctx, err := kong.Trace(parser, strings.Fields(line)[1:]); err != nil || ctx.Error != nil {
				t.Errorf("%s: %v", line, ctx.Error)
			}
		}
	}
	if examples < 25 {
		t.Errorf("only %d examples", examples)
	}
}

// All mistakes of a command line are reported in one round: flags that there are not, and values
// that are wrong.
func TestAllMistakesOfACommandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string // in this order
		not  []string
	}{
		{"lint --bogus=1 --format=x --nonsense --off=y a.yaml", []string{"unknown flag --bogus", "unknown flag --nonsense", "--format is", "--off is", "Flags of lint"}, nil},
		{"convert --too=grpc", []string{"unknown flag --too", "FILE is missing"}, nil},
		{"simulate --seed -1 --bogus=2 --seeds 0", []string{"unknown flag --bogus", "--seed is", "--seeds is"}, nil},
		{"exec --attempts=0 --bogus=1 -- true", []string{"unknown flag --bogus", "--attempts is"}, nil},
		{"demo --load=-1 --plain=3 --kind=x", []string{"--plain", "--load is", "--kind is"}, nil},
		{"battery --bogus=1 --seeds=0 --world=no", []string{"unknown flag --bogus", "--seeds is", "--world is"}, nil},
		{"torture --bogus=1 --together=0 --client=no", []string{"unknown flag --bogus", "--together is", "--client is"}, nil},
		{"schema one two", []string{"unexpected argument one", "unexpected argument two"}, nil},
		// What follows an unknown flag may be its value: nothing more is certain then.
		{"convert --bogus x", []string{"unknown flag --bogus"}, []string{"FILE", " x"}},
		{"queue inspect --bogus=1", []string{"unknown flag --bogus", "BROKER is missing: want the broker", "QUEUE is missing: want the queue"}, nil},
		{"queue inspekt", []string{`no command is called "inspekt": did you mean inspect?`, "Commands of queue"}, nil},
		{"schema -x", []string{"unknown flag -x"}, []string{"did you mean"}},
		{"simulate a b", []string{"unexpected argument b, usage: lull simulate [<scenario>] [flags]"}, nil},
		{"torture --case=no --report=/there/is/no/page", []string{`--case: no case is named "no"`, "--report: /there/is/no/page cannot be written"}, nil},
		{"lint --bogus --help", []string{"unknown flag --bogus"}, []string{"Usage"}},
		{"dmo --bogus", []string{`no command is called "dmo": did you mean demo?`}, []string{"bogus"}},
	} {
		code, stdout, stderr := lullProgram(t.Context(), strings.Fields(c.args)...)
		if want := cli.Misused; code != want && !strings.HasPrefix(c.args, "exec") || stdout != "" {
			t.Errorf("%s: exit code %d, printed %q", c.args, code, stdout)
		}
		rest := stderr
		for _, want := range c.want {
			i := strings.Index(rest, want)
			if i < 0 {
				t.Errorf("%s: want %q in\n%s", c.args, want, stderr)
				continue
			}
			rest = rest[i:]
			if strings.Count(stderr, "lull: "+want) > 1 {
				t.Errorf("%s: %q twice in\n%s", c.args, want, stderr)
			}
		}
		for _, not := range c.not {
			if strings.Contains(stderr, not) {
				t.Errorf("%s: %q in\n%s", c.args, not, stderr)
			}
		}
	}
}

// A file that cannot be read is another thing than one with a mistake, which has its line. Both are
// reported in one round.
func TestCannotBeReadIsNotAMistake(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Succeed(os.WriteFile("bad.yaml", []byte("dependencies:\n  api: {atempts: 2}\n"), 0o644))
	must.Succeed(os.Mkdir("folder", 0o755))
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"lint bad.yaml none.yaml --format=x", 2, []string{"--format is", "none.yaml cannot be read: ", "bad.yaml:2:9: dependencies.api.atempts is unknown"}},
		{"convert bad.yaml none.yaml folder", 2, []string{"none.yaml cannot be read: ", "folder has no file of YAML or JSON", "bad.yaml:2:9: dependencies.api.atempts is unknown"}},
		{"convert none.yaml", 1, []string{"none.yaml cannot be read: "}},
		{"convert bad.yaml --base=no", 2, []string{"--base is", "bad.yaml:2:9: "}},
		{"simulate none.yaml --policy bad.yaml,folder/none.yaml --seeds 0", 2, []string{"none.yaml cannot be read: ", "bad.yaml:2:9: ", "folder/none.yaml cannot be read: ", "--seeds is"}},
		{"battery --policy none.yaml --against no.json", 2, []string{"--policy: none.yaml cannot be read: ", "--against: no.json cannot be read: "}},
		{"torture --from none.json", 1, []string{"none.json cannot be read: "}},
		{"torture --adapters none.tsv", 2, []string{"none.tsv cannot be read: "}},
	} {
		code, stdout, stderr := lullProgram(t.Context(), strings.Fields(c.args)...)
		if code != c.code || stdout != "" {
			t.Errorf("%s: exit code %d, printed %q", c.args, code, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: want %q in\n%s", c.args, want, stderr)
			}
		}
	}
}

// A wrong command line is reported at once: nobody has to end standard input first.
func TestAWrongFlagDoesNotWaitForInput(t *testing.T) {
	for _, args := range []string{"lint - --format=x", "convert - --base=x", "convert - -"} {
		s := silent{make(chan struct{}), make(chan struct{})}
		code, _, stderr := lullWithInput(t.Context(), s, strings.Fields(args)...)
		if code != cli.Misused || !strings.Contains(stderr, " is ") {
			t.Errorf("%s: exit code %d, printed %q", args, code, stderr)
		}
	}
}

// silent is a reader that blocks until over is closed.
type silent struct{ asked, over chan struct{} }

func (s silent) Read([]byte) (int, error) {
	close(s.asked)
	<-s.over
	return 0, io.EOF
}

// The first Ctrl-C ends lint and convert, whatever they wait for.
func TestTheFirstInterruptEndsLintAndConvert(t *testing.T) {
	for command, want := range map[string]int{"lint": cli.Misused, "convert": cli.Failed} {
		s := silent{make(chan struct{}), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.asked; cancel() }()
		code, out, errs := lullWithInput(ctx, s, command, "-")
		close(s.over)
		if code != want || out != "" || errs != "lull: interrupted: nothing is written\n" {
			t.Errorf("%s: exit code %d, printed %q and %q", command, code, out, errs)
		}
	}
}

// Without lull-queue the error has the command that installs it. Help and mistakes in the command line do not
// need it.
func TestQueueIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, args := range [][]string{{"queue", "inspect", "nats://localhost", "DEAD"}, {"worker", "nats://localhost"}, {"simulate", "--workers=nats://localhost"}} {
		code, out, errs := lullProgram(t.Context(), args...)
		const want = "lull: lull-queue is not installed: go install github.com/lullgo/lull/cmd/lull/lull-queue@latest (in a checkout of lull without @latest)\n"
		if code != cli.Failed || out != "" || errs != want {
			t.Errorf("%v: exit code %d, printed %q and %q", args, code, out, errs)
		}
	}
	for args, want := range map[string][]string{
		"queue --help":         {"Usage: lull queue <command>", "  queue inspect", "  queue redrive", "4 there is no such queue"},
		"help queue":           {"  queue inspect", "  queue redrive"},
		"--help queue":         {"  queue inspect"},
		"help queue inspect":   {"Usage: lull queue inspect <broker> <queue> [flags]", "--older-than=AGE", "--body"},
		"help queue redrive":   {"--to=QUEUE", "--dry-run", "--rate=10"},
		"queue redrive --help": {"--to=QUEUE", "--dry-run"},
		"help worker":          {"Usage: lull worker <url> [flags]", "--workers=N"},
	} {
		code, out, errs := lullProgram(t.Context(), strings.Fields(args)...)
		for _, text := range want {
			if code != cli.OK || errs != "" || !strings.Contains(out, text) {
				t.Errorf("lull %s: exit code %d, want %q; printed\n%s%s", args, code, text, out, errs)
			}
		}
	}
	for args, want := range map[string]string{
		"queue":                               "a command is missing\nCommands of queue: inspect, redrive.",
		"queue inspect a b --limits 1":        "unknown flag --limits, did you mean \"--limit\"?",
		"queue redrive nats://localhost DEAD": "--to is missing: want the queue that gets them",
	} {
		if code, out, errs := lullProgram(t.Context(), strings.Fields(args)...); code != cli.Misused || out != "" || !strings.Contains(errs, want) {
			t.Errorf("lull %s: exit code %d, want %q; printed\n%s%s", args, code, want, out, errs)
		}
	}
}

// A full is an output that takes so many bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.left -= n
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// A report of which a part could not be written is no success, whatever the command.
func TestRule24AReportThatIsWrittenInPart(t *testing.T) {
	card := filepath.Join(t.TempDir(), "card.json")
	var cards bytes.Buffer
	if err := torture.WriteJSON(&cards, []*torture.Card{{Name: "net/http", Results: []torture.Result{{Case: "once-422", Group: "must not be repeated", Verdict: torture.Pass.Because("one attempt")}}}}); err != nil || os.WriteFile(card, cards.Bytes(), 0o600) != nil {
		t.Fatal(err)
	}
	const tiny = "../../docs/examples/policies/good"
	for _, args := range []string{
		"--version", "version", "help", "help torture", "help budget", "help exit-codes", "schema", "man", "completion bash", "completion zsh", "completion fish",
		"torture --list", "torture --from " + card, "torture --json --from " + card, "torture --from " + card + "," + card, "probe --list",
		"simulate --list", "simulate --explain", "battery --list", "convert --list", "lint --rules", "lint --explain jitter-missing", "lint " + tiny, "lint --format json " + tiny,
		"queue --help",
	} {
		cannotBeWritten(t, args)
	}
}

// cannotBeWritten runs a command whose output has too little room.
func cannotBeWritten(t *testing.T, args string) {
	t.Helper()
	code, out, errs := lullProgram(t.Context(), strings.Fields(args)...)
	if code != cli.OK || out == "" {
		t.Errorf("lull %s: exit code %d, %d bytes, %s", args, code, len(out), errs)
		return
	}
	for _, room := range []int{0, len(out) / 2, len(out) - 1} {
		env := cli.Env{Context: t.Context(), Stdout: &full{room}, Stderr: io.Discard, Getenv: func(string) string { return "" }}
		if code := program(env, strings.Fields(args)); code == cli.OK {
			t.Errorf("lull %s: exit code 0, and %d of %d bytes could be written", args, room, len(out))
		}
	}
}

// The incident of docs/learn.md is learnt and replayed as the page says.
func TestTheIncidentOfTheDocs(t *testing.T) {
	page := string(must.Have(os.ReadFile("../../docs/learn.md")))
	const folder = "../../docs/examples/incident/"
	world := filepath.Join(t.TempDir(), "incident.yaml")
	code, learnt, stderr := lullProgram(t.Context(), "learn", folder+"service.jsonl.gz", folder+"callers.om.gz", "-o", world)
	if code != 0 {
		t.Fatal(stderr)
	}
	code, replayed, stderr := lullProgram(t.Context(), "replay", world, "--policy", folder+"policies.yaml,lull")
	if code != 0 {
		t.Fatal(stderr)
	}
	all := learnt + replayed + string(must.Have(os.ReadFile(world)))
	blocks := 0
	for _, kind := range []string{"text", "yaml"} {
		for _, after := range strings.Split(page, "```"+kind+"\n")[1:] {
			block, _, _ := strings.Cut(after, "```")
			blocks++
			for line := range strings.Lines(block) {
				if !strings.Contains(all, line) {
					t.Errorf("docs/learn.md has %q, and lull printed\n%s", line, all)
				}
			}
		}
	}
	if blocks < 3 {
		t.Errorf("docs/learn.md has %d blocks of output", blocks)
	}
}
