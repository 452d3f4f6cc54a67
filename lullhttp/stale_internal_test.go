package lullhttp

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
)

// The store holds no more than its bounds, forgets what was not used for the longest, and has the
// latest value of what it still has.
func TestMemoryStore(t *testing.T) {
	const entries, bytes = 20, 20_000
	s := newMemoryStore(entries, bytes)
	rnd := rand.New(rand.NewPCG(3, 4))
	latest := map[string][]byte{}
	for range 20_000 {
		key := fmt.Sprint(rnd.IntN(40))
		switch rnd.IntN(4) {
		case 0:
			s.Delete(key)
			delete(latest, key)
		case 1:
			if got, ok := s.Get(key); ok && !slices.Equal(got, latest[key]) {
				t.Fatalf("%s: %d bytes, want %d", key, len(got), len(latest[key]))
			}
		default:
			value := make([]byte, rnd.IntN(2000))
			if rnd.IntN(50) == 0 {
				value = make([]byte, bytes)
			}
			s.Set(key, value)
			latest[key] = value
		}
		var sum int64
		for _, at := range s.entries {
			sum += at.Value.(*memoryEntry).size()
		}
		if len(s.entries) > entries || sum > bytes || sum != s.bytes || s.used.Len() != len(s.entries) {
			t.Fatalf("%d entries of %d bytes, %d by its own account", len(s.entries), sum, s.bytes)
		}
	}
	s = newMemoryStore(2, bytes)
	for _, key := range []string{"a", "b"} {
		s.Set(key, nil)
	}
	s.Get("a")
	s.Set("c", nil)
	check.Slices(t, slices.Sorted(maps.Keys(s.entries)), []string{"a", "c"}, "entries")
}

// Directives stand in lists, in any case, with and without quotes. What is quoted is a value.
func TestParseCacheControl(t *testing.T) {
	none := cacheControl{maxAge: absent, sharedMaxAge: absent, staleIfError: absent, maxStale: absent, minFresh: absent}
	for _, c := range []struct {
		lines []string
		want  func(*cacheControl)
	}{
		{nil, func(*cacheControl) {}},
		{[]string{"", " , ,"}, func(*cacheControl) {}},
		{[]string{"No-Store , PRIVATE", "public"}, func(c *cacheControl) { c.noStore, c.private, c.public = true, true, true }},
		{[]string{"must-revalidate,proxy-revalidate,no-cache"}, func(c *cacheControl) { c.mustRevalidate, c.proxyRevalidate, c.noCache = true, true, true }},
		{[]string{`ext="a, no-store", max-age=5`}, func(c *cacheControl) { c.maxAge = 5 * time.Second }},
		{[]string{`ext="a\", no-store", max-age=5`}, func(c *cacheControl) { c.maxAge = 5 * time.Second }},
		{[]string{`ext="ab\\", no-store`}, func(c *cacheControl) { c.noStore = true }},
		{[]string{`ext="open, no-store`}, func(c *cacheControl) { c.noStore = true }}, // a quote that is never closed hides nothing
		{[]string{`no-cache="Set-Cookie, X", private="A"`}, func(c *cacheControl) { c.noCache, c.private = true, true }},
		{[]string{`max-age="7", s-maxage = 8`}, func(c *cacheControl) { c.maxAge, c.sharedMaxAge = 7*time.Second, 8*time.Second }},
		{[]string{"max-age=9, max-age=3", "max-age=5"}, func(c *cacheControl) { c.maxAge = 3 * time.Second }},
		{[]string{"max-age=-1, s-maxage, stale-if-error=x"}, func(c *cacheControl) { c.maxAge, c.sharedMaxAge, c.staleIfError = 0, 0, 0 }},
		{[]string{"max-age=99999999999999999999"}, func(c *cacheControl) { c.maxAge = maxWait }},
		{[]string{"max-stale"}, func(c *cacheControl) { c.maxStale = maxWait }},
		{[]string{"max-stale=4, min-fresh=2, min-fresh=6"}, func(c *cacheControl) { c.maxStale, c.minFresh = 4*time.Second, 6*time.Second }},
		{[]string{"max-aged=4, xno-store, no-store=x"}, func(c *cacheControl) { c.noStore = true }},
	} {
		want := none
		c.want(&want)
		h := http.Header{}
		if c.lines != nil {
			h["Cache-Control"] = c.lines
		}
		check.Equal(t, parseCacheControl(h), want, "%q", c.lines)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

type bodyTripper func(*http.Request) *http.Response

func (f bodyTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// Rule 19: a server that answers with large, endless or announced bodies, many at once, takes no more
// memory than the bounds.
func TestRule19StaleMemoryIsBounded(t *testing.T) {
	const bound = 4 << 20
	n := 0
	base := bodyTripper(func(r *http.Request) *http.Response {
		n++
		resp := &http.Response{StatusCode: 200, ContentLength: -1, Body: endless{}, Header: http.Header{"Vary": {"A, B"}}}
		switch n % 3 {
		case 0:
			resp.ContentLength, resp.Body = 900_000, io.NopCloser(io.LimitReader(endless{}, 900_000))
		case 1:
			resp.ContentLength = 1 << 62
		}
		return resp
	})
	tr, err := New(lull.Policy{}, WithBase(base), WithStale(Stale{For: time.Hour, Bytes: bound}))
	if err != nil {
		t.Fatal(err)
	}
	store := tr.stale.Store.(*memoryStore)
	var open []io.Closer
	piece := make([]byte, 10_000)
	for i := range 2000 {
		req, _ := http.NewRequest("GET", fmt.Sprintf("http://example.test/%d", i), nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp.Body) // left in the middle
		if i%3 == 2 {
			io.Copy(io.Discard, io.LimitReader(resp.Body, 1_000_000))
		} else {
			io.ReadFull(resp.Body, piece)
		}
		if reading := tr.stale.reading.Load(); reading > bound/4 || store.bytes+reading > bound || reading < 0 {
			t.Fatalf("%d bytes are stored, %d being read", store.bytes, reading)
		}
	}
	if len(store.entries) == 0 {
		t.Error("nothing was stored")
	}
	for _, body := range open {
		body.Close()
		body.Close()
	}
	check.Equal(t, tr.stale.reading.Load(), 0, "bytes kept of bodies that are closed")
	runtime.KeepAlive(tr)
}

// What another process has stored with a clock that is ahead does not keep newer responses out.
func TestAClockThatIsAheadKeepsNothingOut(t *testing.T) {
	now := time.Now()
	s := &staleResponses{Stale: Stale{Store: newMemoryStore(9, 1<<20)}}
	stored := func(at time.Time, names ...string) string {
		s.set("key", map[bool]string{true: "variant", false: "key"}[len(names) > 0], names, at, encodeHeader(&http.Response{StatusCode: 200}, 0, at, at))
		value, _ := s.Store.Get("key")
		return storedAt(value).Sub(now).String()
	}
	check.Equal(t, stored(now.Add(time.Hour)), "1h0m0s", "stored, by a clock that is ahead")
	check.Equal(t, stored(now.Add(-time.Minute)), "-1m0s", "stored in its place")
	check.Equal(t, stored(now.Add(-time.Hour)), "-1m0s", "stored in the place of a newer one")
	check.Equal(t, stored(now.Add(-time.Hour), "Foo"), "-1m0s", "stored in the place of a newer one without Vary")
	check.Equal(t, stored(now.Add(-time.Second), "Foo"), "-1s", "the list in the place of an older response")
	check.Equal(t, stored(now.Add(-time.Minute)), "-1s", "stored in the place of a newer list")
}

// Whatever stands in the field, times are absent or not negative, and the order of members does not
// matter. What is quoted is no directive.
func FuzzCacheControl(f *testing.F) {
	for _, s := range []string{
		"max-age=60, stale-if-error=600", "no-store", `no-cache="a, b", max-age=1`, "MAX-AGE=5", "max-age=-1", "max-age", "max-age=1.5", "max-age=99999999999999999999",
		`ext="no-store, private", s-maxage=3`, `ext="\", no-store`, "max-stale", "max-stale=5,min-fresh=6", ",,,", "private , public", "max-age = 5", `max-age="5"`, `"`, `a="b`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := parseCacheControl(http.Header{"Cache-Control": {s}})
		for _, d := range []time.Duration{c.maxAge, c.sharedMaxAge, c.staleIfError, c.maxStale, c.minFresh} {
			if d < 0 && d != absent {
				t.Fatalf("%q: %+v", s, c)
			}
		}
		var parts []string
		for rest, n := s, 0; rest != ""; n++ {
			before := rest
			_, _, rest = cutDirective(rest)
			if len(rest) >= len(before) {
				t.Fatalf("%q: the rest is %q", before, rest)
			}
			part := strings.TrimSuffix(before, rest)
			parts = append([]string{strings.TrimSuffix(part, ",")}, parts...)
		}
		if strings.Count(s, `"`)%2 == 0 && !strings.Contains(s, `\`) {
			if back := parseCacheControl(http.Header{"Cache-Control": parts}); back != c && len(parts) > 0 {
				t.Fatalf("%q: %+v, and backwards %+v", s, c, back)
			}
		}
		if two := parseCacheControl(http.Header{"Cache-Control": {s, s}}); two != c {
			t.Fatalf("%q: %+v, and twice %+v", s, c, two)
		}
	})
}

// A store may return anything. What is read of it is a whole response with a body of its length.
func FuzzStoredResponse(f *testing.F) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Vary": {"A"}, "X": {"\xff"}}, Uncompressed: true}
	f.Add(append(encodeHeader(resp, 4, time.Unix(1, 0), time.Unix(2, 0)), "body"...))
	f.Add(encodeVary(time.Unix(5, 0), []string{"A", "B"}))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLull-Requested: 1\r\nLull-Answered: 1\r\n\r\n1\r\na\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		req := &http.Request{Method: "GET"}
		decodeVary(b)
		r, ok := decodeResponse(b, req)
		if !ok {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != max(r.ContentLength, 0) {
			t.Fatalf("%d bytes of %d, %v", len(body), r.ContentLength, err)
		}
		if r.age(time.Unix(100, 0)) < 0 || r.lifetime(true) < 0 || r.lifetime(false) < 0 {
			t.Fatalf("age %v, lifetime %v", r.age(time.Unix(100, 0)), r.lifetime(true))
		}
		again, ok := decodeResponse(append(encodeHeader(r.Response, len(body), r.requested, r.answered), body...), req)
		if !ok || again.StatusCode != r.StatusCode || again.answered != r.answered {
			t.Fatalf("%+v, and then %+v, %v", r, again, ok)
		}
	})
}
