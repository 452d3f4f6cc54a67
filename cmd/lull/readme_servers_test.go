//go:build servers

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
)

// The lines of the README for programs in Python give the answer of a service that fails every second request.
func TestReadmeProxy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the lines are for a shell of Unix")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		dbserver.Need(t, dbserver.ErrAbsent)
	}
	lines := regexp.MustCompile("(?s)```console\n(\\$ go run ./cmd/lull proxy .*?)```").FindStringSubmatch(string(must.Have(os.ReadFile("../../README.md"))))
	if lines == nil {
		t.Fatal("README.md has no lines for lull proxy")
	}
	var requests atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "order at "+r.URL.Path)
	}))
	defer service.Close()
	free := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	door := free.Addr().String()
	free.Close()
	script := strings.NewReplacer(
		"$ go run ./cmd/lull", programFolder(t)+"/lull", "\n$ ", "\n",
		"--to https://api.example.com &", "--to "+service.URL+" --listen "+door+" & trap 'kill $!' EXIT; until curl -so /dev/null "+door+"/ready; do sleep 0.1; done; ",
		"127.0.0.1:9001", door,
	).Replace(lines[1])
	out, err := exec.CommandContext(t.Context(), "bash", "-euc", script).Output()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "order at /orders/7'") {
		t.Errorf("%s\nprinted %q: %v", script, out, err)
	}
}
