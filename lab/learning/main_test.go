package main

import (
	"os"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// The program lull is built once, in a folder of all tests.
func TestMain(m *testing.M) {
	options.folder = must.Have(os.MkdirTemp("", "lull-learning-"))
	code := m.Run()
	must.Succeed(os.RemoveAll(options.folder))
	os.Exit(code)
}
