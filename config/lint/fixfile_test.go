package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Fixes are made in the text: comments and layout stay.
func TestFixFileKeepsCommentsAndLayout(t *testing.T) {
	const before = `# the policies of the shop
dependencies:
  stock: # asked for each page
    backoff: {jitter: none} # a relic
    attempts:   3

  maps: {attempts: 3, backoff: {jitter: none}} # keep

  partner:
    # lint:ignore jitter-missing one process calls it
    backoff: {jitter: none}
`
	data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(before)}, Options{}, Warning)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(strings.Replace(before, "{jitter: none} # a relic", "{jitter: full} # a relic", 1), "3, backoff: {jitter: none}}", "3, backoff: {jitter: full}}", 1)
	if string(data) != want || len(fixed) != 2 {
		t.Errorf("%d fixed:\n%s\nwant\n%s", len(fixed), data, want)
	}
}

// Of the bad examples, what is fixed is gone, nothing new is found, every line that was a comment is
// still there, and a second run changes nothing.
func TestFixFileFixesTheExamples(t *testing.T) {
	names, err := filepath.Glob("../../examples/policies/bad/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	total := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before := checked(t, File{Name: "x.yaml", Data: text})
		data, fixed, err := FixFile(File{Name: "x.yaml", Data: text}, Options{}, Note)
		if err != nil {
			t.Fatal(err)
		}
		total += len(fixed)
		after := checked(t, File{Name: "x.yaml", Data: data})
		if after.Count(Note) != before.Count(Note)-len(fixed) && len(fixed) > 0 && after.Count(Note) >= before.Count(Note) {
			t.Errorf("%s: %d findings, %d fixed, and then %d:\n%s", name, before.Count(Note), len(fixed), after.Count(Note), data)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.Contains(string(data), strings.TrimSpace(line)) {
				t.Errorf("%s: the comment %q is gone", name, line)
			}
		}
		if again, more, _ := FixFile(File{Name: "x.yaml", Data: data}, Options{}, Note); len(more) > 0 || string(again) != string(data) {
			t.Errorf("%s: a second run fixes %d", name, len(more))
		}
		if len(fixed) == 0 && string(data) != string(text) {
			t.Errorf("%s: nothing is fixed, and the text has changed", name)
		}
	}
	if total < 10 {
		t.Errorf("only %d findings were fixed", total)
	}
}

// What is not a policy file of its own is left alone.
func TestFixFileLeavesOthersAlone(t *testing.T) {
	for _, text := range []string{istioRoute, "attempts: x\n", "", "dependencies: {a: {backoff: {jitter: none}}}\n---\nattempts: 3\n"} {
		if data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(text)}, Options{}, Note); err != nil || len(fixed) > 0 || string(data) != text {
			t.Errorf("%q: %v, %d fixed: %q", text, err, len(fixed), data)
		}
	}
}

// Any file can be fixed: what comes of it can be read, or nothing has changed.
func FuzzFixFile(f *testing.F) {
	for _, r := range Rules() {
		f.Add([]byte(r.Bad))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data, fixed, err := FixFile(File{Name: "x.yaml", Data: text}, Options{}, Note)
		if err != nil {
			t.Fatal(err)
		}
		if len(fixed) == 0 && string(data) != string(text) {
			t.Fatalf("nothing is fixed, and %q is %q", text, data)
		}
		if r, _ := Check([]File{{Name: "x.yaml", Data: data}}, Options{}); len(fixed) > 0 && len(r.Unreadable) > 0 {
			t.Fatalf("%q cannot be read", data)
		}
	})
}
