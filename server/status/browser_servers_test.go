//go:build servers

package status

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

// The picture of README.md: go test -tags servers -run InABrowser ./server/status -picture ../../docs/status.png
var picture = flag.String("picture", "", "a file for the picture of the page")

// browse opens an address in a headless Chromium. It returns the document when its scripts have run, and what the window shows as a PNG. It
// skips the test where there is no Chromium; with CI set it fails.
func browse(t *testing.T, url string, flags ...string) (document string, shot []byte) {
	t.Helper()
	path := ""
	for _, name := range []string{"google-chrome-stable", "google-chrome", "chromium-browser", "chromium"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
		}
	}
	if path == "" {
		give := t.Skip
		if os.Getenv("CI") != "" {
			give = t.Fatal
		}
		give("no Chromium: apt-get install --no-install-recommends chromium")
	}
	const patience = 2 * time.Minute // for a machine that is busy with other things
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	run := func(what string) []byte {
		cmd := exec.CommandContext(ctx, path, append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
			"--user-data-dir="+filepath.Join(dir, "profile"), "--virtual-time-budget=2000", what, url)...)
		var log bytes.Buffer
		cmd.Stderr = &log
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", what, url, err, &log)
		}
		return out
	}
	document = string(run("--dump-dom"))
	file := filepath.Join(dir, "shot.png")
	run("--screenshot=" + file)
	return document, must.Have(os.ReadFile(file))
}

// serve returns the address of a server, and what it was asked for.
func serve(t *testing.T, h http.Handler) (url string, asked func() []string) {
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.Path)
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// trouble returns a page with dependencies in several states.
func trouble(t *testing.T) *Page {
	p := &Page{ForceCircuits: true}
	make := func(name string, policy lull.Policy) *lull.Dependency {
		d := must.Have(lull.NewDependency(name, policy, lull.WithObserver(p)))
		p.Watch(d)
		return d
	}
	answer := func(status int) func(context.Context) error {
		return func(context.Context) error {
			if v := lullhttp.ClassifyStatus(status); v.Kind != lull.KindSuccess {
				return lull.Transient(fmt.Errorf("server answered %d %s", status, http.StatusText(status)))
			}
			return nil
		}
	}
	make("search", lull.Policy{})
	stock := make("stock", lull.Policy{Limit: bulkhead.Config{InFlight: 32}})
	hold := t.Context()
	for range 32 {
		go lull.Run(hold, stock, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}
	for stock.Limiter().InFlight() < 32 {
		time.Sleep(time.Millisecond)
	}
	for range 17 {
		lull.Run(t.Context(), stock, answer(200), lull.Operation("reserve"))
	}
	ledger := make("ledger", lull.Policy{Attempts: 1})
	for range 40 {
		lull.Run(t.Context(), ledger, answer(200))
	}
	lull.Run(t.Context(), ledger, func(context.Context) error { return lull.Permanent(errors.New("account 7 is closed")) }, lull.Operation("balance"))
	payments := make("payments", lull.Policy{Breaker: breaker.Config{Consecutive: 7, ConsecutiveFor: -1, OpenFor: 20 * time.Second}})
	for range 6 {
		lull.Run(t.Context(), payments, answer(503), lull.Operation("charge"), lull.Once())
	}
	lull.Run(t.Context(), payments, func(context.Context) error { return lull.Transient(errors.New("read: connection reset by peer")) }, lull.Operation("refund"), lull.Once())
	for range 212 {
		lull.Run(t.Context(), payments, answer(503), lull.Operation("charge"), lull.Once())
	}
	return p
}

// The browser shows the page, to which its policy allows no script. It asks for nothing else, and the style reaches it.
func TestInABrowser(t *testing.T) {
	const white, nearlyBlack = 0xffffff, 0x0d1117
	p := trouble(t)
	for _, c := range []struct {
		flags      []string
		background uint32 // of the top left corner: red, green, blue
	}{
		{[]string{"--blink-settings=preferredColorScheme=1", "--window-size=1100,824"}, white},
		{[]string{"--blink-settings=preferredColorScheme=0", "--window-size=390,800"}, nearlyBlack},
	} {
		url, asked := serve(t, p)
		document, shot := browse(t, url+"/dependencies", c.flags...)
		for _, name := range []string{"search", "stock", "ledger", "payments"} {
			check.Equal(t, strings.Contains(document, `<th scope="row">`+name), true, "%v: a row of %s", c.flags, name)
		}
		for _, one := range asked() {
			check.Equal(t, one == "GET /dependencies" || one == "GET /favicon.ico", true, "%v: %s", c.flags, one)
		}
		if *picture != "" && c.background == white {
			must.Succeed(os.WriteFile(*picture, shot, 0o644))
		}
		r, g, b, _ := must.Have(png.Decode(bytes.NewReader(shot))).At(2, 2).RGBA()
		check.Equal(t, r>>8<<16|g>>8<<8|b>>8, c.background, "%v: the background", c.flags)
	}
}

// A button of the page works in a browser, and the same form on another site does not.
func TestForcingInABrowser(t *testing.T) {
	p := &Page{ForceCircuits: true}
	d := must.Have(lull.NewDependency("d", lull.Policy{}))
	p.Watch(d)
	var page string
	send := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="%s/page"><input name="dependency" value="d"><input name="circuit" value="open"></form><script>document.forms[0].submit()</script>`, page)
	})
	mux := http.NewServeMux()
	mux.Handle("/page", p)
	mux.Handle("/send", send)
	page, asked := serve(t, mux)
	other, _ := serve(t, send)

	browse(t, other)
	check.Equal(t, slices.Contains(asked(), "POST /page"), true, "the other site has sent its form")
	check.Equal(t, d.Breaker().Forced(), false, "forced by another site")
	document, _ := browse(t, page+"/send")
	check.Equal(t, d.Breaker().Forced(), true, "forced by its own site")
	check.Equal(t, strings.Contains(document, "(forced)"), true, "the page is shown again: %s", document)
}
