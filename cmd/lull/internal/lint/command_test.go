package lint

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/lint"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
)

// lints runs lull lint.
func lints(t *testing.T, args ...string) (out, complaint string, code int) {
	t.Helper()
	return lintsInput(t, nil, args...)
}

// lintsInput is lints with standard input.
func lintsInput(t *testing.T, stdin io.Reader, args ...string) (out, complaint string, code int) {
	t.Helper()
	code, out, complaint = clitest.Run[Command](cli.Env{Context: t.Context(), Stdin: stdin}, "lint", args...)
	return out, complaint, code
}

// The output for each example is the file beside it. A bad example is named after the rule
// that it breaks, and all its findings are of that rule.
func TestLintExamples(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "..", "..", "docs", "examples", "policies"))
	files := must.Have(filepath.Glob("*/*.yaml"))
	slices.Sort(files)
	broken := map[string]bool{}
	for _, file := range files {
		name := filepath.ToSlash(file)
		out, _, code := lints(t, name, "--notes")
		golden.File(t, strings.TrimSuffix(file, ".yaml")+".txt", out)

		folder, id, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "/")
		js, _, again := lints(t, name, "--notes", "--format", "json")
		check.Equal(t, again, code, "%s: exit code as JSON, and as text", name)
		var report struct{ Findings []lint.Finding }
		must.Succeed(json.Unmarshal([]byte(js), &report))
		if folder == "good" {
			for _, f := range report.Findings {
				if f.Ignored == nil {
					t.Errorf("%s is a good example, and %s finds something", name, f.Rule)
				}
			}
			check.Equal(t, code, cli.OK, "%s: exit code", name)
			continue
		}
		id, variant, _ := strings.Cut(id, ".")
		broken[id] = true
		rule, err := lint.FindRule(id)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantCode := exitFindings
		switch {
		case id == "file-mistake" || variant == "refused":
			wantCode = exitWrong
		case rule.Severity < lint.Warning || variant == "note":
			wantCode = cli.OK
		}
		check.Equal(t, code, wantCode, "%s: exit code", name)
		if len(report.Findings) == 0 {
			t.Errorf("%s: nothing found", name)
		}
		for _, f := range report.Findings {
			check.Equal(t, f.Rule, id, "%s: what finds something, too: %s", name, f.Message)
		}
	}
	for _, r := range lint.Rules() {
		if !broken[r.ID] {
			t.Errorf("there is no bad example of %s", r.ID)
		}
	}
}

const lintFile = "dependencies:\n  stock: {backoff: {jitter: none}}\n"

func writeLint(t *testing.T, data string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	return clitest.Write(t, "retry.yaml", data)
}

// The exit codes 0, 1 and 2 are for scripts, and mean what the help states.
func TestLintExitCodes(t *testing.T) {
	file := writeLint(t, lintFile)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{file}, 1, "1 finding at or above warning"},
		{[]string{file, "--threshold", "note"}, 1, "1 finding at or above note"},
		{[]string{file, "--threshold", "Error"}, 0, ""},
		{[]string{file, "--threshold", "never"}, 0, ""},
		{[]string{file, "--off", "jitter-missing=one process"}, 0, ""},
		{[]string{file, "--off", "jitter-missing"}, 2, "RULE=REASON"},
		{[]string{file, "--off", "jitter-missing="}, 2, "RULE=REASON"},
		{[]string{file, "--off", "jitter=one process"}, 2, "did you mean jitter-missing?"},
		{[]string{file, "--off", "file-mistake=one process"}, 2, "cannot be ignored"},
		{[]string{file, "--format", "xml"}, 2, "text, json, sarif, github, gitlab or junit"},
		{[]string{file, "--threshold", "info", "--format", "xml"}, 2, "note, warning, error or never"},
		{nil, 2, "at least one file or directory"},
		{[]string{"missing.yaml", "absent.yaml", file}, 2, "absent.yaml"},
		{[]string{"."}, 1, "1 finding at or above warning"},
		{[]string{"*.yaml", "**/retry.yaml"}, 1, "1 finding at or above warning"},
		{[]string{"--threshold", "never", "--", file}, 0, ""},
		{[]string{"*.yml"}, 2, "*.yml matches no file"},
		{[]string{"[.yml"}, 2, "[.yml is no pattern"},
		{[]string{"./" + file, file}, 1, "1 finding at or above warning"},
		{[]string{"--explain", "jitter-missing"}, 0, ""},
		{[]string{"--explain", "jiter-missing"}, 2, "did you mean jitter-missing?"},
		{[]string{"--rules"}, 0, ""},
		{[]string{"--nonsense"}, 2, "--nonsense"},
		{[]string{"--help"}, 0, ""},
	} {
		_, complaint, code := lints(t, c.args...)
		if code != c.code || !strings.Contains(complaint, c.says) {
			t.Errorf("lint %q: exit code %d, %q; want %d, %q", c.args, code, complaint, c.code, c.says)
		}
	}
	clitest.Write(t, file, "dependencies: 7\n")
	for _, format := range []string{"text", "json", "sarif", "github", "gitlab", "junit"} {
		out, complaint, code := lints(t, file, "--format", format, "--threshold", "never")
		if code != 2 || !strings.Contains(complaint, "mistakes in retry.yaml") || !strings.Contains(out, "file-mistake") {
			t.Errorf("%s: exit code %d, %q\n%s", format, code, complaint, out)
		}
	}
}

// An error of printing is not a finding.
func TestLintThatCannotPrint(t *testing.T) {
	file := writeLint(t, lintFile)
	for _, f := range []Command{
		{Files: []string{file}, Format: "text", Threshold: "never"}, {Files: []string{file}, Format: "sarif", Threshold: "warning"},
		{Explain: "jitter-missing"}, {Rules: true},
	} {
		closed, full := io.Pipe()
		closed.Close()
		env := cli.Env{Context: t.Context(), Stdout: full, Stderr: io.Discard}
		if err := f.Run(env); err == nil || cli.Exit(env, err) != exitWrong {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestLintOfStandardInput(t *testing.T) {
	out, _, code := lintsInput(t, strings.NewReader("\ufeffbackoff: {jitter: none}\n"), "-")
	if code != exitFindings || !strings.HasPrefix(out, "stdin:1:19: warning: calls to stdin that failed together") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Each output is valid in the format of its name, and the documents are complete.
func TestLintFormats(t *testing.T) {
	file := writeLint(t, lintFile)
	for format, begins := range map[string]string{
		"text": "retry.yaml:2:29: warning: ", "github": "::warning file=retry.yaml,line=2,col=29,title=jitter-missing::", "json": "{\n", "sarif": "{\n",
		"gitlab": "[\n", "junit": "<?xml ",
	} {
		out, _, _ := lints(t, file, "--format", format)
		if !strings.HasPrefix(out, begins) {
			t.Errorf("%s: %s", format, out)
		}
		if len(begins) == 2 && !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON", format)
		}
	}
}

func TestLintExplainsEveryRule(t *testing.T) {
	list, _, _ := lints(t, "--rules")
	for _, r := range lint.Rules() {
		out, _, code := lints(t, "--explain", r.ID)
		if code != 0 || !strings.Contains(out, r.Sources[0].Title) || !strings.Contains(out, "Bad:") || !strings.Contains(out, "Good:") {
			t.Errorf("%s: exit code %d: %s", r.ID, code, out)
		}
		if !strings.Contains(list, r.ID+" ") {
			t.Errorf("%s is not listed", r.ID)
		}
	}
	clitest.Width(t, list, 100)
}

// Directories are read with all that is below them, but for folders that are hidden or other
// people's code. What has no policies in it is skipped.
func TestLintOfDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"deploy/retry.yaml":         lintFile,
		"deploy/eu/retry.yml":       lintFile,
		"deploy/eu/readme.md":       lintFile,
		"deploy/web.json":           `{"services": {"web": {"image": "nginx"}}}`,
		"deploy/.git/retry.yaml":    lintFile,
		"node_modules/x/retry.yaml": lintFile,
		"chart/templates/a.yaml":    "{{ if .Values.on }}\na: {{ .Values.b }}\n{{ end }}\n",
	} {
		clitest.Write(t, name, text)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"."}, "chart/templates/a.yaml- deploy/eu/retry.yml deploy/retry.yaml deploy/web.json-"},
		{[]string{"deploy/"}, "deploy/eu/retry.yml deploy/retry.yaml deploy/web.json-"},
		{[]string{"deploy/retry.yaml", "./deploy"}, "deploy/retry.yaml deploy/eu/retry.yml deploy/web.json-"},
		{[]string{"deploy/*.yaml"}, "deploy/retry.yaml"},
		{[]string{"**/*.yml"}, "deploy/eu/retry.yml"},
		{[]string{"deploy/**/retry.y*ml"}, "deploy/eu/retry.yml deploy/retry.yaml"},
		{[]string{"deploy/.git/*.yaml"}, "deploy/.git/retry.yaml"},
		{[]string{"**/.git/*"}, "deploy/.git/retry.yaml"},
	} {
		out, complaint, code := lints(t, append(c.args, "--format", "json")...)
		var report struct {
			Files   []string
			Skipped []lint.Skip
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitFindings {
			t.Fatalf("%v: exit code %d, %v %s", c.args, code, err, complaint)
		}
		got := report.Files
		for _, s := range report.Skipped {
			got = append(got, s.File+"-")
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		check.Slices(t, got, want, "%v", c.args)
	}
}

// --fix changes the file, keeps its permissions and comments, and leaves no other file behind.
func TestLintFix(t *testing.T) {
	file := writeLint(t, "dependencies:\n  stock: {backoff: {jitter: none}} # asked for often\n  bad: {attempts: 3, attempt_timeout: none}\n")
	out, complaint, code := lints(t, file, "--fix", "--threshold", "warning")
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "  stock: {backoff: {jitter: full}} # asked for often\n") || !strings.Contains(complaint, "fixed in retry.yaml") {
		t.Errorf("exit code %d, %q, %s\n%s", code, complaint, out, data)
	}
	info, err := os.Stat(file)
	if entries, _ := os.ReadDir("."); err != nil || info.Mode().Perm() != 0o600 || len(entries) != 1 {
		t.Errorf("%v, %d files", info.Mode(), len(entries))
	}
	again := string(data)
	lints(t, file, "--fix")
	if data, _ := os.ReadFile(file); string(data) != again {
		t.Errorf("a second run changes it:\n%s", data)
	}
	if _, complaint, code := lintsInput(t, strings.NewReader(lintFile), "-", "--fix"); code != exitWrong || !strings.Contains(complaint, "--fix is given for standard input: want files") {
		t.Errorf("exit code %d, %q", code, complaint)
	}
}

// Notes are counted, and not shown, unless somebody asks for them.
func TestNotesAreShownWhenAskedFor(t *testing.T) {
	file := writeLint(t, "dependencies:\n  stock: {breaker: {metrics_only: true}}\n")
	for _, c := range []struct {
		args  []string
		shown bool
		code  int
	}{{nil, false, cli.OK}, {[]string{"--notes"}, true, cli.OK}, {[]string{"--threshold", "note"}, true, exitFindings}, {[]string{"--threshold", "never"}, false, cli.OK}, {[]string{"--format", "json"}, false, cli.OK}, {[]string{"--format", "json", "--notes"}, true, cli.OK}} {
		out, _, code := lints(t, append([]string{file}, c.args...)...)
		if strings.Contains(out, "only counts: it refuses no call") != c.shown || code != c.code {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out)
		}
		if len(c.args) == 0 && out != "nothing found in 1 file; 1 note (--notes shows it)\n" {
			t.Errorf("%q", out)
		}
	}
}
