package lullhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

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
