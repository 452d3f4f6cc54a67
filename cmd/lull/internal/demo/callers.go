package demo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// A caller makes one call, with as many attempts as it likes, and tells whether
// it succeeded.
type caller func(context.Context) bool

// A client is one way of calling: its name, what it does in words, and how to
// make a caller of it.
type client struct {
	name  string
	about func(setting) string
	make  func(s setting, base http.RoundTripper, url string) (caller, error)
}

// allClients of the storm in the order in which they are shown.
var allClients = []client{
	{"no retry", func(setting) string { return "one attempt" },
		func(s setting, base http.RoundTripper, url string) (caller, error) {
			s.Attempts = 1
			return naive(s, base, url, nil), nil
		}},
	{"immediate", func(s setting) string { return fmt.Sprintf("%d attempts, no wait between them", s.Attempts) },
		retries(func(int) time.Duration { return 0 })},
	{"fixed interval", func(s setting) string { return fmt.Sprintf("%d attempts, %v between them", s.Attempts, naiveBase) },
		retries(func(int) time.Duration { return naiveBase })},
	{"exponential", func(s setting) string {
		return fmt.Sprintf("%d attempts, waits of %v, doubling, no jitter", s.Attempts, naiveBase)
	}, retries(doubling)},
	{"full jitter", func(s setting) string {
		return fmt.Sprintf("%d attempts, random waits of up to %v, doubling, no budget", s.Attempts, naiveBase)
	}, retries(func(n int) time.Duration { return rand.N(doubling(n) + 1) })},
	{"lull", func(s setting) string {
		return fmt.Sprintf("lullhttp with lull's zero policy, the demo's attempt timeout:\n%s", s.policyText())
	}, newLull},
}

// flagNames are the names of clients as --clients wants them.
func flagNames(all []client) []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.flagName()
	}
	return names
}

// flagName is the name without spaces, so that a shell needs no quotes.
func (c client) flagName() string { return strings.ReplaceAll(c.name, " ", "-") }

// doubling is the wait before the nth retry, counted from 1.
func doubling(n int) time.Duration { return naiveBase << (n - 1) }

// retries makes a client that waits so long before the nth retry.
func retries(wait func(n int) time.Duration) func(setting, http.RoundTripper, string) (caller, error) {
	return func(s setting, base http.RoundTripper, url string) (caller, error) {
		return naive(s, base, url, wait), nil
	}
}

// naive is the loop that everybody has written: try, wait, try again, as often
// as allowed, whatever went wrong and however everybody else is doing.
func naive(s setting, base http.RoundTripper, url string, wait func(n int) time.Duration) caller {
	httpClient := &http.Client{Transport: base}
	return func(ctx context.Context) bool {
		for n := 1; ; n++ {
			if attempt(ctx, httpClient, url, s.Timeout) {
				return true
			}
			if n >= s.Attempts || ctx.Err() != nil {
				return false
			}
			if !pause(ctx, wait(n)) {
				return false
			}
		}
	}
}

// pause waits for d; false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	return sleep(d, ctx.Done())
}

// attempt makes one request that must be answered with 200 within timeout.
func attempt(ctx context.Context, c *http.Client, url string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return get(ctx, c, url)
}

// get makes a request and reads the answer to its end; true for a 200.
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
