package lulltest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

// The first two attempts of each call are refused with 503.
func Example() {
	faults := &lulltest.Faults{Rules: []lulltest.Rule{{First: 2, Status: http.StatusServiceUnavailable}}}
	policy := lull.Policy{Backoff: backoff.Schedule{Base: time.Millisecond}}
	client, err := lullhttp.NewClient(policy, lullhttp.WithBase(faults.Transport(nil)))
	if err != nil {
		panic(err)
	}
	resp, err := client.Get("http://shop/orders/7")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, "after", len(faults.Attempts()), "attempts")
	// Output: 200 after 3 attempts
}

// serve is httptest.NewServer in memory.
func serve(h http.Handler) *httptest.Server {
	s := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: h}}
	memnet.Start(s)
	return s
}

// A payment is carried out, and its answer is lost on the way. Whoever repeats it must send the
// same key.
func ExampleFaults_Handler() {
	faults := &lulltest.Faults{Rules: []lulltest.Rule{{On: "POST /payments", First: 1, End: lulltest.Reset}}}
	payments := 0
	server := serve(faults.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
	})))
	defer server.Close()

	client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithIdempotencyKeys(nil), lullhttp.WithBase(server.Client().Transport))
	if err != nil {
		panic(err)
	}
	resp, err := client.Post(server.URL+"/payments", "text/plain", strings.NewReader("7 euros"))
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, "and", payments, "payments")
	a := faults.Attempts()
	fmt.Println("the same key:", a[0].Header.Get("Idempotency-Key") == a[1].Header.Get("Idempotency-Key"))
	fmt.Printf("the same body: %s, %s\n", a[0].Body, a[1].Body)
	// Output:
	// 200 and 2 payments
	// the same key: true
	// the same body: 7 euros, 7 euros
}

// A body that ends after four bytes, without a network.
func ExampleFaults_Transport() {
	faults := &lulltest.Faults{Rules: []lulltest.Rule{
		{Status: 200, Body: "all of it", End: lulltest.Close, Where: lulltest.InBody, Bytes: 4},
	}}
	resp, err := (&http.Client{Transport: faults.Transport(nil)}).Get("http://shop/")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%q, %v\n", body, err)
	// Output: "all ", unexpected EOF
}

// A tenth of the requests, by chance. The same seed gives the same draws.
func ExampleRule_chance() {
	faults := &lulltest.Faults{Seed: 1, Rules: []lulltest.Rule{
		{Chance: 0.1, Status: 429, Header: http.Header{"Retry-After": {"2"}}},
	}}
	client := &http.Client{Transport: faults.Transport(nil)}
	refused := 0
	for i := range 1000 {
		resp, err := client.Get(fmt.Sprint("http://shop/orders/", i))
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 429 {
			refused++
		}
	}
	fmt.Println(refused)
	// Output: 81
}

func ExampleFaults_Attempts() {
	faults := &lulltest.Faults{}
	client := &http.Client{Transport: faults.Transport(nil)}
	for _, path := range []string{"/a", "/b", "/a"} {
		resp, err := client.Get("http://shop" + path)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
	}
	for _, a := range faults.Attempts() {
		fmt.Println(a.Method, a.URL, a.Number)
	}
	// Output:
	// GET http://shop/a 1
	// GET http://shop/b 1
	// GET http://shop/a 2
}

func ExampleFaults_Validate() {
	faults := &lulltest.Faults{Rules: []lulltest.Rule{{On: "GET orders"}, {Chance: 20, Status: 503}}}
	fmt.Println(faults.Validate())
	// Output:
	// lulltest: Rules[0].On: parsing "GET orders": at offset 4: host/path missing /: want a pattern of http.ServeMux, such as GET /orders/{id}
	// lulltest: Rules[1].Chance: 20: want a probability from 0 (always) to 1
}
