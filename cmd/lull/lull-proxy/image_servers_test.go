//go:build servers

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/ports"
)

// build builds the program as the Dockerfile does, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	const root = "../../.."
	command := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 (go build .*) -o /out/ \./cmd/lull/lull-proxy$`).FindStringSubmatch(string(must.Have(os.ReadFile(root + "/Dockerfile"))))
	if command == nil {
		t.Fatal("the Dockerfile does not build the program in the way that this test knows")
	}
	path := filepath.Join(t.TempDir(), "lull-proxy")
	words := append(strings.Fields(command[1]), "-o", path, "./cmd/lull/lull-proxy")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// What is in the image, and its probes.
func TestImage(t *testing.T) {
	path := build(t)

	size := must.Have(os.Stat(path)).Size()
	const most = 19_700_000 // with the certificates and the license, less than 20 MB
	t.Logf("%.1f MB", float64(size)/1e6)
	if size > most {
		t.Errorf("the program has %d bytes; want at most %d (whatever imports text/template makes it half as large again)", size, most)
	}

	var door, admin int
	must.Succeed(ports.Free(&door, &admin))
	url := fmt.Sprintf("http://127.0.0.1:%d/", admin)
	if out, err := exec.Command(path, "--probe", url+"ready").CombinedOutput(); err == nil {
		t.Errorf("nobody is there, and a probe succeeds: %s", out)
	}
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	must.Succeed(os.WriteFile(file, fmt.Appendf(nil, "upstreams: {a: {listen: 127.0.0.1:%d, to: [http://127.0.0.1:9]}}\nadmin: {listen: 127.0.0.1:%d}\n", door, admin), 0o600))
	c := must.Have(child.Start(exec.Command(path, file)))
	defer c.Kill()
	must.Succeed(c.Await(func() error { return exec.Command(path, "--probe", url+"ready").Run() }, 50*time.Millisecond, pace.Stretch(30*time.Second)))
	for page, want := range map[string]bool{"health": true, "nothing": false} {
		if out, err := exec.Command(path, "--probe", url+page).CombinedOutput(); (err == nil) != want {
			t.Errorf("a probe of %s: %v %s", page, err, out)
		}
	}
}
