//go:build servers

package lint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// The command of the action is one that lull lint takes, and what its inputs hold is no command.
func TestAction(t *testing.T) {
	data := must.Have(os.ReadFile("../../../../.github/actions/lint/action.yml"))
	_, script, ok := strings.Cut(string(data), "OUTPUT: ${{ inputs.output }}\n      run: |\n")
	if !ok || strings.Contains(script, "${{") {
		t.Fatalf("no script:\n%s", script)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash to run the action with")
	}
	t.Chdir(t.TempDir())
	// A program in place of lull prints its arguments as JSON.
	fake := "#!/bin/sh\nprintf '['; for a in \"$@\"; do printf '\"%s\",' \"$a\"; done; printf '0]'\n"
	for name, text := range map[string]string{"lull": fake, "a.yaml": "", "b.yaml": ""} {
		must.Succeed(os.WriteFile(name, []byte(text), 0o755))
	}
	here, _ := filepath.Abs(".")
	c := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", regexp.MustCompile(`(?m)^ {8}`).ReplaceAllString(script, ""))
	c.Env = append(os.Environ(), "RUNNER_TEMP="+here, "FILES=deploy *.yaml $(touch owned)", "THRESHOLD=error", "FORMAT=sarif", "OUTPUT=out.json")
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	written, err := os.ReadFile("out.json")
	var args []any
	if err == nil {
		err = json.Unmarshal(written, &args)
	}
	want := "[lint --threshold error --format sarif -- deploy *.yaml $(touch owned) 0]"
	if got := strings.ReplaceAll(strings.Trim(string(written), "[]"), `"`, ""); err != nil || "["+strings.ReplaceAll(got, ",", " ")+"]" != want {
		t.Errorf("%v: %s, want %s", err, written, want)
	}
	if _, err := os.Stat("owned"); err == nil {
		t.Error("an input was run")
	}
}
