//go:build servers

package probe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
)

// refusing refuses GETs, and takes POSTs with a body and an Authorization.
func refusing(t *testing.T) (url string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "-1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestCard(t *testing.T) {
	url, requests := refusing(t)
	if code, _, errs := run(t, url); code != cli.Misused || !strings.HasPrefix(errs, "lull: --i-own-this is missing") || requests.Load() != 0 {
		t.Errorf("without the confirmation: exit code %d, %d requests, %s", code, requests.Load(), errs)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := run(t, url, "--i-own-this", "--name", "mine", "--case", "refusals", "--together", "10", "--report", page, "--all", "--quiet")
	if code != cli.Failed || errs != "lull: 1 case failed\n" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{"mine: ", "refusals               fail  3 pass, 1 fail, 3 n/a", "refusal-hint: Retry-After: -1 is neither", "The page is in "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "What HTTP servers make") || !strings.Contains(string(text), "The client reads the Retry-After of refusals") {
		t.Errorf("%v, the page is\n%s", err, text)
	}
}

// JSON can be kept, and is put beside a later run.
func TestFromJSON(t *testing.T) {
	url, _ := refusing(t)
	code, out, errs := run(t, url, "--i-own-this", "--case", "refusal-hint", "--json", "--quiet", "--name", "earlier")
	if code != cli.Failed || !json.Valid([]byte(out)) {
		t.Fatalf("exit code %d, printed\n%s%s", code, out, errs)
	}
	kept := clitest.Write(t, filepath.Join(t.TempDir(), "cards.json"), out)
	code, out, _ = run(t, "--from", kept, url, "--i-own-this", "--case", "refusals", "--quiet")
	if code != cli.Failed || !strings.Contains(out, "server ") || !strings.Contains(out, "earlier ") {
		t.Errorf("exit code %d, printed\n%s", code, out)
	}
}

func TestBodiesAndHeaders(t *testing.T) {
	var good atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b := make([]byte, 10); r.Method == http.MethodPost {
			n, _ := r.Body.Read(b)
			if string(b[:n]) == "amount=1" && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && r.Header.Get("Authorization") == "Basic eDp5" {
				good.Add(1)
			}
		}
	}))
	t.Cleanup(s.Close)
	body := clitest.Write(t, filepath.Join(t.TempDir(), "body"), "amount=1")
	code, out, errs := run(t, s.URL, "--i-own-this", "--case", "key-again", "--body", body, "--type", "application/x-www-form-urlencoded", "--header", "Authorization: Basic eDp5", "--quiet")
	if code != cli.OK || errs != "" || good.Load() != 5 || !strings.Contains(out, "seems to ignore Idempotency-Key") {
		t.Errorf("exit code %d, %d POSTs were right, want 5; printed\n%s%s", code, good.Load(), out, errs)
	}
}
