// Package clitest runs commands in tests, and checks what they print.
package clitest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// Run runs a command of that name and returns what it printed. Without Getenv in env the process has no variables.
func Run[C any](env cli.Env, name string, args ...string) (code int, stdout, stderr string) {
	if len(args) == 0 || args[0] != "help" {
		args = append([]string{name}, args...)
	}
	commands := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Command", Type: reflect.TypeFor[C](), Tag: reflect.StructTag(fmt.Sprintf(`cmd:"" name:"%s"`, name))},
	})).Interface()
	var out, errs bytes.Buffer
	env.Stdout, env.Stderr = &out, &errs
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	code = cli.Run(env, commands, args)
	return code, out.String(), errs.String()
}

// Write writes a file, with its folders, and returns its name.
func Write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Width checks that every line fits, escape sequences not counted.
func Width(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		n, escaped := 0, false
		for _, r := range strings.TrimSuffix(line, "\n") {
			switch {
			case r == '\x1b':
				escaped = true
			case escaped:
				escaped = r == '[' || r == ';' || r >= '0' && r <= '9'
			default:
				n++
			}
		}
		if n > columns {
			t.Errorf("%d columns, want at most %d: %s", n, columns, line)
		}
	}
}
