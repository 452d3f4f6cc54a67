//go:build servers

package torture_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lab/torture"
)

func ExampleRun() {
	cases, err := torture.Select([]string{"status-503", "once-post-503", "status-always"})
	if err != nil {
		fmt.Println(err)
		return
	}
	card, err := torture.Run(context.Background(), torture.Lull("lullhttp", lull.Policy{}), torture.Options{Cases: cases})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range card.Results {
		fmt.Println(r.Case, r.Grade, r.Attempts)
	}
	// Output:
	// status-503 pass 2
	// status-always pass 5
	// once-post-503 pass 1
}

// A client of one's own is a function that wires it to a transport.
func ExampleHTTP() {
	client := torture.HTTP("mine", func(base *http.Transport) (torture.Doer, error) {
		return &http.Client{Transport: base}, nil
	})
	cases, _ := torture.Select([]string{"broken-body"})
	card, err := torture.Run(context.Background(), client, torture.Options{Cases: cases})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, _ := card.Result("broken-body")
	fmt.Println(r.Grade, r.Why)
	// Output: pass one attempt, and the client reported the failure
}

// A server that stands by itself grades whoever is pointed at it.
func ExampleListen() {
	cases, _ := torture.Select([]string{"once-400"})
	server, err := torture.Listen("127.0.0.1:0", cases)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	for range 2 { // a client that repeats what it must not
		resp, err := http.Get(server.URL() + "t/once-400/mine")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	for _, card := range server.Cards() {
		fmt.Println(card.Name, card.Results[0].Case, card.Results[0].Grade)
	}
	// Output: mine once-400 fail
}
