package lullhttp_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// flaky fails so many times, and then answers.
func flaky(failures int) *httptest.Server {
	return newServer(func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "hello")
	})
}

// newServer is httptest.NewServer, in memory: TestMain lets http.DefaultTransport reach it.
func newServer(h http.HandlerFunc) *httptest.Server {
	s := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: h}}
	s.Start()
	return s
}

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DialContext = memnet.Dial
	os.Exit(m.Run())
}

// quick waits for a millisecond at most, has retries in stock, and all the time.
var quick = lull.Policy{Attempts: 3, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
	Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond}, Budget: budget.Config{Stock: 10}}

func ExampleNewClient() {
	server := flaky(2)
	defer server.Close()
	client, err := lullhttp.NewClient(quick)
	if err != nil {
		panic(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), "in", lullhttp.OutcomeOf(resp).Attempts, "attempts")
	// Output: 200 hello in 3 attempts
}

// A POST is repeated when it carries a key by which the server recognises it.
func ExampleWithIdempotencyKeys() {
	post := func(opts ...lullhttp.Option) {
		server := flaky(1)
		defer server.Close()
		client, _ := lullhttp.NewClient(quick, opts...)
		resp, _ := client.Post(server.URL, "text/plain", strings.NewReader("charge"))
		resp.Body.Close()
		o := lullhttp.OutcomeOf(resp)
		fmt.Println(resp.StatusCode, o.Attempts, o.Reason)
	}
	post()
	post(lullhttp.WithIdempotencyKeys(nil))
	// Output:
	// 503 1 not_idempotent
	// 200 2 success
}

// A conflict that one's own API means to be repeated.
func ExampleWithStatus() {
	tries := 0
	server := newServer(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusConflict)
		}
	})
	defer server.Close()
	client, _ := lullhttp.NewClient(quick, lullhttp.WithStatus(http.StatusConflict, lull.KindTransient))
	resp, _ := client.Get(server.URL)
	resp.Body.Close()
	fmt.Println(resp.StatusCode, tries)
	// Output: 200 2
}

// An API whose problem details have what may be repeated.
func ExampleWithProblem() {
	tries := 0
	server := newServer(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"type": "https://api.example.com/problems/row-locked", "status": 409}`)
		}
	})
	defer server.Close()
	client, _ := lullhttp.NewClient(quick, lullhttp.WithProblem("https://api.example.com/problems/row-locked", lull.KindTransient))
	resp, _ := client.Get(server.URL)
	resp.Body.Close()
	fmt.Println(resp.StatusCode, tries)
	// Output: 200 2
}

// One dependency for a service with several hosts, instead of one for each host.
func ExampleWithDependencies() {
	search, _ := lull.NewDependency("search", quick)
	client, _ := lullhttp.NewClient(lull.Policy{}, lullhttp.WithDependencies(func(r *http.Request) *lull.Dependency {
		if strings.HasPrefix(r.URL.Hostname(), "127.") {
			return search
		}
		return nil // the host's own
	}))
	server := flaky(1)
	defer server.Close()
	resp, _ := client.Get(server.URL)
	resp.Body.Close()
	fmt.Println(resp.StatusCode, lullhttp.OutcomeOf(resp).Attempts)
	// Output: 200 2
}

// The server knows when it will be well again, and that is too late for us.
func ExampleOutcomeOf() {
	server := newServer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	defer server.Close()
	client, _ := lullhttp.NewClient(quick)
	resp, _ := client.Get(server.URL)
	resp.Body.Close()
	o := lullhttp.OutcomeOf(resp)
	fmt.Println(resp.StatusCode, o.Attempts, o.Reason, o.Verdict.After)
	// Output: 503 1 hint_too_long 1h0m0s
}

// Without a response there is an error. It has the reason why no further attempt was
// made, and the error of the last one.
func ExampleTransport() {
	transport, err := lullhttp.New(quick)
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	_, err = client.Post("http://nobody.internal", "text/plain", strings.NewReader("never sent, so it may be repeated"))
	var e *lull.Error
	fmt.Println(errors.As(err, &e), e.Attempts, e.Reason, e.Verdict.Code)
	// Output: true 3 attempts_exhausted connection_refused
}

// A service in the middle calls another. It has no more time than its own client gives
// it. When its retries have failed, its answer asks the client not to retry.
func ExampleNewHandler() {
	store := newServer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	defer store.Close()
	client, err := lullhttp.NewClient(lull.Policy{AttemptTimeout: time.Minute, Backoff: backoff.Schedule{Base: time.Millisecond}})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := lullhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, bounded := r.Context().Deadline()
		fmt.Println("bounded by the client's time:", bounded)
		req, _ := http.NewRequestWithContext(r.Context(), "GET", store.URL, nil)
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		fmt.Println("attempts at the store:", lullhttp.OutcomeOf(resp).Attempts)
		w.WriteHeader(resp.StatusCode)
	}))
	if err != nil {
		log.Fatal(err)
	}
	server := newServer(handler.ServeHTTP)
	defer server.Close()

	caller, err := lullhttp.NewClient(lull.Policy{AttemptTimeout: time.Minute},
		lullhttp.WithTimeoutHeader(lullhttp.DefaultTimeoutHeader)) // or it is sent from the second request on
	if err != nil {
		log.Fatal(err)
	}
	resp, err := caller.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	o := lullhttp.OutcomeOf(resp)
	fmt.Println(resp.StatusCode, "after attempts:", o.Attempts, "-", o.Reason)
	// Output:
	// bounded by the client's time: true
	// attempts at the store: 3
	// 503 after attempts: 1 - overloaded
}
