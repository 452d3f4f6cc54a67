package lullhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// All spellings of a host are one dependency, and go to its endpoints.
func TestHostSpellings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			endpoints := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"there.test"}))
			tr := transport(t, lull.Policy{}, lullhttp.WithBase(base), lullhttp.WithEndpoints(c.given, endpoints))
			for _, u := range c.urls {
				req, _ := http.NewRequest("GET", u, nil)
				sent(t, tr, req)
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
	})
}

func TestWithPolicies(t *testing.T) {
	tr := transport(t, lull.Policy{Attempts: 5},
		lullhttp.WithPolicies(map[string]lull.Policy{"Payments.internal:80": {Attempts: 2}, "PUT payments.internal/files/": {Attempts: 7}}),
		lullhttp.WithPolicies(map[string]lull.Policy{"127.0.0.1:8080": {Attempts: 3}}))
	for request, want := range map[string]string{
		"GET http://payments.internal/x":          "payments.internal 2",
		"GET https://payments.internal":           "payments.internal 2",
		"PUT http://payments.internal/files/7":    "PUT payments.internal/files/ 7",
		"PUT http://payments.internal/files":      "PUT payments.internal/files/ 7",
		"GET http://payments.internal:8080/x":     "payments.internal:8080 5",
		"GET http://127.0.0.1:8080/payments":      "127.0.0.1:8080 3",
		"GET http://127.0.0.1:8081/payments":      "127.0.0.1:8081 5",
		"PUT http://files.internal/files/payment": "files.internal 5",
	} {
		method, u, _ := strings.Cut(request, " ")
		req, _ := http.NewRequest(method, u, nil)
		d := tr.Dependency(req)
		if got := fmt.Sprint(d.Name(), " ", d.Policy().Attempts); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
		if again := tr.Dependency(req); again != d {
			t.Errorf("%s: two dependencies", request)
		}
	}
	for pattern, p := range map[string]lull.Policy{
		"/poll":                {},
		"GET /poll":            {},
		"":                     {},
		"payments.internal/x{": {},
		"payments.internal":    {Attempts: -1},
	} {
		_, err := lullhttp.New(lull.Policy{}, lullhttp.WithPolicies(map[string]lull.Policy{pattern: p}))
		if err == nil || !strings.Contains(err.Error(), "WithPolicies") || !strings.Contains(err.Error(), fmt.Sprintf("%q", pattern)) {
			t.Errorf("%q %+v: %v", pattern, p, err)
		}
	}
	_, err := lullhttp.New(lull.Policy{}, lullhttp.WithPolicies(map[string]lull.Policy{"a": {}, "a:80/": {}}))
	if err == nil {
		t.Error("two policies for one host")
	}
}

// Rule 21: an observer of the transport that would not hear of the dependencies that
// its caller has made is an error.
func TestRule21ObserverBesideWithDependencies(t *testing.T) {
	d := must(lull.NewDependency("payments", lull.Policy{}))
	pick := lullhttp.WithDependencies(func(*http.Request) *lull.Dependency { return d })
	for _, o := range []lullhttp.Option{lullhttp.WithObserver(observe(func(lull.Event) {})), lullhttp.With(lull.WithTiming())} {
		for _, opts := range [][]lullhttp.Option{{pick, o}, {o, pick}} {
			if _, err := lullhttp.New(lull.Policy{}, opts...); err == nil || !strings.Contains(err.Error(), "WithDependencies") {
				t.Errorf("error %v", err)
			}
		}
	}
	if _, err := lullhttp.New(lull.Policy{}, pick); err != nil {
		t.Error(err)
	}
}
