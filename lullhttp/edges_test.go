package lullhttp_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// reading is a base transport that reads what it is sent, and answers 503 and then 200.
type reading struct {
	reqs   []*http.Request
	bodies []string
}

func (r *reading) RoundTrip(req *http.Request) (*http.Response, error) {
	r.reqs = append(r.reqs, req)
	if req.Body != nil {
		b, _ := io.ReadAll(req.Body)
		req.Body.Close()
		r.bodies = append(r.bodies, string(b))
	}
	status := 200
	if len(r.reqs) == 1 {
		status = 503
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// bare adds nothing to a request: neither a header nor a timeout.
func bare() (lull.Policy, []lullhttp.Option) {
	p := eager
	p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
	return p, []lullhttp.Option{lullhttp.WithAttemptHeader(""), lullhttp.WithTimeoutHeader("")}
}

// A first attempt to which nothing is added is the caller's own request; a retry has a body
// of its own even so.
func TestRule06ARetryToWhichNothingIsAddedHasItsOwnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, opts := bare()
		base := &reading{}
		tr, err := lullhttp.New(p, append(opts, seeded(t), lullhttp.WithBase(base))...)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest("PUT", "http://example.test/", strings.NewReader("whole"))
		resp, err := tr.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if len(base.reqs) != 2 || base.reqs[0] != req || base.reqs[1] == req {
			t.Errorf("%d requests; the first is the caller's: %v", len(base.reqs), base.reqs[0] == req)
		}
		if got := strings.Join(base.bodies, " "); got != "whole whole" {
			t.Errorf("the bodies are %q", got)
		}
	})
}

// The hook before a retry has the caller's header to add to, also if there is none.
func TestBeforeRetryHasTheCallersHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, header := range []http.Header{{"X-Caller": {"a"}}, nil} {
			p, opts := bare()
			base := &reading{}
			tr, err := lullhttp.New(p, append(opts, seeded(t), lullhttp.WithBase(base), lullhttp.WithBeforeRetry(func(next *http.Request, _ error) error {
				next.Header.Set("X-Token", "new")
				return nil
			}))...)
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequest("GET", "http://example.test/", nil)
			req.Header = header
			if _, err := tr.RoundTrip(req); err != nil || len(base.reqs) != 2 {
				t.Fatal(err, len(base.reqs))
			}
			got := base.reqs[1].Header
			if got.Get("X-Token") != "new" || got.Get("X-Caller") != header.Get("X-Caller") || req.Header.Get("X-Token") != "" {
				t.Errorf("the caller's %v, and the retry's %v", req.Header, got)
			}
		}
	})
}

// A classifier sees the response with the caller's request, as the caller does.
func TestAClassifierSeesTheCallersRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &reading{}
		var seen []*http.Request
		tr, err := lullhttp.New(eager, seeded(t), lullhttp.WithBase(base), lullhttp.WithClassifier(func(resp *http.Response, _ error) lull.Verdict {
			seen = append(seen, resp.Request)
			return lull.Verdict{}
		}))
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest("GET", "http://example.test/", nil)
		if _, err := tr.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 2 || seen[0] != req || seen[1] != req || base.reqs[0] == req {
			t.Errorf("%d responses, of the caller's request: %v", len(seen), seen[0] == req)
		}
	})
}

// One byte is progress.
func TestAnUploadOfSingleBytesMakesProgress(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Attempts = time.Second, 1
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		body, write := io.Pipe()
		go func() {
			for range 4 {
				time.Sleep(600 * time.Millisecond)
				if _, err := write.Write([]byte("x")); err != nil {
					return
				}
			}
			write.Close()
		}()
		req, _ := http.NewRequest("PUT", host, body)
		resp, err := cl.Do(req)
		read(t, resp, err)
		body.Close()
		time.Sleep(2 * time.Second) // for who still waits in the bubble
	})
}

// The limit on silence is for the server: a reader that takes its time loses nothing.
func TestASlowReaderIsNotCutOff(t *testing.T) {
	inBubble(t, eager, dripping(0, 0, 0), func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		resp, err := cl.Get(host)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := ""
		for b := make([]byte, 1); ; time.Sleep(time.Hour) {
			n, err := resp.Body.Read(b)
			got += string(b[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v after %q", err, got)
			}
		}
		if got != "xxxx" {
			t.Errorf("%q", got)
		}
	}, lullhttp.WithBodyIdleTimeout(time.Second))
}

// A classifier can report of a response that its request was not looked at: then a POST is
// repeated.
func TestRule04AClassifierThatKnowsOfNothingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for neverSent, want := range map[bool]int{true: 2, false: 1} {
			base := &reading{}
			tr, err := lullhttp.New(eager, seeded(t), lullhttp.WithBase(base), lullhttp.WithClassifier(func(resp *http.Response, _ error) lull.Verdict {
				if resp != nil && resp.StatusCode == 503 {
					return lull.Verdict{Kind: lull.KindTransient, NeverSent: neverSent}
				}
				return lull.Verdict{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequest("POST", "http://example.test/", strings.NewReader("x"))
			if _, err := tr.RoundTrip(req); err != nil || len(base.reqs) != want {
				t.Errorf("never sent: %v: %d requests, want %d; %v", neverSent, len(base.reqs), want, err)
			}
		}
	})
}

// noting is a body that notes that it was closed.
type noting struct {
	io.Reader
	closed bool
}

func (n *noting) Close() error { n.closed = true; return nil }

// A RoundTripper closes the body also of a request that it cannot make.
func TestTheBodyIsClosedOfWhatCannotBeSent(t *testing.T) {
	made, err := lullhttp.New(lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*lullhttp.Transport{"no URL": made, "a zero Transport": {}} {
		body := &noting{Reader: strings.NewReader("x")}
		req, err := http.NewRequest("PUT", "http://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Body = body
		if to == made {
			req.URL = nil
		}
		if _, err := to.RoundTrip(req); err == nil || !body.closed {
			t.Errorf("%s: %v; the body was closed: %v", name, err, body.closed)
		}
	}
}
