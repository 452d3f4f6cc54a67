package lullhttp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Any set of patterns that http.ServeMux takes matches as it does, for paths that are
// clean. (It answers /tree by /tree/, which for a client are two things.)
func TestPatternsMatchAsServeMux(t *testing.T) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	segment := func() string { return pick("a", "b", "c%2Fd", "{x}", "{y}") }
	matched := 0
	for round := range 4000 {
		var ours table[string]
		mux := http.NewServeMux()
		var patterns []string
		for range 1 + r.IntN(8) {
			path := "/"
			for i := range r.IntN(4) {
				path += fmt.Sprint(segment(), "/")
				path = strings.Replace(path, "{x}/", fmt.Sprintf("{x%d}/", i), 1)
				path = strings.Replace(path, "{y}/", fmt.Sprintf("{y%d}/", i), 1)
			}
			switch r.IntN(4) {
			case 0:
				path = strings.TrimSuffix(path, "/")
			case 1:
				path += "{$}"
			case 2:
				path += "{rest...}"
			}
			if path == "" {
				path = "/"
			}
			pattern := pick("", "GET ", "HEAD ", "POST ") + pick("", "h", "i") + path
			theirs := func() (err any) {
				defer func() { err = recover() }()
				mux.Handle(pattern, named(pattern))
				return nil
			}()
			err := ours.add(pattern, pattern)
			if (err == nil) != (theirs == nil) {
				t.Fatalf("seed %d, round %d: %q after %q: %v; ServeMux: %v", seed, round, pattern, patterns, err, theirs)
			}
			if err == nil {
				patterns = append(patterns, pattern)
			}
		}
		for range 20 {
			path := "/"
			for range r.IntN(5) {
				path += pick("a", "b", "c%2Fd", "e") + "/"
			}
			if r.IntN(2) == 0 && path != "/" {
				path = strings.TrimSuffix(path, "/")
			}
			host := pick("h", "i", "j")
			u, err := url.Parse("http://" + host + path)
			if err != nil {
				t.Fatal(err)
			}
			req := &http.Request{Method: pick("GET", "HEAD", "POST", "PUT"), URL: u, Host: host}
			want := ""
			h, _ := mux.Handler(req)
			if is, ok := h.(named); ok {
				want = string(is)
				matched++
			} else if strings.HasSuffix(fmt.Sprintf("%T", h), "redirectHandler") {
				continue
			}
			got, ok := ours.find(req, host)
			if got != want || ok != (want != "") {
				t.Fatalf("seed %d, round %d: %s %s of %q is %q; ServeMux: %q", seed, round, req.Method, u, patterns, got, want)
			}
		}
	}
	if matched < 10000 {
		t.Errorf("only %d requests matched", matched)
	}
}

type named string

func (named) ServeHTTP(http.ResponseWriter, *http.Request) {}

func TestPatternsOfClients(t *testing.T) {
	var routes table[string]
	for _, p := range []string{
		"api.example.com", "POST api.example.com/search/{index}", "Orders:8080", "orders/", "/health", "PUT\t[::1]:9000/x",
	} {
		if err := routes.add(p, p); err != nil {
			t.Fatal(err)
		}
	}
	for request, want := range map[string]string{
		"GET https://API.example.com:443":           "api.example.com",
		"GET http://api.example.com./health":        "api.example.com",
		"POST https://api.example.com/search/books": "POST api.example.com/search/{index}",
		"GET http://orders:8080/7":                  "Orders:8080",
		"GET http://orders/7":                       "orders/",
		"GET http://orders:9090/7":                  "",
		"GET http://orders:9090/health":             "/health",
		"PUT http://[0:0::1]:9000/x":                "PUT\t[::1]:9000/x",
	} {
		method, u, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, u, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := routes.find(req, canonicalHost(req.URL.Scheme, req.URL.Host)); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	for _, bad := range []string{"", "POST ", "api.example.com", "a b c/", "/x/{", "h{x}/"} {
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
		if n := testing.AllocsPerRun(100, func() { canonicalHost("http", host) }); n != 0 {
			t.Errorf("canonicalHost(%q): %v allocations", host, n)
		}
	}
}
