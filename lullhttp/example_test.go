package lullhttp_test

import (
	"bytes"
	"context"
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
	// attempts at the store: 5
	// 503 after attempts: 1 - overloaded
}

// Policies for hosts and routes, in one map. A long poll and an upload take longer than
// other requests, and should not count against them.
func ExampleWithPolicies() {
	transport, err := lullhttp.New(lull.Policy{}, lullhttp.WithPolicies(map[string]lull.Policy{
		"payments.internal":            {Attempts: 2},
		"GET queue.internal/poll":      {AttemptTimeout: 30 * time.Second, Deadline: time.Minute},
		"PUT files.internal/{object}/": {AttemptTimeout: 10 * time.Minute, Deadline: lull.NoTimeout},
	}))
	if err != nil {
		panic(err)
	}
	for _, path := range []string{"/poll", "/send"} {
		req, _ := http.NewRequest("GET", "http://queue.internal"+path, nil)
		d := transport.Dependency(req)
		fmt.Printf("%s: %q, attempts of at most %v\n", path, d.Name(), d.Policy().AttemptTimeout)
	}
	// Output:
	// /poll: "GET queue.internal/poll", attempts of at most 30s
	// /send: "queue.internal", attempts of at most 10s
}

// An API that answers with 200 and an error in the body.
func ExampleWithClassifier() {
	requests := 0
	server := newServer(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			io.WriteString(w, `{"error": "try again"}`)
			return
		}
		io.WriteString(w, `{"result": 7}`)
	})
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
		if err == nil && bytes.HasPrefix(lullhttp.Peek(resp, 10), []byte(`{"error"`)) {
			return lull.Verdict{Kind: lull.KindTransient, Code: "try_again"}
		}
		return lull.Verdict{} // as lull decides
	}))
	if err != nil {
		panic(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body), requests)
	// Output: {"result": 7} 2
}

// A token that has run out by the time of the retry.
func ExampleWithBeforeRetry() {
	server := flaky(1)
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithBeforeRetry(func(next *http.Request, last error) error {
		fmt.Println(last)
		next.Header.Set("Authorization", "Bearer "+newToken())
		return nil
	}))
	if err != nil {
		panic(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output:
	// server answered 503 Service Unavailable
	// 200
}

func newToken() string { return "secret" }

// The options of one request travel in its context.
func ExampleWithCall() {
	client, err := lullhttp.NewClient(quick)
	if err != nil {
		panic(err)
	}
	search := func(opts ...lull.CallOption) {
		server := flaky(1)
		defer server.Close()
		ctx := lullhttp.WithCall(context.Background(), opts...)
		req, _ := http.NewRequestWithContext(ctx, "POST", server.URL+"/books/_search", strings.NewReader("{}"))
		resp, err := client.Do(req)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		o := lullhttp.OutcomeOf(resp)
		fmt.Println(resp.StatusCode, o.Attempts, o.Reason)
	}
	search()
	search(lull.Idempotent())
	search(lull.Idempotent(), lull.Once())
	// Output:
	// 503 1 not_idempotent
	// 200 2 success
	// 503 1 attempts_exhausted
}

// These POSTs only read, so they may be repeated.
func ExampleWithRoute() {
	server := flaky(1)
	defer server.Close()
	client, err := lullhttp.NewClient(quick,
		lullhttp.WithRoute("POST /{index}/_search", lull.Idempotent(), lull.Operation("search")),
		lullhttp.WithRoute("POST dynamodb.eu-west-1.amazonaws.com", lull.Idempotent()),
	)
	if err != nil {
		panic(err)
	}
	resp, err := client.Post(server.URL+"/books/_search", "application/json", strings.NewReader("{}"))
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, lullhttp.OutcomeOf(resp).Attempts)
	// Output: 200 2
}

// A forgotten key shows in the first test, and not in the first outage.
func ExampleWithKeysRequired() {
	client, err := lullhttp.NewClient(quick, lullhttp.WithKeysRequired())
	if err != nil {
		panic(err)
	}
	_, err = client.Post("http://payments.internal/charge", "text/plain", strings.NewReader("100"))
	fmt.Println(errors.Is(err, lullhttp.ErrKeyRequired))
	// Output: true
}

func ExampleParseHint() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := http.Header{}
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", "1772366460")
	hint, ok := lullhttp.ParseHint(h, http.StatusForbidden, now)
	fmt.Println(hint.After, hint.Source, ok)

	h.Set("X-Should-Retry", "false")
	hint, ok = lullhttp.ParseHint(h, http.StatusForbidden, now)
	fmt.Println(hint.Stop, hint.Source, ok)
	// Output:
	// 1m0s X-Ratelimit-Reset true
	// true X-Should-Retry true
}

func ExampleParseRetryAfter() {
	now := time.Date(1994, 11, 6, 8, 49, 7, 0, time.UTC)
	for _, v := range []string{"120", "Sun, 06 Nov 1994 08:49:37 GMT", "99999999999999999999", "-1"} {
		wait, ok := lullhttp.ParseRetryAfter(v, now)
		fmt.Println(wait, ok)
	}
	// Output:
	// 2m0s true
	// 30s true
	// 2562047h47m16.854775807s true
	// 0s false
}

func ExampleParseProblem() {
	p, ok := lullhttp.ParseProblem([]byte(`{
		"type": "https://example.com/problems/maintenance",
		"title": "Back soon",
		"status": 503,
		"retry_after": 90
	}`))
	fmt.Println(p.Type, p.Status, p.Hint.After, ok)
	// Output:
	// https://example.com/problems/maintenance 503 1m30s true
}

func ExampleClassifyStatus() {
	for _, status := range []int{200, 404, 429, 503} {
		v := lullhttp.ClassifyStatus(status)
		fmt.Printf("%s %q\n", v.Kind, v.Code)
	}
	// Output:
	// success ""
	// permanent "404"
	// rate_limited "429"
	// transient "503"
}

func ExampleClassifyError() {
	v := lullhttp.ClassifyError(context.DeadlineExceeded)
	fmt.Println(v.Kind, v.Code)
	// Output:
	// transient timeout
}

// The ID by which the server knows the request that failed, for logs and for its operators.
func ExampleStatusError_RequestID() {
	err := &lullhttp.StatusError{StatusCode: 503, Header: http.Header{"X-Request-Id": {"req-7f3a"}}}
	fmt.Println(err, err.RequestID())
	// Output: server answered 503 Service Unavailable req-7f3a
}
