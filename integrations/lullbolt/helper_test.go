package lullbolt_test

import (
	"os"
	"os/exec"
	"testing"
)

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
