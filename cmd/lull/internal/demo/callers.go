package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/lullhttp"
)

// A caller makes one call, with as many attempts as it likes, and reports whether it
// succeeded.
type caller func(context.Context) bool

// A client is one way of calling: its name, a description, and how to make a caller.
type client struct {
	name  string
	about func(setting) string
	make  func(s setting, base http.RoundTripper, url string) (caller, error)
}

// flagName is the name without spaces, so that a shell needs no quotes.
func (c client) flagName() string { return strings.ReplaceAll(c.name, " ", "-") }

func flagNames(all []client) []string { return cli.Names(all, client.flagName) }

func once(s setting, base http.RoundTripper, url string) (caller, error) {
	s.Attempts = 1
	return retries(nil)(s, base, url)
}

// retries makes the loop that everybody has written: try, wait, try again, as often as
// allowed, whatever failed and however other callers fare. wait returns the wait before the
// nth retry.
func retries(wait func(n int) time.Duration) func(setting, http.RoundTripper, string) (caller, error) {
	return func(s setting, base http.RoundTripper, url string) (caller, error) {
		httpClient := &http.Client{Transport: base}
		return func(ctx context.Context) bool {
			for n := 1; ; n++ {
				if attempt(ctx, httpClient, url, s.Timeout) {
					return true
				}
				if n >= s.Attempts || sleep.For(ctx, wait(n)) != nil {
					return false
				}
			}
		}, nil
	}
}

// newLull makes the client that this repository is about, used as anybody would.
func newLull(policy func(setting) lull.Policy) func(setting, http.RoundTripper, string) (caller, error) {
	return func(s setting, base http.RoundTripper, url string) (caller, error) {
		httpClient, err := lullhttp.NewClient(policy(s), lullhttp.WithBase(base), lullhttp.WithObserver(hedgeCounter{}))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) bool { return get(ctx, httpClient, url) }, nil
	}
}

// hedgeCounter counts the hedges that lull's policy did not send.
type hedgeCounter struct{}

func (hedgeCounter) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == event.HedgeRefused {
		if t := tallyOf(ctx); t != nil {
			t.countHeld()
		}
	}
}

func attempt(ctx context.Context, c *http.Client, url string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return get(ctx, c, url)
}

func get(ctx context.Context, c *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode == http.StatusOK
}
