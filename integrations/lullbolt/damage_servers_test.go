//go:build servers

package lullbolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	lullbolt "github.com/lullgo/lull/integrations/lullbolt"
)

const (
	damageDir  = "LULLBOLT_TEST_DAMAGES"
	damageCase = "damage "
)

// No damage ends the process: many more damages, each of which a child of the process looks at.
func TestNoDamageEndsTheProcess(t *testing.T) {
	if dir := os.Getenv(damageDir); dir != "" {
		damagedChild(t, dir)
		return
	}
	n := 600
	if testing.Short() {
		n = 120
	}
	dir := t.TempDir()
	for kind, freelist := range map[string]bool{"": false, "freelist": true} {
		now, earlier := intact(t, freelist)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, kind+"now"), now, 0o600), os.WriteFile(filepath.Join(dir, kind+"earlier"), earlier, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for from := 0; from < n; {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestNoDamageEndsTheProcess$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s?%d-%d", damageDir, dir, from, n))
		out, err := cmd.CombinedOutput()
		last := -1
		for _, m := range regexp.MustCompile(`(?m)^`+damageCase+`(\d+): (.*)$`).FindAllSubmatch(out, -1) {
			last, _ = strconv.Atoi(string(m[1]))
			if string(m[2]) == "refused" {
				refused++
			}
		}
		switch {
		case last == -1:
			t.Fatalf("%v\n%s", err, out)
		case err != nil && !bytes.Contains(out, []byte("--- FAIL")):
			t.Errorf("seed %d ended the process: %v\n%.3000s", last, err, out[max(0, bytes.LastIndex(out, []byte(damageCase))):])
		case err != nil:
			t.Errorf("%s", out)
		}
		from = last + 1
	}
	t.Logf("%d of %d damages refused, the others in what is not in use", refused, n)
	if refused < n/3 {
		t.Errorf("%d of %d damages were refused: the test damages nothing", refused, n)
	}
}

// damagedChild makes the damages from-to. It prints each one that it begins, and how it ended.
func damagedChild(t *testing.T, dir string) {
	dir, span, _ := strings.Cut(dir, "?")
	var from, to uint64
	if _, err := fmt.Sscanf(span, "%d-%d", &from, &to); err != nil {
		t.Fatal(err)
	}
	for seed := from; seed < to; seed++ {
		kind := []string{"", "freelist"}[seed/12%2]
		now, err1 := os.ReadFile(filepath.Join(dir, kind+"now"))
		earlier, err2 := os.ReadFile(filepath.Join(dir, kind+"earlier"))
		b, what := damage(seed, now, earlier)
		path := filepath.Join(t.TempDir(), "damaged")
		if err := errors.Join(err1, err2, os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%d: begins\n", damageCase, seed)
		refused, wrong := outcomes(path)
		end := "fine"
		if refused {
			end = "refused"
		}
		fmt.Printf("%s%d: %s\n", damageCase, seed, end)
		if wrong != nil {
			t.Errorf("seed %d, %s: %v", seed, what, wrong)
		}
	}
}

// A file that is cut off while it is open causes a fault in mapped memory. It ends the store, not
// the process.
func TestFileIsCutOffWhileItIsOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no fault of the machine: Windows does not cut off a file that is mapped")
	}
	if path := os.Getenv(damageDir); path != "" {
		s, err := lullbolt.Open(path, lullbolt.Config{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 2*4096); err != nil {
			t.Fatal(err)
		}
		c, _, _ := remembered(1)
		_, err = s.Claim(context.Background(), c)
		_, err2 := s.Claim(context.Background(), request())
		err3 := s.Complete(context.Background(), c.Key, c.Token, nil, time.Hour)
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, lullbolt.ErrDamaged) {
				t.Errorf("%v, want ErrDamaged", err)
			}
		}
		s.Close()
		return
	}
	b, _ := intact(t, false)
	path := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := again(t, damageDir, path); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// again runs the test that calls it in another process, with one more variable.
func again(t *testing.T, name, value string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), name+"="+value)
	return cmd.CombinedOutput()
}
