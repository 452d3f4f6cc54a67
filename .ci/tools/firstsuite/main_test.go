package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/ci/internal/tool"
)

// Each case is the body of a file; a line that must be found ends with "// found".
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct{ helper, test string }{
		"sleep": {test: `
func TestX(t *testing.T) {
	time.Sleep(1) // found
	synctest.Test(t, func(t *testing.T) { time.Sleep(1) })
	<-time.After(2 * time.Minute)
	<-time.After(59 * time.Second) // found
}
func BenchmarkX(b *testing.B) { time.Sleep(1) }
func ExampleSilent() { time.Sleep(1) }
func ExampleLoud() {
	time.Sleep(1) // found
	// Output: x
}`},
		"comparison": {test: `
func TestX(t *testing.T) {
	start := time.Now()
	_ = time.Now().After(start) // found
	_ = start.Before(time.Now()) // found
	_ = time.Since(start) // found
}`},
		"by a helper": {test: `
func wait() { time.Sleep(1) }
func TestGood(t *testing.T) { synctest.Test(t, func(t *testing.T) { wait() }) }
`},
		"by a helper outside of a bubble": {test: `
func wait() { time.Sleep(1) } // found
func TestGood(t *testing.T) { synctest.Test(t, func(t *testing.T) { wait() }) }
func TestBad(t *testing.T) { between() }
func between() { f := wait; f() }
`},
		"by a method": {test: `
type x struct{}
func (x) wait() { time.Sleep(1) } // found
func TestBad(t *testing.T) { x{}.wait() }
`},
		"a helper that makes bubbles": {test: `
func bubble(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }
func more(t *testing.T, f func()) { bubble(t, f) }
func TestGood(t *testing.T) { more(t, func() { time.Sleep(1) }) }
func TestLocal(t *testing.T) {
	wait := func() { time.Sleep(1) }
	more(t, wait)
	inside := func(f func()) { synctest.Test(t, func(t *testing.T) { f() }) }
	inside(func() { time.Sleep(1) })
}
`},
		"a table": {test: `
func TestGood(t *testing.T) {
	for _, f := range []func(){func() { time.Sleep(1) }} {
		synctest.Test(t, func(t *testing.T) { f() })
	}
}
func TestBad(t *testing.T) {
	for _, f := range []func(){func() { time.Sleep(1) }} { // found
		f()
	}
}`},
		"outside, in a bubble too": {test: `
func TestX(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net.Listen("tcp", "") // found
		exec.Command("x") // found
		var _ net.Dialer // found
		_ = os.Getenv("CI") // found
		_ = os.Getenv("HOME")
	})
}`},
		"exceptions": {test: `
func TestX(t *testing.T) {
	time.Sleep(1) //clock: the reason
	//clock: on another line
	time.Sleep(1) // found
}
func TestAll(t *testing.T) { //clock: the reason
	time.Sleep(1)
	exec.Command("x") // found
}
func wait() {
	time.Sleep(1)
	synctest.Wait()
}
func TestWaits(t *testing.T) {
	wait()
}`},
		"in a package made for tests": {helper: `
func Wait() { time.Sleep(1) }
func Start() { exec.Command("x") } // found
func Other() { exec.Command("x") }
func init() { _ = testing.Verbose }
`, test: `
func TestX(t *testing.T) { helper.Wait(); helper.Start() }
`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var files []file
			want := map[string]bool{}
			for base, body := range map[string]string{"helper.go": c.helper, "x_test.go": c.test} {
				text := "package x\nimport (\"net\"; \"os\"; \"os/exec\"; \"testing\"; \"testing/synctest\"; \"time\"; \"example.test/helper\")\n" + body
				path := filepath.Join(dir, base)
				tool.WriteFile(path, text)
				pkg := map[string]string{"helper.go": "example.test/helper", "x_test.go": "example.test/x"}[base]
				files = append(files, file{path, pkg})
				for i, line := range strings.Split(text, "\n") {
					if strings.HasSuffix(line, "// found") {
						want[place(base, i+1)] = true
					}
				}
			}
			for _, f := range check(files) {
				at := place(filepath.Base(f.pos.Filename), f.pos.Line)
				if f.reason == "" && !want[at] {
					t.Errorf("found %v", f)
				}
				if f.reason == "" {
					delete(want, at)
				}
			}
			for at := range want {
				t.Errorf("not found: line %s", at)
			}
		})
	}
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

func TestList(t *testing.T) {
	files := list(strings.NewReader(`{"ImportPath":"p","Dir":"/d","TestGoFiles":["a_test.go"],"XTestGoFiles":["b_test.go"]}`))
	if !slices.Equal(files, []file{{"/d/a_test.go", "p"}, {"/d/b_test.go", "p_test"}}) {
		t.Errorf("%v", files)
	}
	defer func() {
		if recover() == nil {
			t.Error("no error for something else")
		}
	}()
	list(strings.NewReader(`{"ImportPath": 1}`))
}
