package lullhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lullhttp"
)

// setHeader sets lines of "Key: value".
func setHeader(h http.Header, lines ...string) {
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, ": "); ok {
			h.Add(key, value)
		}
	}
}

// getWith makes a GET with these fields.
func getWith(t *testing.T, c *http.Client, url string, lines ...string) (*http.Response, string, error) {
	t.Helper()
	req := must(http.NewRequest("GET", url, nil))
	setHeader(req.Header, lines...)
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp, string(body), err
}

// staleCase is a response that is stored, and a request some time later that fails.
type staleCase struct {
	stored, first string // header of the first response, and of its request; lines with ";;" between them
	after         time.Duration
	second        string // header of the second request
	status        int    // of its answer; 0: the connection is closed
	private       bool
	limit         time.Duration // Stale.For; 0: an hour, negative: 0
	served        bool
}

func (c staleCase) check(t *testing.T, name string) {
	t.Helper()
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n > 1 {
			if c.status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(c.status)
			return
		}
		setHeader(w.Header(), strings.Split(c.stored, ";;")...)
		io.WriteString(w, "stored")
	}
	limit := time.Hour
	if c.limit != 0 {
		limit = max(c.limit, 0)
	}
	inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
		if _, body, err := getWith(t, client, host, strings.Split(c.first, ";;")...); err != nil || body != "stored" {
			t.Fatalf("%s: %q, %v", name, body, err)
		}
		time.Sleep(c.after)
		resp, body, err := getWith(t, client, host, strings.Split(c.second, ";;")...)
		o := lullhttp.OutcomeOf(resp)
		if got := err == nil && body == "stored"; got != c.served || o.Stale != c.served {
			t.Errorf("%s: %q, %v, %+v; want it served: %v", name, body, err, o, c.served)
		}
		if c.served && (o.Reason != engine.AttemptsExhausted || o.Attempts != 3 || resp.Request == nil) {
			t.Errorf("%s: %+v", name, o)
		}
	}, lullhttp.WithStale(lullhttp.Stale{For: limit, Private: c.private}))
}

// The cases about stale responses of the public suite for caches (github.com/http-tests/cache-tests,
// BSD-3-Clause), by their names there. A shared cache has rules of its own.
func TestTheCasesOfTheCacheTests(t *testing.T) {
	const later = 3 * time.Second
	for name, c := range map[string]staleCase{
		"stale-close":                      {stored: "Cache-Control: max-age=2", after: later, served: true},
		"stale-503":                        {stored: "Cache-Control: max-age=2", after: later, status: 503, served: true},
		"stale-sie-close":                  {stored: "Cache-Control: max-age=2, stale-if-error=60", after: later, limit: -1, served: true},
		"stale-sie-503":                    {stored: "Cache-Control: max-age=2, stale-if-error=60", after: later, status: 503, limit: -1, served: true},
		"stale-close-must-revalidate":      {stored: "Cache-Control: max-age=2, must-revalidate", after: later},
		"stale-close-proxy-revalidate":     {stored: "Cache-Control: max-age=2, proxy-revalidate", after: later},
		"stale-close-no-cache":             {stored: "Cache-Control: max-age=2, no-cache", after: later},
		"stale-close-s-maxage":             {stored: "Cache-Control: max-age=2, s-maxage=2", after: later},
		"proxy-revalidate, private":        {stored: "Cache-Control: max-age=2, proxy-revalidate", after: later, private: true, served: true},
		"s-maxage, private":                {stored: "Cache-Control: max-age=2, s-maxage=0", after: time.Second, private: true, limit: -1, served: true},
		"must-revalidate, at its end":      {stored: "Cache-Control: max-age=2, must-revalidate", after: 2 * time.Second},
		"must-revalidate, fresh":           {stored: "Cache-Control: max-age=5, must-revalidate", after: later, served: true},
		"s-maxage, fresh":                  {stored: "Cache-Control: max-age=0, s-maxage=5", after: later, served: true},
		"must-revalidate beside sie":       {stored: "Cache-Control: max-age=2, must-revalidate, stale-if-error=60", after: later},
		"no-store":                         {stored: "Cache-Control: max-age=2, no-store"},
		"no-cache with fields":             {stored: `Cache-Control: max-age=2, no-cache="Set-Cookie"`},
		"private in a shared cache":        {stored: "Cache-Control: private, max-age=2"},
		"private":                          {stored: "Cache-Control: private, max-age=2", private: true, served: true},
		"other-authorization":              {stored: "Cache-Control: max-age=3600", first: "Authorization: A", second: "Authorization: A"},
		"other-authorization-public":       {stored: "Cache-Control: max-age=3600, public", first: "Authorization: A", second: "Authorization: A", served: true},
		"other-authorization-must-reval":   {stored: "Cache-Control: max-age=3600, must-revalidate", first: "Authorization: A", second: "Authorization: A", served: true},
		"other-authorization-smaxage":      {stored: "Cache-Control: s-maxage=3600", first: "Authorization: A", second: "Authorization: A", served: true},
		"authorization, private":           {stored: "Cache-Control: max-age=3600", first: "Authorization: A", second: "Authorization: A", private: true, served: true},
		"another's authorization, private": {stored: "Cache-Control: max-age=3600", first: "Authorization: A", second: "Authorization: B", private: true},
		"a cookie":                         {stored: "Cache-Control: max-age=3600", first: "Cookie: a=1", second: "Cookie: a=1"},
		"vary-match":                       {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: 1", second: "Foo: 1", served: true},
		"vary-no-match":                    {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: 1", second: "Foo: 2"},
		"vary-omit-stored":                 {stored: "Cache-Control: max-age=5000;;Vary: Foo", second: "Foo: 1"},
		"vary-omit":                        {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: 1"},
		"vary-cache-key":                   {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: 1;;Other: 2", second: "Foo: 1;;Other: 3", served: true},
		"vary-3-match":                     {stored: "Cache-Control: max-age=5000;;Vary: Foo, Bar, Baz", first: "Foo: 1;;Bar: abc;;Baz: 789", second: "Baz: 789;;Foo: 1;;Bar: abc", served: true},
		"vary-3-no-match":                  {stored: "Cache-Control: max-age=5000;;Vary: Foo, Bar, Baz", first: "Foo: 1;;Bar: abc;;Baz: 789", second: "Foo: 1;;Bar: abcde;;Baz: 789"},
		"vary-3-omit":                      {stored: "Cache-Control: max-age=5000;;Vary: Foo, Bar, Baz", first: "Foo: 1;;Baz: 789", second: "Foo: 1;;Baz: 789", served: true},
		"vary-star":                        {stored: "Cache-Control: max-age=5000;;Vary: *", first: "Foo: 1", second: "Foo: 1"},
		"vary-normalise-combine":           {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: 1, 2", second: "Foo: 1;;Foo: 2", served: true},
		"ccreq-ma0":                        {stored: "Cache-Control: max-age=3600", after: time.Second, second: "Cache-Control: max-age=0"},
		"ccreq-magreaterage":               {stored: "Cache-Control: max-age=3600;;Age: 1800", second: "Cache-Control: max-age=600"},
		"ccreq-max-stale":                  {stored: "Cache-Control: max-age=1", after: later, second: "Cache-Control: max-stale=1000", limit: -1, served: true},
		"ccreq-max-stale-age":              {stored: "Cache-Control: max-age=1500;;Age: 2000", second: "Cache-Control: max-stale=1000", limit: -1, served: true},
		"max-stale is passed":              {stored: "Cache-Control: max-age=1", after: later, second: "Cache-Control: max-stale=1"},
		"max-stale without a number":       {stored: "Cache-Control: max-age=1", after: later, second: "Cache-Control: max-stale", limit: -1, served: true},
		"ccreq-min-fresh":                  {stored: "Cache-Control: max-age=1500", second: "Cache-Control: min-fresh=2000"},
		"ccreq-min-fresh-age":              {stored: "Cache-Control: max-age=1500;;Age: 1000", second: "Cache-Control: min-fresh=1000"},
		"min-fresh is met":                 {stored: "Cache-Control: max-age=1500", second: "Cache-Control: min-fresh=1000", served: true},
		"ccreq-no-cache":                   {stored: "Cache-Control: max-age=3600", second: "Cache-Control: no-cache"},
		"pragma-request-no-cache":          {stored: "Cache-Control: max-age=3600", second: "Pragma: no-cache"},
		"ccreq-no-store":                   {stored: "Cache-Control: max-age=3600", first: "Cache-Control: no-store"},
		"a request's sie":                  {stored: "Cache-Control: max-age=1", after: later, second: "Cache-Control: stale-if-error=60", limit: -1, served: true},
		"a request's sie, at its end":      {stored: "Cache-Control: max-age=1", after: 61 * time.Second, second: "Cache-Control: stale-if-error=60", limit: -1, served: true},
		"a request's sie of zero":          {stored: "Cache-Control: max-age=1", after: later, second: "Cache-Control: stale-if-error=0"},
		"sie is passed":                    {stored: "Cache-Control: max-age=2, stale-if-error=60", after: 63 * time.Second},
		"sie is not passed":                {stored: "Cache-Control: max-age=2, stale-if-error=60", after: 61 * time.Second, served: true},
		"nothing is said":                  {after: 59 * time.Minute, served: true},
		"nothing is said, too late":        {after: 61 * time.Minute},
		"nothing is allowed":               {limit: -1, after: later},
		"max-age counts from the Age":      {stored: "Cache-Control: max-age=2000;;Age: 1990", limit: -1, after: 11 * time.Second},
		"an Age without end":               {stored: "Cache-Control: max-age=2000;;Age: 99999999999999999999"},
		"fresh-max-age-ignore-quoted":      {stored: `Cache-Control: extension="max-age=3600", max-age=1`, limit: -1, after: later},
		"fresh-max-age-quoted":             {stored: `Cache-Control: max-age="3600"`, limit: -1, after: later, served: true},
		"fresh-max-age-two":                {stored: "Cache-Control: max-age=1800, max-age=1", limit: -1, after: later},
		"fresh-max-age-a100":               {stored: "Cache-Control: max-age=a3600", limit: -1, after: later},
		"fresh-max-age-100a":               {stored: "Cache-Control: max-age=3600a", limit: -1, after: later},
		"expires":                          {stored: "Date: Sat, 01 Jan 2000 00:00:00 GMT;;Expires: Sat, 01 Jan 2000 01:00:00 GMT", limit: -1, after: 59 * time.Minute, served: true},
		"expires, passed":                  {stored: "Date: Sat, 01 Jan 2000 00:00:00 GMT;;Expires: Sat, 01 Jan 2000 01:00:00 GMT", limit: -1, after: 61 * time.Minute},
		"expires is no date":               {stored: "Expires: 0", limit: -1, after: later},
		"a quote that does not end":        {stored: `Cache-Control: max-age=3600", private`},
		"an empty field is not absent":     {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: "},
		"both are empty":                   {stored: "Cache-Control: max-age=5000;;Vary: Foo", first: "Foo: ", second: "Foo: ", served: true},
		"encoded, for who did not ask":     {stored: "Content-Encoding: x", first: "Accept-Encoding: x"},
		"encoded, for who asked":           {stored: "Content-Encoding: x", first: "Accept-Encoding: x", second: "Accept-Encoding: x", served: true},
		"encoded without a question":       {stored: "Content-Encoding: x", served: true},
		"a field of the connection's":      {stored: "Cache-Control: max-age=2, must-revalidate;;Connection: Cache-Control", after: later},
		"a Range":                          {stored: "Cache-Control: max-age=2", second: "Range: bytes=0-1"},
		"a condition":                      {stored: "Cache-Control: max-age=2", second: `If-None-Match: "a"`},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, name) })
	}
}

// The Age of what is served is that of RFC 9111, 4.2.3. Cookies and the fields of the connection are
// left out, other fields are as they came.
func TestTheHeaderOfAStaleResponse(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n > 1 {
			panic(http.ErrAbortHandler)
		}
		time.Sleep(2 * time.Second)
		setHeader(w.Header(), "Age: 10", "Set-Cookie: a=1", "Keep-Alive: timeout=5", "X-Odd: \xff", "X-Two: 1", "X-Two: 2", "Lull-Answered: 5", "Content-Language: de")
		io.WriteString(w, "stored")
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		fresh, _, _ := getWith(t, c, host)
		time.Sleep(100 * time.Second)
		resp, body, err := getWith(t, c, host)
		if err != nil || body != "stored" || resp.StatusCode != 200 {
			t.Fatal(resp, body, err)
		}
		check.Equal(t, resp.Header.Get("Age"), "112", "Age")
		check.Equal(t, resp.ContentLength, int64(len("stored")), "ContentLength")
		want := fresh.Header.Clone()
		for _, key := range []string{"Set-Cookie", "Keep-Alive", "Lull-Answered"} {
			want.Del(key)
		}
		want.Set("Age", "112")
		if !maps.EqualFunc(resp.Header, want, slices.Equal) {
			t.Errorf("%v, want %v", resp.Header, want)
		}
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
}

// The cookies of the answers that failed come with the stale response. A 204 has no Content-Length
// (RFC 9110, 8.6). Neither the body of a failure nor its drain lasts beyond the deadline of the policy.
func TestAStaleResponseInsteadOfAnAnswer(t *testing.T) {
	p := eager
	p.Deadline, p.Attempts = 2*time.Second, 1
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		base := roundTrip(func(*http.Request) (*http.Response, error) {
			if n := sent.Add(1); n == 1 {
				return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody}, nil
			}
			time.Sleep(1900 * time.Millisecond)
			body, _ := io.Pipe() // to read it lasts until it is closed
			return &http.Response{StatusCode: 503, Header: http.Header{"Set-Cookie": {"a=1"}}, ContentLength: -1, Body: body}, nil
		})
		c := client(t, p, lullhttp.WithBase(base), lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
		getWith(t, c, host)
		began := time.Now()
		resp, _, err := getWith(t, c, host)
		if err != nil || resp.StatusCode != 204 || !lullhttp.OutcomeOf(resp).Stale {
			t.Fatal(resp, err)
		}
		check.Equal(t, time.Since(began), p.Deadline, "the time of the call")
		check.Equal(t, resp.Header.Get("Set-Cookie"), "a=1", "Set-Cookie")
		check.Equal(t, len(resp.Header.Values("Content-Length")), 0, "Content-Length")
	})
}

// A request that may have changed the resource drops what is stored, if it succeeded (RFC 9111, 4.4).
func TestUnsafeRequestsInvalidate(t *testing.T) {
	for _, c := range []struct {
		method, url string
		status      int
		header      string
		dropped     bool
	}{
		{"POST", host, 200, "", true}, {"PUT", host, 204, "", true}, {"DELETE", host, 200, "", true}, {"M-SEARCH", host, 200, "", true},
		{"PATCH", host, 303, "", true},
		{"POST", host, 500, "", false}, {"POST", host, 404, "", false}, {"HEAD", host, 200, "", false}, {"OPTIONS", host, 200, "", false},
		{"POST", host + "other", 200, "", false},
		{"POST", host + "other", 201, "Location: /", true}, {"POST", host + "other", 200, "Content-Location: " + host, true},
		{"POST", "http://elsewhere.test/other", 200, "Location: " + host, false},
	} {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			switch n := sent.Add(1); {
			case r.Method == c.method:
				setHeader(w.Header(), c.header)
				w.WriteHeader(c.status)
			case n == 1:
				io.WriteString(w, "stored")
			default:
				panic(http.ErrAbortHandler)
			}
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			getWith(t, client, host)
			resp := must(client.Do(must(http.NewRequest(c.method, c.url, nil))))
			resp.Body.Close()
			_, _, err := getWith(t, client, host)
			if (err != nil) != c.dropped {
				t.Errorf("%+v: %v", c, err)
			}
		}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	}
}

// A response that is under way when its URL is dropped may be older than the change, so it is not
// stored. Of two responses to one GET the one that was answered later stays, whichever is read first.
func TestWhatIsReadLaterIsNotNewer(t *testing.T) {
	for name, c := range map[string]struct {
		method, header, want string
	}{
		"a POST": {"POST", "", ""}, "a POST, variants": {"POST", "Vary: Foo", ""},
		"a HEAD that finds nothing": {"HEAD", "", ""},
		"a GET":                     {"GET", "", "new"}, "a GET, variants": {"GET", "Vary: Foo", "new"},
	} {
		var n atomic.Int32
		handler := func(w http.ResponseWriter, r *http.Request) {
			setHeader(w.Header(), c.header)
			switch n := n.Add(1); {
			case n == 1:
				io.WriteString(w, "ol")
				w.(http.Flusher).Flush()
				time.Sleep(2 * time.Second)
				io.WriteString(w, "d")
			case n > 2:
				panic(http.ErrAbortHandler)
			case r.Method == "HEAD":
				w.WriteHeader(404)
			default:
				io.WriteString(w, "new")
			}
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			first := must(client.Get(host))
			time.Sleep(time.Second)
			second := must(client.Do(must(http.NewRequest(c.method, host, nil))))
			for _, resp := range []*http.Response{second, first} {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if _, body, _ := getWith(t, client, host); body != c.want {
				t.Errorf("%s: %q, want %q", name, body, c.want)
			}
		}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	}
}

// Who asks for a resource that is gone learns it, by whatever method or condition. A 404 that the user
// has declared to be transient is no such answer, nor is one to a POST.
func TestWhatIsGoneIsDropped(t *testing.T) {
	for _, c := range []struct {
		method, header string
		opts           []lullhttp.Option
		dropped        bool
	}{
		{method: "HEAD", dropped: true}, {method: "DELETE", dropped: true}, {method: "GET", header: `If-None-Match: "a"`, dropped: true},
		{method: "GET", header: "Cache-Control: no-store", dropped: true},
		{method: "POST"}, {method: "OPTIONS"},
		{method: "HEAD", opts: []lullhttp.Option{lullhttp.WithStatus(404, lull.KindTransient)}},
	} {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			switch n := sent.Add(1); {
			case n == 1:
				io.WriteString(w, "stored")
			case r.Header.Get("Lull-Fail") == "":
				w.WriteHeader(404)
			default:
				panic(http.ErrAbortHandler)
			}
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			getWith(t, client, host)
			req := must(http.NewRequest(c.method, host, nil))
			setHeader(req.Header, c.header)
			must(client.Do(req)).Body.Close()
			if _, _, err := getWith(t, client, host, "Lull-Fail: 1"); (err != nil) != c.dropped {
				t.Errorf("%+v: %v", c, err)
			}
		}, append(c.opts, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))...)
	}
}

// A base transport may return no header at all, as test doubles do.
func TestAResponseWithoutAHeaderIsStored(t *testing.T) {
	var sent atomic.Int64
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		if n := sent.Add(1); n > 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: 200, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok"))}, nil
	})
	tr := transport(t, eager, lullhttp.WithBase(base), lullhttp.WithStale(lullhttp.Stale{For: time.Hour}), lullhttp.WithResume())
	for range 2 {
		resp := must(tr.RoundTrip(must(http.NewRequest("GET", host, nil))))
		body := must(io.ReadAll(resp.Body))
		check.Equal(t, string(body), "ok", "body")
	}
}

// Fields whose keys are not canonical count, too: here they would make the response one user's.
func TestKeysThatAreNotCanonicalAreNotOverlooked(t *testing.T) {
	for name, c := range map[string]struct{ request, response string }{
		"the request's": {request: "authorization"}, "the response's": {response: "cache-control"},
	} {
		var sent atomic.Int64
		base := roundTrip(func(*http.Request) (*http.Response, error) {
			if n := sent.Add(1); n > 1 {
				return nil, io.ErrUnexpectedEOF
			}
			h := http.Header{}
			if c.response != "" {
				h[c.response] = []string{"private"}
			}
			return &http.Response{StatusCode: 200, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok")), Header: h}, nil
		})
		client := client(t, eager, lullhttp.WithBase(base), lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
		req := must(http.NewRequest("GET", host, nil))
		if c.request != "" {
			req.Header[c.request] = []string{"A"}
		}
		resp := must(client.Do(req))
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if _, body, err := getWith(t, client, host); err == nil {
			t.Errorf("%s: %q", name, body)
		}
	}
}

// A later answer to the same GET replaces what is stored, or drops it.
func TestALaterAnswerReplaces(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		want   string
	}{
		{200, "", "new"}, {200, "Cache-Control: no-store", ""}, {404, "", ""}, {410, "", ""}, {403, "", "old"}, {500, "", "old"},
		{200, "Vary: Foo", "new"}, {200, "Vary: *", ""}, {206, "", ""},
	} {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			switch n := sent.Add(1); {
			case n == 1:
				io.WriteString(w, "old")
			case r.Header.Get("Lull-Fail") != "":
				panic(http.ErrAbortHandler)
			default:
				setHeader(w.Header(), c.header)
				w.WriteHeader(c.status)
				io.WriteString(w, "new")
			}
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			getWith(t, client, host)
			getWith(t, client, host)
			_, body, _ := getWith(t, client, host, "Lull-Fail: 1")
			if body != c.want {
				t.Errorf("%+v: %q", c, body)
			}
		}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	}
}

// Two hosts that one server tells apart by the Host field have responses of their own.
func TestVirtualHostsAreStoredApart(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n > 1 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, r.Host)
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		for i, name := range []string{"a.test", "b.test", "a.test", ""} {
			req := must(http.NewRequest("GET", host, nil))
			req.Host = name
			resp, err := c.Do(req)
			if (err == nil) != (name == "a.test") {
				t.Errorf("request %d, for %q: %v", i, name, err)
			}
			if err == nil {
				io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		}
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
}

// A body that http.Transport has decompressed is stored so, and says so again.
func TestADecompressedBodyIsStored(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n > 1 {
			panic(http.ErrAbortHandler)
		}
		setHeader(w.Header(), "Content-Encoding: gzip", "Vary: Accept-Encoding")
		z := gzip.NewWriter(w)
		z.Write(content)
		z.Close()
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		for range 2 {
			resp, body, err := getWith(t, c, host)
			if err != nil || body != string(content) || !resp.Uncompressed || resp.Header.Get("Content-Encoding") != "" {
				t.Errorf("%d bytes, %v, %v", len(body), err, resp)
			}
		}
		if _, _, err := getWith(t, c, host, "Accept-Encoding: gzip"); err == nil {
			t.Error("it is served to one who decompresses it")
		}
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
}

// Hedged calls, and downloads that are resumed, fill the store as others do.
func TestStaleBesideHedgesAndResume(t *testing.T) {
	p := eager
	p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 2}
	for name, p := range map[string]lull.Policy{"hedged": p, "plain": eager} {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			switch n := sent.Add(1); n {
			case 1:
				sendCut(w, r, 10)
			case 2:
				sendCut(w, r, -1)
			}
			panic(http.ErrAbortHandler)
		}
		inBubble(t, p, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
			for range 2 {
				resp, body, err := getWith(t, c, host)
				if err != nil || body != string(content) {
					t.Errorf("%s: %d bytes, %v, %+v", name, len(body), err, lullhttp.OutcomeOf(resp))
				}
			}
		}, lullhttp.WithResume(), lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	}
}

// Two variants are stored beside each other, and dropped together.
func TestVariantsAreStoredBesideEachOther(t *testing.T) {
	down := false
	handler := func(w http.ResponseWriter, r *http.Request) {
		if down {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Vary", "Accept-Language")
		io.WriteString(w, r.Header.Get("Accept-Language"))
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		want := func(de, en string) {
			t.Helper()
			down = true
			for language, want := range map[string]string{"de": de, "en": en} {
				if _, body, _ := getWith(t, c, host, "Accept-Language: "+language); body != want {
					t.Errorf("%s: %q, want %q", language, body, want)
				}
			}
			down = false
		}
		getWith(t, c, host, "Accept-Language: de")
		getWith(t, c, host, "Accept-Language: en")
		want("de", "en")
		time.Sleep(time.Second)
		must(c.Post(host, "", nil)).Body.Close()
		want("", "")
		getWith(t, c, host, "Accept-Language: en")
		want("", "en") // the German one is older than the POST
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
}

// fallbacks records the events of calls that have a fallback.
type fallbacks struct{ announced, answered, failed int }

func (f *fallbacks) Observe(_ context.Context, e lull.Event) {
	switch {
	case e.Kind == event.CallEnded && e.Fallback:
		f.announced++
	case e.Kind == event.FallbackEnded && e.Err == nil:
		f.answered++
	case e.Kind == event.FallbackEnded:
		f.failed++
	}
}

// A stale response stands for failures of the dependency. A permanent failure, and one of the caller's
// own, come back as they are. Observers see each as a fallback that was announced and has answered.
func TestWhenAStaleResponseIsServed(t *testing.T) {
	quota := budget.Config{Stock: 1, Ratio: 0.01}
	for name, c := range map[string]struct {
		policy  func(*lull.Policy)
		answer  http.HandlerFunc
		before  func(*http.Client)
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		options []lull.CallOption
		reason  engine.Reason // Success: not served
	}{
		"attempts":    {reason: engine.AttemptsExhausted},
		"one attempt": {options: []lull.CallOption{lull.Once()}, reason: engine.AttemptsExhausted},
		"budget":      {policy: func(p *lull.Policy) { p.Budget = quota }, reason: engine.BudgetExhausted},
		"overloaded": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Should-Retry", "false")
			w.WriteHeader(503)
		}, reason: engine.Overloaded},
		"a long hint": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		}, reason: engine.HintTooLong},
		"429": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, reason: engine.AttemptsExhausted},
		"unanswered": {policy: func(p *lull.Policy) { p.Timeouts = lull.TimeoutsNever },
			answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, reason: engine.Unanswered},
		"the caller's time": {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, reason: engine.Deadline},
		"the policy's time": {policy: func(p *lull.Policy) { p.Deadline, p.AttemptTimeout = 2*time.Second, time.Second },
			answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, reason: engine.Deadline},
		"permanent": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }},
		"501":       {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) }},
		"canceled": {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}},
		"canceled before": {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}},
		"not idempotent": {options: []lull.CallOption{lull.NotIdempotent()}},
		"not idempotent, overloaded": {options: []lull.CallOption{lull.NotIdempotent()}, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Should-Retry", "false")
			w.WriteHeader(503)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			handler := func(w http.ResponseWriter, r *http.Request) {
				if n := sent.Add(1); n == 1 {
					io.WriteString(w, "stored")
					return
				}
				if c.answer == nil {
					panic(http.ErrAbortHandler)
				}
				c.answer(w, r)
			}
			p := eager
			if c.policy != nil {
				c.policy(&p)
			}
			seen := new(fallbacks)
			inBubble(t, p, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
				getWith(t, client, host)
				defer func() {
					want := fallbacks{}
					if c.reason != engine.Success {
						want = fallbacks{announced: 1, answered: 1}
					}
					check.Equal(t, *seen, want, "fallbacks")
				}()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.ctx != nil {
					ctx, cancel = c.ctx(ctx)
				}
				defer cancel()
				resp, err := client.Do(must(http.NewRequestWithContext(lullhttp.WithCall(ctx, c.options...), "GET", host, nil)))
				if err != nil {
					if c.reason != engine.Success {
						t.Error(err)
					}
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				o := lullhttp.OutcomeOf(resp)
				if o.Stale != (c.reason != engine.Success) || o.Stale && (o.Reason != c.reason || string(body) != "stored") {
					t.Errorf("%q, %+v, want %v", body, o, c.reason)
				}
			}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}), lullhttp.With(lull.WithObserver(seen)))
		})
	}
}

// If nothing is stored the call's failure comes back, and observers see a fallback that failed.
func TestNothingIsStored(t *testing.T) {
	seen := new(fallbacks)
	inBubble(t, eager, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
		if _, _, err := getWith(t, client, host); !errors.Is(err, lull.ErrAttemptsExhausted) {
			t.Errorf("error %v", err)
		}
		check.Equal(t, *seen, fallbacks{announced: 1, failed: 1}, "fallbacks")
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}), lullhttp.With(lull.WithObserver(seen)))
}

// With an open circuit the response comes at once. As many attempts are made as without WithStale, and
// a client of lull above takes it for a success.
func TestAnOutageWithStaleResponses(t *testing.T) {
	p := eager
	p.Breaker = breaker.Config{}
	attempts := map[bool][]time.Duration{}
	for _, stale := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				at := time.Since(begin)
				attempts[stale] = append(attempts[stale], at)
				if at > 10*time.Second && at < 70*time.Second {
					return &http.Response{StatusCode: 503, Body: http.NoBody, Header: http.Header{}}, nil
				}
				return &http.Response{StatusCode: 200, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok")), Header: http.Header{}}, nil
			})
			random := func() uint64 { return 1 << 62 }
			opts := []lullhttp.Option{lullhttp.WithBase(base), lullhttp.With(lull.WithRand(random))}
			if stale {
				opts = append(opts, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
			}
			above := must(lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(must(lullhttp.New(p, opts...)))))
			if !stale {
				above.Transport = must(lullhttp.New(p, opts...))
			}
			good, calls := 0, 0
			for time.Since(begin) < 90*time.Second {
				resp, body, err := getWith(t, above, fmt.Sprintf("%s%d", host, calls%5))
				if calls++; err == nil && resp.StatusCode == 200 && body == "ok" {
					good++
				}
				time.Sleep(100 * time.Millisecond)
			}
			if stale && good != calls || !stale && good > calls/2 {
				t.Errorf("stale %v: %d of %d calls succeed", stale, good, calls)
			}
		})
	}
	check.Slices(t, attempts[true], attempts[false], "the times of the attempts")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A body that is not read to its end, breaks off or is too large is not stored.
func TestOnlyWholeBodiesAreStored(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		read    int64
		want    bool
	}{
		"whole":   {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "0123456789") }, 10, true},
		"in part": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "0123456789") }, 9, false},
		"chunked, whole": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "0123456789")
		}, 11, true},
		"cut":            {func(w http.ResponseWriter, _ *http.Request) { cutOff(w, content[:10]) }, 11, false},
		"too large":      {func(w http.ResponseWriter, _ *http.Request) { w.Write(content) }, 1 << 20, false},
		"large, chunked": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.Write(content) }, 1 << 20, false},
		"large, with a small end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(content[:20_000])
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
			io.WriteString(w, "end")
		}, 1 << 20, false},
		"a large header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", string(content))
			io.WriteString(w, "0123456789")
		}, 10, false},
		"empty": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			handler := func(w http.ResponseWriter, r *http.Request) {
				if n := sent.Add(1); n > 1 {
					panic(http.ErrAbortHandler)
				}
				c.handler(w, r)
			}
			inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
				resp := must(client.Get(host))
				io.CopyN(io.Discard, resp.Body, c.read)
				resp.Body.Close()
				_, _, err := getWith(t, client, host)
				check.Equal(t, err == nil, c.want, "served")
			}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour, EntryBytes: 10_000}))
		})
	}
}

// mapStore is a store of others, which may be slow, forgetful and wrong.
type mapStore struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (s *mapStore) Get(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	return v, ok
}

func (s *mapStore) Set(key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

func (s *mapStore) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

// A store of others' keeps what is stored for several transports. What it returns may be anything.
func TestAStoreOfOthers(t *testing.T) {
	store := &mapStore{values: map[string][]byte{}}
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n > 1 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "stored")
	}
	option := lullhttp.WithStale(lullhttp.Stale{For: time.Hour, Store: store})
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		getWith(t, c, host)
		other := client(t, eager, lullhttp.WithBase(c.Transport.(*lullhttp.Transport).WrappedRoundTripper()), option)
		_, body, err := getWith(t, other, host)
		if err != nil || body != "stored" {
			t.Errorf("%q, %v", body, err)
		}
		for key, value := range maps.Clone(store.values) {
			for i := range value {
				store.Set(key, value[:i])
				if _, body, err := getWith(t, other, host); err == nil {
					t.Fatalf("%q is served of %d bytes", body, i)
				}
			}
			store.Set(key, bytes.Replace(value, []byte("200"), []byte("500"), 1))
			if resp, _, err := getWith(t, other, host); err == nil {
				t.Errorf("%d is served", resp.StatusCode)
			}
		}
	}, option)
}

// What may not be stored does not reach the store, whether it would be served or not.
func TestWhatIsNotStored(t *testing.T) {
	for _, c := range []struct{ request, response string }{
		{"", "Cache-Control: no-store"}, {"", "Cache-Control: private"}, {"", "Cache-Control: no-cache"}, {"", "Vary: *"},
		{"Cache-Control: no-store", ""}, {"Authorization: A", ""}, {"Cookie: a=1", ""}, {"Range: bytes=0-", ""},
	} {
		store := &mapStore{values: map[string][]byte{}}
		handler := func(w http.ResponseWriter, r *http.Request) {
			setHeader(w.Header(), c.response)
			io.WriteString(w, "secret")
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			getWith(t, client, host, c.request)
			if len(store.values) > 0 {
				t.Errorf("%+v: %q", c, store.values)
			}
		}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour, Store: store}))
	}
}

// Requests at the same time see whole responses only.
func TestStaleResponsesConcurrently(t *testing.T) {
	var down atomic.Bool
	handler := func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Vary", "Foo")
		io.WriteString(w, r.URL.Path+r.Header.Get("Foo"))
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 50 {
					path, foo := fmt.Sprint("/", j%3), fmt.Sprint(i%2)
					if i == 7 && j%10 == 0 {
						down.Store(!down.Load())
					}
					_, body, err := getWith(t, c, "http://example.test"+path, "Foo: "+foo)
					if err == nil && body != path+foo {
						t.Errorf("%q", body)
					}
				}
			})
		}
		wg.Wait()
	}, lullhttp.WithStale(lullhttp.Stale{For: time.Hour, Entries: 5}))
}

func TestStaleIsValidated(t *testing.T) {
	for _, c := range []struct {
		stale lullhttp.Stale
		field string
	}{{lullhttp.Stale{For: -1}, "For"}, {lullhttp.Stale{Entries: -1}, "Entries"}, {lullhttp.Stale{Bytes: -1}, "Bytes"}, {lullhttp.Stale{EntryBytes: -1}, "EntryBytes"},
		{lullhttp.Stale{EntryBytes: lullhttp.DefaultStaleBytes/8 + 1}, "EntryBytes"}, {lullhttp.Stale{Bytes: 1 << 10, EntryBytes: 1 << 10}, "EntryBytes"}} {
		if _, err := lullhttp.New(lull.Policy{}, lullhttp.WithStale(c.stale)); err == nil || !strings.Contains(err.Error(), c.field+" is ") {
			t.Errorf("%+v: %v", c.stale, err)
		}
	}
}

// The error of the call is that of the layer next to the failure.
func TestStaleOverALayerBelow(t *testing.T) {
	var sent atomic.Int64
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		if n := sent.Add(1); n > 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: 200, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok")), Header: http.Header{}}, nil
	})
	below := transport(t, eager, lullhttp.WithBase(base))
	c := client(t, eager, lullhttp.WithBase(below), lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	getWith(t, c, host)
	resp, body, err := getWith(t, c, host)
	if err != nil || body != "ok" {
		t.Fatalf("%q, %v", body, err)
	}
	check.Equal(t, lullhttp.OutcomeOf(resp).Reason, engine.AttemptsExhausted, "reason")
	if errors.Is(err, io.ErrUnexpectedEOF) || sent.Load() != 4 {
		t.Errorf("%d attempts, %v", sent.Load(), err)
	}
}

func ExampleWithStale() {
	down := false
	server := newServer(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "the price is 7")
	})
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
	if err != nil {
		panic(err)
	}
	for range 2 {
		resp, err := client.Get(server.URL)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		o := lullhttp.OutcomeOf(resp)
		fmt.Println(string(body), o.Stale, o.Reason)
		down = true
	}
	// Output:
	// the price is 7 false success
	// the price is 7 true attempts_exhausted
}
