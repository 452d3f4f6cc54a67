//go:build servers

package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/lullgo/lull/lab/torture/probe"
)

func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "soon")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	cases, err := probe.Select([]string{"refusal-hint", "refusal-cache"})
	if err != nil {
		fmt.Println(err)
		return
	}
	card, err := probe.Run(context.Background(), probe.Target{URL: server.URL}, probe.Options{Cases: cases, Together: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range card.Results {
		fmt.Printf("%s: %s, %s\n", r.Case, r.Grade, r.Why)
	}
	// Output:
	// refusal-hint: fail, Retry-After: soon is neither whole seconds nor a date
	// refusal-cache: pass, no cache may keep any of 56 refusals
}
