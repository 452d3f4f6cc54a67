//go:build servers

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// What is offered reaches bash, which takes --flag=value apart, and completes files and programs itself.
func TestCompletionInBash(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no bash here")
	}
	folder := t.TempDir()
	for _, name := range []string{"retry.yaml", "retry.json", "other.yaml"} {
		must.Succeed(os.WriteFile(filepath.Join(folder, name), nil, 0o644))
	}
	cases := []struct{ line, want string }{
		{"lint --format j", "json junit"},
		{"lint --format=j", "json junit"},
		{"lint --format=", "text json sarif github gitlab junit"},
		{"lint --off ", ""},
		{"lint ret", "retry.json retry.yaml"},
		{"convert -o ret", "retry.json retry.yaml"},
		{"simulate --policy none,go-r", "none,go-retryablehttp"},
		{"simulate --policy ret", "retry.json retry.yaml"},
		{"simulate --policy none,oth", "none,other.yaml"},
		{"simulate --policy=none,oth", "none,other.yaml"},
		{"exec -- cat ret", "retry.json retry.yaml"},
		{"exec -- printen", "printenv"},
	}
	_, script, _ := lullProgram(t.Context(), "completion", "bash")
	script += "complete -p lull >/dev/null || echo 'lull is not completed'\n"
	for _, c := range cases {
		words := strings.Split(strings.ReplaceAll(c.line, "=", " = "), " ")
		script += fmt.Sprintf("COMP_WORDS=(lull '%s'); COMP_CWORD=%d; _lull; echo \"${COMPREPLY[*]}\"\n", strings.Join(words, "' '"), len(words))
	}
	c := exec.CommandContext(t.Context(), "bash", "--norc", "-u")
	c.Dir, c.Stdin = folder, strings.NewReader(script)
	c.Env = append(os.Environ(), "PATH="+programFolder(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(got) != len(cases) {
		t.Fatalf("%v, %d lines for %d:\n%s", err, len(got), len(cases), out)
	}
	for i, c := range cases {
		check.Slices(t, slices.Compact(slices.Sorted(strings.FieldsSeq(got[i]))), slices.Sorted(strings.FieldsSeq(c.want)), "%q", c.line)
	}
}
