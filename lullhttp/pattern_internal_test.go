package lullhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

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
		if n := testing.AllocsPerRun(100, func() { canonicalHost("http", host) }); n != 0 {
			t.Errorf("canonicalHost(%q): %v allocations", host, n)
		}
	}
}
