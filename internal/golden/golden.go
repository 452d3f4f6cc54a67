// Package golden compares what a test gets with a file, and rewrites the file with -update.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// File fails t unless the file at path has the text got. Line ends of Windows count as those of
// other systems. With -update it writes the file first.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(string(want), "\r\n", "\n"); got != want {
		t.Errorf("%s differs (go test -update rewrites it). Got\n%s\nwant\n%s", path, got, want)
	}
}
