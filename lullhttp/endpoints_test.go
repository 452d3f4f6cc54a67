package lullhttp_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// fleet answers for every host, by its name, and counts what each gets.
type fleet struct {
	answer func(host string, w http.ResponseWriter, r *http.Request)
	mu     sync.Mutex
	got    map[string]int
	order  []string
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if f.got == nil {
		f.got = map[string]int{}
	}
	f.got[r.Host]++
	f.order = append(f.order, r.Host)
	f.mu.Unlock()
	f.answer(r.Host, w, r)
}

func bases(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("http://e%d.test", i))
	}
	return all
}

// withEndpoints makes the set in the bubble that the transport lives in.
func withEndpoints(c outlier.Config, all []string, listeners ...func(outlier.Change)) lullhttp.Option {
	return func(t *lullhttp.Transport) error {
		e, err := lullhttp.NewEndpoints(c, all, listeners...)
		if err != nil {
			return err
		}
		return lullhttp.WithEndpoints("orders", e)(t)
	}
}

const orders = "http://orders/7?q=1"

// Rule 16: deadlines that are too short for any answer fail at every endpoint, and so
// eject none. An endpoint that hangs is found although every caller's deadline is shorter
// than AttemptTimeout.
func TestRule16ShortDeadlinesEjectNoEndpoint(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		var ejected []string
		f := &fleet{answer: func(host string, w http.ResponseWriter, r *http.Request) {
			if hangs && host == "e1.test" {
				<-r.Context().Done()
				return
			}
			time.Sleep(50 * ms)
		}}
		inBubble(t, lull.Policy{Attempts: 1}, f.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
			for n := range 20 * 60 { // twenty calls a second, for a minute
				within := time.Second
				if !hangs && n%2 == 0 {
					within = 5 * ms
				}
				ctx, cancel := context.WithTimeout(t.Context(), within)
				req, _ := http.NewRequestWithContext(ctx, "GET", orders, nil)
				if resp, err := cl.Do(req); err == nil {
					read(t, resp, err)
				}
				cancel()
				time.Sleep(50 * ms)
			}
			if hangs && (len(ejected) == 0 || slices.ContainsFunc(ejected, func(key string) bool { return key != "http://e1.test" })) || !hangs && len(ejected) > 0 {
				t.Errorf("e1 hangs: %v; ejected: %v", hangs, ejected)
			}
		}, withEndpoints(outlier.Config{}, bases(4), func(c outlier.Change) {
			if c.Kind == outlier.Ejected {
				ejected = append(ejected, c.Key)
			}
		}))
	}
}

// A status from 500 counts against an endpoint, and 502, 503 and 504 as a gateway's failure: what gateways answer of what is
// behind them.
func TestFailuresOfEndpoints(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		c := outlier.Config{Choice: outlier.RoundRobin, Statistic: outlier.NoStatistic, Consecutive: 3, ConsecutiveGateway: -1, ConsecutiveLocal: -1}
		if gateway {
			c.Consecutive, c.ConsecutiveGateway = -1, 3
		}
		for _, status := range []int{200, 404, 499, 500, 501, 502, 503, 504, 505, 599} {
			ejected := false
			f := &fleet{answer: func(host string, w http.ResponseWriter, _ *http.Request) {
				if host == "e1.test" {
					w.WriteHeader(status)
				}
			}}
			inBubble(t, lull.Policy{Attempts: 1}, f.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				for range 20 {
					resp, err := cl.Get(orders)
					read(t, resp, err)
					time.Sleep(10 * ms)
				}
				if want := status >= 500 && !gateway || status >= 502 && status <= 504; ejected != want {
					t.Errorf("an endpoint that answers %d was ejected: %v, want %v (for gateway failures: %v)", status, ejected, want, gateway)
				}
			}, withEndpoints(c, bases(2), func(outlier.Change) { ejected = true }))
		}
	}
}

// A retry goes to an endpoint that its call has not tried, and so does a hedge.
func TestARetryPrefersAnotherEndpoint(t *testing.T) {
	sick := &fleet{answer: func(host string, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }}
	four := eager
	four.Attempts = 4
	inBubble(t, four, sick.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		for range 20 {
			sick.order = nil
			resp, err := cl.Get(orders)
			read(t, resp, err)
			if slices.Sort(sick.order); !slices.Equal(sick.order, []string{"e0.test", "e1.test", "e2.test", "e3.test"}) {
				t.Fatalf("four attempts went to %v", sick.order)
			}
		}
	}, withEndpoints(outlier.Config{}, bases(4)))

	slow := &fleet{answer: func(string, http.ResponseWriter, *http.Request) { time.Sleep(15 * ms) }}
	inBubble(t, hedging, slow.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		for range 20 {
			slow.mu.Lock()
			slow.order = nil
			slow.mu.Unlock()
			resp, err := cl.Get(orders)
			read(t, resp, err)
			time.Sleep(time.Second) // both have been answered
			slow.mu.Lock()
			if slices.Sort(slow.order); !slices.Equal(slow.order, []string{"e0.test", "e1.test"}) {
				t.Errorf("two attempts went to %v", slow.order)
			}
			slow.mu.Unlock()
		}
	}, withEndpoints(outlier.Config{}, bases(2)))
}

// The request that an endpoint sees, as an address and as a base.
func TestWhatAnEndpointSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		s := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			got = r
		}))
		address := strings.TrimPrefix(s.URL, "http://")
		for _, c := range []struct{ endpoint, host, want string }{
			{address, "", "orders"},
			{address, "special", "special"},
			{s.URL, "", address},
			{s.URL + "/", "", address},
			{s.URL, "special", "special"},
		} {
			req, _ := http.NewRequest("PUT", "http://orders/a%2Fb?x=1", strings.NewReader("body"))
			if c.host != "" {
				req.Host = c.host
			}
			before := *req.URL
			resp, err := client(t, lull.Policy{}, withEndpoints(outlier.Config{}, []string{c.endpoint})).Do(req)
			read(t, resp, err)
			if got.Host != c.want || got.RequestURI != "/a%2Fb?x=1" || got.ContentLength != 4 {
				t.Errorf("%+v: host %q, URI %q", c, got.Host, got.RequestURI)
			}
			check.Equal(t, *req.URL, before, "%+v: the request's URL is now %v", c, req.URL)
		}
	})
}

func TestEndpointsThatAreNone(t *testing.T) {
	for _, bad := range []string{"", "http://", "http://a/path", "a/b", "http://a?q", "ftp://a", "http://u@a", "a b", ":80", "http://a:x"} {
		if _, err := lullhttp.NewEndpoints(outlier.Config{}, []string{"fine:80", bad}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("endpoint 2 is %q: want an address", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := lullhttp.NewEndpoints(outlier.Config{}, nil); err == nil {
		t.Error("no endpoints are accepted")
	}
	if _, err := lullhttp.NewEndpoints(outlier.Config{MaxEjected: 200, Floor: math.Inf(1)}, bases(1)); err == nil || !strings.Contains(err.Error(), "MaxEjected") || !strings.Contains(err.Error(), "Floor") {
		t.Errorf("a bad configuration: %v", err)
	}
	e := must(lullhttp.NewEndpoints(outlier.Config{}, bases(2)))
	if err := e.Update([]string{"a:1", "no such thing"}); err == nil || len(e.Status()) != 2 {
		t.Errorf("after a bad update (%v) there are %+v", err, e.Status())
	}
}

// Endpoints come and go while calls are under way.
func TestEndpointsMayChangeUnderCalls(t *testing.T) {
	f := &fleet{answer: func(string, http.ResponseWriter, *http.Request) { time.Sleep(ms) }}
	var e *lullhttp.Endpoints
	option := func(tr *lullhttp.Transport) (err error) {
		if e, err = lullhttp.NewEndpoints(outlier.Config{}, bases(3)); err != nil {
			return err
		}
		return lullhttp.WithEndpoints("orders", e)(tr)
	}
	inBubble(t, lull.Policy{Hedge: hedge.Config{Attempts: 2}}, f.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					resp, err := cl.Get(orders)
					read(t, resp, err)
				}
			})
		}
		for i := range 50 {
			if err := e.Update(bases(1 + i%5)); err != nil {
				t.Error(err)
			}
			time.Sleep(ms)
		}
		wg.Wait()
		time.Sleep(time.Second)
		for _, s := range e.Status() {
			check.Equal(t, s.Load, 0, "%s: load: %+v", s.Key, s)
		}
	}, option)
}

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
				check.Equal(t, tr.Dependency(req).Name(), c.name, "%s: dependency", u)
				check.Equal(t, base.reqs[len(base.reqs)-1].URL.Host, "there.test", "%s was sent to", u)
			}
			check.Equal(t, tr.Registry().Len(), 1, "%q: dependencies", c.urls)
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
		check.Equal(t, fmt.Sprint(d.Name(), " ", d.Policy().Attempts), want, "%s", request)
		check.Equal(t, tr.Dependency(req), d, "%s: the dependency", request)
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
