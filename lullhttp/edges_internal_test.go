package lullhttp

import (
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// A body whose length is not known is an upload, and so is one that does not fit into what
// the system takes at once. A length of 0 with a body is unknown, as for net/http.
func TestIsUpload(t *testing.T) {
	body := io.NopCloser(strings.NewReader("x"))
	for _, c := range []struct {
		body   io.ReadCloser
		length int64
		want   bool
	}{
		{nil, 0, false}, {nil, -1, false}, {http.NoBody, 0, false}, {http.NoBody, -1, false},
		{body, 0, true}, {body, -1, true}, {body, 1, false}, {body, uploadBytes, false}, {body, uploadBytes + 1, true},
	} {
		check.Equal(t, isUpload(&http.Request{Body: c.body, ContentLength: c.length}), c.want, "body %v of length %d", c.body, c.length)
	}
}

// A made key is a UUID of version 4 (RFC 9562), and no two are the same.
func TestAMadeKeyIsARandomUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	made := map[string]bool{}
	for range 1000 {
		u := uuid()
		if !form.MatchString(u) {
			t.Fatalf("%q is no UUID of version 4", u)
		}
		made[u[:8]], made[u[24:]] = true, true // each of its ends is drawn
	}
	if len(made) < 1990 {
		t.Errorf("1000 keys have %d different ends", len(made))
	}
}

// What is kept of responses lives as long as they do, whatever becomes of the body.
func TestOutcomesAreForgotten(t *testing.T) {
	var keys []weak.Pointer[http.Response]
	kept := &http.Response{StatusCode: 503}
	Outcome{Attempts: 4}.record(kept)
	for range 100 {
		resp := &http.Response{StatusCode: 503}
		Outcome{Attempts: 3}.record(resp)
		keys = append(keys, weak.Make(resp))
	}
	left := func() (n int) {
		for _, key := range keys {
			if _, ok := outcomes.Load(key); ok {
				n++
			}
		}
		return n
	}
	for range 5000 {
		if left() == 0 {
			if kept.Body = http.NoBody; OutcomeOf(kept).Attempts != 4 {
				t.Errorf("%+v of a response in use", OutcomeOf(kept))
			}
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Errorf("%d of 100 are left", left())
}

// What has no body to read, or one that is not a response's, is left alone, and so is all of which nothing is asked for; one
// byte is peeked at where there is one.
func TestPeekAtWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upgraded := &http.Response{StatusCode: 101, Body: io.NopCloser(strings.NewReader("x"))}
		for _, resp := range []*http.Response{upgraded, {StatusCode: 200}} {
			was := resp.Body
			if b := Peek(resp, 1); b != nil || resp.Body != was {
				t.Errorf("Peek at status %d is %q", resp.StatusCode, b)
			}
		}
		resp := &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("xy"))}
		was := resp.Body
		for _, n := range []int{0, -1} {
			if b := Peek(resp, n); b != nil || resp.Body != was {
				t.Errorf("Peek(%d) is %q", n, b)
			}
		}
		if b := Peek(resp, 1); string(b) != "x" {
			t.Errorf("Peek(1) is %q", b)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "xy" || err != nil {
			t.Errorf("and then the body is %q, %v", b, err)
		}
	})
}

// A fraction is of digits, and of nothing that stands beside them among the characters.
func TestFractionsAreOfDigits(t *testing.T) {
	for i := range 256 {
		c := string([]byte{byte(i)})
		_, ok := parseFraction("1"+c, time.Second)
		check.Equal(t, ok, strings.Contains("0123456789", c), "parseFraction(1%q)", c)
	}
}

func TestPatternsOfClients(t *testing.T) {
	var routes patternTable[string]
	for _, p := range []string{
		"api.example.com", "POST api.example.com/search/{index}", "Orders:8080", "orders/", "/health", "PUT\t[::1]:9000/x",
		"GET api.example.com/v1/", "api.example.com/{$}", "files/{bucket}/{object...}", "files/tmp/",
	} {
		must.Succeed(routes.add(p, p))
	}
	for request, want := range map[string]string{
		"PUT https://API.example.com:443":           "api.example.com/{$}",
		"PUT http://api.example.com./health":        "api.example.com",
		"PUT http://api.example.com//health/../x":   "api.example.com",
		"HEAD http://api.example.com/v1/health":     "GET api.example.com/v1/",
		"PUT http://files/a/b/c%2Fd":                "files/{bucket}/{object...}",
		"PUT http://files/a":                        "files/{bucket}/{object...}",
		"PUT http://files/tmp/a":                    "files/tmp/",
		"CONNECT http://orders/7":                   "orders/",
		"POST https://api.example.com/search/books": "POST api.example.com/search/{index}",
		"GET http://orders:8080/7":                  "Orders:8080",
		"GET http://orders/7":                       "orders/",
		"GET http://orders:9090/7":                  "",
		"GET http://orders:9090/health":             "/health",
		"PUT http://[0:0::1]:9000/x":                "PUT\t[::1]:9000/x",
	} {
		method, u, _ := strings.Cut(request, " ")
		req := must.Have(http.NewRequest(method, u, nil))
		if got, _ := routes.find(req, canonicalHost(req.URL.Scheme, req.URL.Host)); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	for _, bad := range []string{"", "POST ", "api.example.com", "a b c/", "/x/{", "h{x}/", "orders/", "Orders:08080", "files/{x}/y"} {
		if err := routes.add(bad, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCanonicalHost(t *testing.T) {
	for _, c := range [][3]string{
		{"http", "example.com", "example.com"},
		{"http", "EXAMPLE.com", "example.com"},
		{"http", "example.com:80", "example.com"},
		{"https", "example.com:443", "example.com"},
		{"https", "example.com:0443", "example.com"},
		{"http", "example.com:", "example.com"},
		{"http", "example.com.", "example.com"},
		{"http", "Example.com.:080", "example.com"},
		{"http", "example.com:443", "example.com:443"},
		{"https", "example.com:80", "example.com:80"},
		{"http", "example.com.:8080", "example.com:8080"},
		{"http", "example.com:8080", "example.com:8080"},
		{"http", "example.com:08080", "example.com:8080"},
		{"http", "[::1]", "[::1]"},
		{"http", "[::1]:80", "[::1]"},
		{"http", "[0:0:0:0:0:0:0:1]:8080", "[::1]:8080"},
		{"http", "[::1]:8080", "[::1]:8080"},
		{"http", "[2001:DB8::A]", "[2001:db8::a]"},
		{"http", "[fe80::1%eth0]:80", "[fe80::1%eth0]"},
		{"http", "[::ffff:10.0.0.7]:8080", "10.0.0.7:8080"},
		{"http", "10.0.0.7:80", "10.0.0.7"},
		{"", "example.com:80", "example.com"},
		{"", "example.com:443", "example.com"},
		{"http", ".", "."},
		{"http", "", ""},
		{"http", "[nonsense", "[nonsense"},
		{"http", "example.com:0", "example.com:0"},
	} {
		if got := canonicalHost(c[0], c[1]); got != c[2] {
			t.Errorf("canonicalHost(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		} else if again := canonicalHost(c[0], got); again != got {
			t.Errorf("canonicalHost(%q, %q) = %q", c[0], got, again)
		}
	}
	for _, host := range []string{"example.com", "example.com:80", "example.com.", "example.com:8080", "10.0.0.7:9000"} {
		check.Equal(t, testing.AllocsPerRun(100, func() { canonicalHost("http", host) }), 0, "canonicalHost(%q): allocations", host)
	}
}
