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
	url, _ := refusing(t)
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

// Nothing is sent without the confirmation, nor if anything is wrong.
func TestMistakes(t *testing.T) {
	url, requests := refusing(t)
	clients := clitest.Write(t, filepath.Join(t.TempDir(), "clients.json"), `{"cards": [{"name": "curl"}]}`)
	for args, want := range map[string]string{
		"":                                        "lull: URL is missing: want the address of a server",
		url:                                       "lull: --i-own-this is missing",
		"--i-own-this ftp://a":                    `URL is "ftp://a": want http://HOST/PATH`,
		"--i-own-this --post a " + url:            `--post is "a": want a path`,
		"--i-own-this --together 1 " + url:        `--together is "1": want a whole number from 2 to 1000`,
		"--i-own-this --requests 0 " + url:        `--requests is "0"`,
		"--i-own-this --rate NaN " + url:          `--rate is "NaN"`,
		"--i-own-this --case nothing " + url:      `no case is named "nothing"`,
		"--i-own-this --header nothing " + url:    "--header is a line without a name: want NAME: VALUE",
		"--i-own-this --body /there/is/no " + url: "no such file",
		"--from /there/is/no":                     "no such file",
		"--from " + clients:                       "the cards are those of clients: lull torture --from",
	} {
		code, out, errs := run(t, strings.Fields(args)...)
		if code == cli.OK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, printed %s%s, want %s", args, code, out, errs, want)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
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
