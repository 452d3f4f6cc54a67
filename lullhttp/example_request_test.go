package lullhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

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
