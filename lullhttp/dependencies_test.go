package lullhttp_test

import (
	"net/http"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// All spellings of a host are one dependency, and go to its endpoints.
func TestHostSpellings(t *testing.T) {
	for _, c := range []struct {
		name  string // of the dependency
		given string // to WithEndpoints
		urls  []string
	}{
		{"example.com", "Example.com:443", []string{
			"http://example.com/", "http://EXAMPLE.com/", "http://example.com:80/", "http://example.com./",
			"https://example.com/", "https://example.com:443/", "http://user:password@Example.COM.:080/x?y",
		}},
		{"example.com:8443", "EXAMPLE.com:8443", []string{"http://example.com:8443", "https://Example.com.:8443/"}},
		{"[::1]", "[0::1]:80", []string{"http://[::1]/", "http://[0:0:0:0:0:0:0:1]:80", "https://[::0001]:443/"}},
	} {
		base := &recorder{status: 200}
		endpoints, err := lullhttp.NewEndpoints(outlier.Config{}, []string{"there.test"})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.WithEndpoints(c.given, endpoints))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range c.urls {
			req, _ := http.NewRequest("GET", u, nil)
			if _, err := tr.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			if got := tr.Dependency(req).Name(); got != c.name {
				t.Errorf("%s: dependency %q, want %q", u, got, c.name)
			}
			if got := base.reqs[len(base.reqs)-1].URL.Host; got != "there.test" {
				t.Errorf("%s was sent to %s", u, got)
			}
		}
		if n := tr.Registry().Len(); n != 1 {
			t.Errorf("%q: %d dependencies", c.urls, n)
		}
	}
}
