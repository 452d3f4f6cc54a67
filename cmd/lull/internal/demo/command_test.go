package demo

import (
	"strings"
	"testing"
)

func TestHelpNamesTheClients(t *testing.T) {
	_, help, _ := lullProgram(t.Context(), "demo", "--help")
	for _, name := range append(flagNames(stormClients), flagNames(tailClients)...) {
		if !strings.Contains(help, name) {
			t.Errorf("the help of demo does not name client %s", name)
		}
	}
}
