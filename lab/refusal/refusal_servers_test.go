//go:build servers && linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// TestMain lets the command run itself, as it does for the server of net/http.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every server that is installed answers every request on every kind of connections, and those that are not are named.
func TestEveryServer(t *testing.T) {
	var out strings.Builder
	must.Succeed(run(t.Context(), 1, tick, "", &out))
	_, missing, _ := strings.Cut(out.String(), "Not measured: ")
	for _, d := range servers {
		rows := 0
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "| "+d.name+" |") {
				rows++
			}
		}
		if absent := strings.Contains(missing, d.name); rows < len(ways)-1 && !absent || rows > 0 && absent || d.program == "" && absent {
			t.Errorf("%s: %d rows, in\n%s", d.name, rows, out.String())
		}
	}
}
