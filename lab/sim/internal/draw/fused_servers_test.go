//go:build servers

package draw

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Compiled for a machine that has them, the simulator's arithmetic has no
// instruction that multiplies and adds with one rounding.
func TestNothingIsFused(t *testing.T) {
	fused := regexp.MustCompile(`(?m)^.*\((\S+)\)\s+(FN?M(?:ADD|SUB)D)\s.*$`)
	assembly := func(pkg string) []byte {
		c := exec.Command("go", "build", "-gcflags=-S", pkg)
		c.Env = append(c.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
		return out
	}
	for _, pkg := range []string{".", "../../../internal/interval", "../latency"} {
		// The sources are opened so that go test knows that the result depends on
		// them: fused or not, for most machines the test is the same program.
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", pkg, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
		out := assembly(pkg)
		if !bytes.Contains(out, []byte("TEXT")) {
			t.Fatalf("no assembly for %s:\n%s", pkg, out)
		}
		for _, m := range fused.FindAllSubmatch(out, -1) {
			t.Errorf("%s: %s", m[1], m[2])
		}
	}
	// The test itself can fail: this package of the standard library fuses.
	if !fused.Match(assembly("math/cmplx")) {
		t.Error("found nothing fused in math/cmplx either")
	}
}
