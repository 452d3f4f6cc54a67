// Package clitest runs commands in tests, and checks what they print.
package clitest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// Run runs commands as the program does, and returns what it printed. The outputs of env
// are replaced; without Getenv the process has no variables.
func Run(env cli.Env, commands any, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env.Stdout, env.Stderr = &out, &errs
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	code = cli.Run(env, commands, args)
	return code, out.String(), errs.String()
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
