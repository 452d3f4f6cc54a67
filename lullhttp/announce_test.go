package lullhttp_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/lullhttp"
)

// A host is sent the time from the first of its answers on that has the header Lull, also if
// that answer is a failure, and whatever is answered later. Other hosts are not sent it. The
// number of a retry is sent to every host.
func TestTheTimeIsSentToHostsThatAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eager
		p.AttemptTimeout = time.Second
		var got []string
		announce, status := "", 200
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.URL.Host+" "+r.Header.Get("Lull-Timeout")+" "+r.Header.Get("Lull-Attempt"))
			h := http.Header{}
			if r.URL.Host == announce {
				h["Lull"] = []string{"1"}
			}
			return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
		})
		cl := client(t, p, lullhttp.WithBase(base))
		get := func(host string) string {
			got = nil
			resp, err := cl.Get("http://" + host + "/")
			read(t, resp, err)
			return strings.Join(got, ", ")
		}
		for _, step := range []struct {
			announce string // the host that does
			status   int
			host     string
			want     string
		}{
			{"", 200, "a", "a  "},
			{"", 503, "a", "a  , a  2, a  3"}, // a stranger learns the number of a retry
			{"a", 503, "a", "a  , a 1000 2, a 1000 3"},
			{"a", 200, "a", "a 1000 "},
			{"a", 200, "b", "b  "},
			{"a", 200, "a:81", "a:81  "}, // another port is another server
			{"", 200, "a", "a 1000 "},    // a route without a handler of lull's
			{"", 503, "a", "a 1000 , a 1000 2, a 1000 3"},
			{"b", 200, "b", "b  "},
			{"b", 200, "b", "b 1000 "},
		} {
			announce, status = step.announce, step.status
			if got := get(step.host); got != step.want {
				t.Errorf("%+v: sent %q", step, got)
			}
		}
	})
}

// With WithHosts(8) no more than eight hosts are remembered to have asked for the time.
func TestHostsThatAskForTheTimeAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := map[string]string{}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent[r.URL.Host] = r.Header.Get("Lull-Timeout")
			return &http.Response{StatusCode: 200, Header: http.Header{"Lull": {"1"}}, Body: http.NoBody, Request: r}, nil
		})
		p := eager
		p.AttemptTimeout = time.Second
		cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithHosts(8))
		hosts := strings.Split("abcdefghi", "")
		for range 2 {
			for _, h := range hosts {
				resp, err := cl.Get("http://" + h + "/")
				read(t, resp, err)
			}
		}
		if n := len(slices.DeleteFunc(hosts, func(h string) bool { return sent[h] == "" })); n > 8 {
			t.Errorf("%d hosts are remembered", n)
		}
	})
}

// A handler announces that it reads the time, unless it does not, or reads it from another
// header, or does not trust the client.
func TestTheHandlerAsksForTheTime(t *testing.T) {
	mine := func(r *http.Request) bool { return r.Header.Get("From") == "me" }
	for name, c := range map[string]struct {
		opts []lullhttp.HandlerOption
		from string
		want bool
	}{
		"default":         {nil, "", true},
		"another header":  {[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("X-Left")}, "", false},
		"no header":       {[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("")}, "", false},
		"a friend":        {[]lullhttp.HandlerOption{lullhttp.WithTrust(mine)}, "me", true},
		"a stranger":      {[]lullhttp.HandlerOption{lullhttp.WithTrust(mine)}, "x", false},
		"the time is out": {nil, "late", true},
	} {
		for _, status := range []int{0, 103, 204, 503} {
			h := newHandler(t, func(w http.ResponseWriter, _ *http.Request) {
				if status > 0 {
					w.WriteHeader(status)
				}
			}, c.opts...)
			req := httptest.NewRequest("GET", "/", nil)
			req.Header.Set("From", c.from)
			if c.from == "late" {
				req.Header.Set("Lull-Timeout", "0")
			}
			w := httptest.NewRecorder()
			h(w, req)
			if got := len(w.Result().Header["Lull"]) > 0; got != c.want {
				t.Errorf("%s, status %d: %v", name, status, w.Result().Header)
			}
		}
	}
}

// The client and the handler together: the second request ends at the server when its
// client's time is up.
func TestTheSecondRequestHasADeadline(t *testing.T) {
	p := eager
	p.AttemptTimeout = time.Second
	var left []time.Duration
	inBubble(t, p, newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
		until, _ := r.Context().Deadline()
		left = append(left, max(time.Until(until), 0))
	}), func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		for range 2 {
			resp, err := cl.Get(host)
			read(t, resp, err)
		}
	})
	if !slices.Equal(left, []time.Duration{0, time.Second}) {
		t.Errorf("the server had %v", left)
	}
}
