package convert

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// converts runs lull convert.
func converts(t *testing.T, args ...string) (out, report string, code int) {
	t.Helper()
	return convertsInput(t, nil, args...)
}

// convertsInput is converts with standard input.
func convertsInput(t *testing.T, stdin io.Reader, args ...string) (out, report string, code int) {
	t.Helper()
	code, out, report = clitest.Run[Command](cli.Env{Context: t.Context(), Stdin: stdin}, "convert", args...)
	return out, report, code
}

// written makes a file with that text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	return clitest.Write(t, filepath.Join(t.TempDir(), name), text)
}

const (
	someRetryPolicy = `{"retry_on": "reset", "num_retries": 2}`
	somePolicies    = "dependencies:\n  api: {attempts: 2}\n  db: {attempts: 1, breaker: {off: true}}\n"
	// gRPC has a form for everything in it.
	sayable = "attempts: 1\nattempt_timeout: none\nbreaker: {off: true}\n"
)

func TestConvert(t *testing.T) {
	in := written(t, "route.json", someRetryPolicy)
	out, report, code := converts(t, in)
	if code != cli.OK || !strings.HasPrefix(out, "dependencies:\n  route:\n    attempts: 3\n") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, report)
	}
	if !strings.Contains(report, in+":1:2: changed: retry_on is \"reset\": ") || !strings.HasSuffix(report, "0 lost, 3 changed, 2 assumed, 0 aside\n") {
		t.Errorf("reported\n%s", report)
	}
	if out, report, code := converts(t, in, "--quiet", "--to", "ISTIO"); code != cli.OK || report != "" || !strings.Contains(out, "kind: VirtualService") {
		t.Errorf("quietly: exit code %d, printed\n%s%s", code, out, report)
	}
	if out, _, code := converts(t, in, "--json"); code != cli.OK || !json.Valid([]byte(out)) {
		t.Errorf("as JSON: exit code %d, printed\n%s", code, out)
	}
	if out, _, code := converts(t, in, "--json", "--to=envoy", "--base=lull"); code != cli.OK || !json.Valid([]byte(out)) || !strings.Contains(out, "retry_budget") {
		t.Errorf("Envoy as JSON: exit code %d, printed\n%s", code, out)
	}
	_, report, code = converts(t, in, "--report-json")
	for line := range strings.Lines(report) {
		var e convert.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Path == "" || e.Why == "" || e.Line == 0 || e.To != convert.Lull {
			t.Errorf("the report has %q: %v", line, err)
		}
	}
	if code != cli.OK || strings.Count(report, "\n") != 5 {
		t.Errorf("exit code %d, reported\n%s", code, report)
	}
}

func TestTakesStandardInput(t *testing.T) {
	out, report, code := convertsInput(t, strings.NewReader(someRetryPolicy), "-")
	if code != cli.OK || !strings.Contains(out, "attempts: 3") || !strings.Contains(report, "standard input:1:2: changed") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, report)
	}
}

// endless is a reader of endless blanks. It counts them.
type endless struct{ given int }

func (e *endless) Read(b []byte) (int, error) {
	e.given += len(b)
	return copy(b, strings.Repeat(" ", len(b))), nil
}

func TestReadsNoMoreThanItTakes(t *testing.T) {
	in := &endless{}
	_, complaint, code := convertsInput(t, in, "-")
	if code != cli.Misused || !strings.Contains(complaint, "standard input:1:1: a file of more than 16 MiB") || in.given > 64<<20 {
		t.Errorf("exit code %d, complained %q, read %d", code, complaint, in.given)
	}
}

// The losses of another dependency do not matter.
func TestOneStrictly(t *testing.T) {
	in := written(t, "routes.json", `{"virtual_hosts": [{"name": "v", "routes": [
		{"route": {"cluster": "a", "timeout": "1s"}}, {"route": {"cluster": "b", "timeout": "2s", "idle_timeout": "1s"}}]}]}`)
	if out, report, code := converts(t, in, "--strict", "--dependency=a"); code != cli.OK || !strings.Contains(out, "deadline: 1s") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, report)
	}
	if _, report, code := converts(t, in, "--strict", "--dependency=b"); code != cli.Failed || !strings.Contains(report, "1 field would be lost") {
		t.Errorf("exit code %d, reported\n%s", code, report)
	}
}

func TestStrictly(t *testing.T) {
	target := filepath.Join(t.TempDir(), "out.json")
	out, report, code := converts(t, written(t, "p.yaml", somePolicies), "--to=grpc", "--dependency=api", "--strict", "-o", target)
	if code != cli.Failed || out != "" || !strings.Contains(report, "nothing is written: ") || !strings.Contains(report, "lost: dependencies.api.breaker: ") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, report)
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	out, report, code = converts(t, written(t, "api.yaml", sayable), "--to=grpc", "--strict")
	if code != cli.OK || !strings.Contains(out, `"timeout": "30s"`) {
		t.Errorf("without a loss: exit code %d, printed\n%s%s", code, out, report)
	}
}

func TestWritesWholeFiles(t *testing.T) {
	in := written(t, "route.json", someRetryPolicy)
	dir := t.TempDir()
	target := filepath.Join(dir, "out.yaml")
	must.Succeed(os.WriteFile(target, []byte("what was there"), 0o640))
	out, _, code := converts(t, in, "--output", target)
	text, err := os.ReadFile(target)
	if code != cli.OK || out != "" || err != nil || !strings.HasPrefix(string(text), "dependencies:") {
		t.Errorf("exit code %d, printed %q, wrote %q, %v", code, out, text, err)
	}
	if info, err := os.Stat(target); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	// If the input is wrong, the old file stays as it is.
	bad := written(t, "bad.json", `{"num_retries": -1, "retry_on": 5}`)
	_, complaint, code := converts(t, bad, "--output", target)
	again, _ := os.ReadFile(target)
	if code != cli.Misused || string(again) != string(text) || !strings.Contains(complaint, "bad.json:1:17: num_retries is -1: want a whole number from 0") || !strings.Contains(complaint, "retry_on is 5") {
		t.Errorf("exit code %d, complained %q, the file is %q", code, complaint, again)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%d files are left", len(names))
	}
	// A new file has the permissions that the user's files have.
	fresh, other := filepath.Join(dir, "fresh.yaml"), filepath.Join(dir, "other")
	if _, _, code := converts(t, in, "-o", fresh); code != cli.OK {
		t.Errorf("a new file: exit code %d", code)
	}
	must.Succeed(os.WriteFile(other, nil, 0o666))
	a, errA := os.Stat(fresh)
	b, errB := os.Stat(other)
	if errA != nil || errB != nil || a.Mode() != b.Mode() {
		t.Errorf("permissions of a new file: %v, %v and %v, %v", a, errA, b, errB)
	}
	if _, complaint, code := converts(t, in, "-o", filepath.Join(dir, "no", "such", "folder")); code != cli.Failed || complaint == "" {
		t.Errorf("no folder: exit code %d, complained %q", code, complaint)
	}
	if runtime.GOOS != "windows" {
		link := filepath.Join(dir, "link")
		must.Succeed(os.Symlink(target, link))
		converts(t, in, "-o", link, "--to=istio")
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is %v, %v", info.Mode(), err)
		}
		if text, _ := os.ReadFile(target); !strings.Contains(string(text), "VirtualService") {
			t.Errorf("what the link leads to is %q", text)
		}
	}
}

func TestReportsWhatIsAllowed(t *testing.T) {
	in, policies := written(t, "route.json", someRetryPolicy), written(t, "p.yaml", somePolicies)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.Misused, "FILE is missing: want at least one file, or - for standard input"},
		{[]string{in, "--to=xml"}, cli.Misused, `--to is "xml": want ` + convert.FormatNames()},
		{[]string{in, "--from=xml", "--base=nobody"}, cli.Misused, `--from is "xml": want ` + convert.FormatNames()},
		{[]string{in, "--from=xml", "--base=nobody"}, cli.Misused, `--base is "nobody": want lull, or a preset: internal-service`},
		{[]string{in, "--dependency=nobody"}, cli.Misused, `--dependency is "nobody": want one of those that there are: route`},
		{[]string{policies}, cli.Misused, "--to is missing: want the format that policies become"},
		{[]string{policies, "--to=grpc"}, cli.Misused, "--dependency is not given: want the one to be written"},
		{[]string{"-", "-"}, cli.Misused, `FILE is "-" twice: want standard input once`},
		{[]string{in + ".none", in + ".neither"}, cli.Failed, "route.json.neither"},
		{[]string{in, "--from=grpc"}, cli.Failed, "nothing that says how calls are made"},
		{[]string{in, "--from=istio"}, cli.Failed, "nothing that says how calls are made"},
	} {
		_, complaint, code := converts(t, c.args...)
		if code != c.code || !strings.Contains(complaint, c.want) {
			t.Errorf("%v: exit code %d, complained %q, want %d and %q", c.args, code, complaint, c.code, c.want)
		}
	}
}

func TestListsFormats(t *testing.T) {
	out, _, code := converts(t, "--list")
	for _, f := range convert.Formats() {
		if !strings.Contains(out, f.String()+" ") || !strings.Contains(out, f.Title()) {
			t.Errorf("%v is not in\n%s", f, out)
		}
	}
	check.Equal(t, code, cli.OK, "exit code")
	out, _, _ = converts(t, "--list", "--json")
	var all []struct{ Name, Title string }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(convert.Formats()) {
		t.Errorf("%s: %v", out, err)
	}
}

// The text of a file does not control the terminal.
func TestPrintsNoControlCharacters(t *testing.T) {
	in := written(t, "x.json", `{"retry_on": "reset,\u001b[2J", "num_retries": 1}`)
	if _, report, _ := converts(t, in); strings.ContainsAny(report, "\x1b") || !strings.Contains(report, "lost: retry_on") {
		t.Errorf("reported %q", report)
	}
}

// A directory is converted as a whole. What is not for lull in it is listed, and is no error; a file
// that was named is.
func TestConvertOfDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"deploy/route.yaml":          "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: stock}}], timeout: 3s}]}\n",
		"deploy/bad.yaml":            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], timeout: ${T}}]}\n",
		"deploy/chart/t.yaml":        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: b}}], timeout: '{{ .Values.t }}'}]}\n",
		"deploy/openapi.json":        `{"openapi": "3.1.0", "paths": {}}`,
		"deploy/app/config.yaml":     "apiVersion: v1\nkind: ConfigMap\ndata:\n  application.yml: |\n    resilience4j.retry.instances: {pay: {maxAttempts: 7}}\n",
		"deploy/node_modules/x.yaml": "attempts: [",
	} {
		clitest.Write(t, name, text)
	}
	out, report, code := converts(t, "deploy")
	if code != cli.OK || !strings.Contains(out, "stock:") || !strings.Contains(out, "pay:") {
		t.Errorf("exit code %d\n%s%s", code, out, report)
	}
	for _, says := range []string{"deploy/bad.yaml: aside: (all): it cannot be read: line 3: ", "deploy/chart/t.yaml: aside: (all): it is a template", "deploy/openapi.json: aside: (all): nothing in it"} {
		if !strings.Contains(report, says) {
			t.Errorf("%q is not in\n%s", says, report)
		}
	}
	if _, complaint, code := converts(t, "deploy/*.yaml", "--strict"); code != cli.Failed || !strings.Contains(complaint, "would be lost or changed") {
		t.Errorf("exit code %d, %s", code, complaint) // for what is read
	}
	if _, complaint, code := converts(t, "deploy/bad.yaml"); code != cli.Misused || !strings.HasPrefix(complaint, "lull: deploy/bad.yaml:3:") {
		t.Errorf("exit code %d, %s", code, complaint)
	}
	if _, report, code := converts(t, "deploy/chart/t.yaml"); code != cli.Failed || !strings.Contains(report, "lost: (all): it is a template") {
		t.Errorf("exit code %d, %s", code, report)
	}
}
