//go:build unix

package lint

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// What is in a folder is read, or an error says that it was not: links to files and folders, links that lead nowhere,
// names of data that are no files, and a folder with nothing to read.
func TestRule24AllOfAFolderIsRead(t *testing.T) {
	file := writeLint(t, lintFile)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"empty", "other", "shared/deep", "linked", "alone", "round", "broken", "dotted", "pipe"} {
		ok(os.MkdirAll(folder, 0o700))
	}
	ok(os.WriteFile("other/README.md", nil, 0o600))
	ok(os.Rename(file, "shared/deep/"+file))
	ok(os.Symlink("../shared", "linked/policies"))
	ok(os.Symlink("shared", "link"))
	ok(os.Symlink("../shared/deep/"+file, "alone/"+file))
	ok(os.Symlink("..", "shared/deep/up"))
	ok(os.Symlink(".", "round/round"))
	ok(os.Symlink("nowhere.yaml", "broken/policy.yaml"))
	ok(os.Symlink("nowhere.txt", "broken/notes.txt"))
	ok(os.Symlink("nowhere", "broken/current"))
	ok(os.Symlink("nowhere", "dotted/.current.yaml"))
	ok(syscall.Mkfifo("pipe/policy.yaml", 0o600))
	for _, c := range []struct {
		argument string
		code     int
		says     string
	}{
		{"shared", 1, "1 finding"},
		{"linked", 1, "1 finding"},
		{"linked/policies", 1, "1 finding"},
		{"link", 1, "1 finding"},
		{"link/**/*.yaml", 1, "1 finding"},
		{"linked/**/*.yaml", 1, "1 finding"},
		{"alone", 1, "1 finding"},
		{"round", 2, "round has no file of YAML or JSON"},
		{"empty", 2, "empty has no file of YAML or JSON"},
		{"other", 2, "other has no file of YAML or JSON"},
		{"broken", 2, "broken/policy.yaml cannot be read: no such file"},
		{"**/*.yaml", 2, "broken/policy.yaml cannot be read: no such file"},
		{"pipe", 2, "pipe/policy.yaml cannot be read: it is no file"},
		{".", 2, "pipe/policy.yaml cannot be read: it is no file"},
	} {
		out, complaint, code := lints(t, c.argument)
		if code != c.code || !strings.Contains(complaint, c.says) || code == 1 && strings.Count(out, "jitter-missing]") != 1 {
			t.Errorf("lint %s: exit code %d, %q; want %d, %q\n%s", c.argument, code, complaint, c.code, c.says, out)
		}
	}
}
