package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/server/status"
)

func ExamplePage() {
	page := new(status.Page)
	orders, err := lull.NewDependency("orders", lull.Policy{}, lull.WithObserver(page))
	if err != nil {
		fmt.Println(err)
		return
	}
	page.Watch(orders)

	fail := func(context.Context) error { return lull.Transient(errors.New("no route")) }
	lull.Run(context.Background(), orders, fail, lull.Once())
	orders.Breaker().ForceOpen(orders.Now())
	lull.Run(context.Background(), orders, fail)
	lull.Run(context.Background(), orders, fail)

	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "/?format=json", nil))
	var shown struct {
		Dependencies []struct {
			Name    string
			Circuit struct{ State string }
			Reasons []struct {
				Reason string
				Calls  int
			} `json:"last_minute"`
			Errors []struct{ Code, Text string } `json:"last_errors"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&shown); err != nil {
		fmt.Println(err)
		return
	}
	d := shown.Dependencies[0]
	fmt.Println(d.Name, d.Circuit.State)
	for _, r := range d.Reasons {
		fmt.Println(r.Reason, r.Calls)
	}
	fmt.Println(d.Errors[0].Code, d.Errors[0].Text)
	// Output:
	// orders open
	// circuit_open 2
	// attempts_exhausted 1
	// transient no route
}

func ExamplePage_WatchAll() {
	page := new(status.Page)
	hosts, err := lull.NewRegistry(lull.Policy{}, 0, lull.WithObserver(page))
	if err != nil {
		fmt.Println(err)
		return
	}
	page.WatchAll(hosts.All)
	hosts.Get("a.example.com")
	hosts.Get("b.example.com")

	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "/?format=json", nil))
	var shown struct{ Dependencies []struct{ Name string } }
	if err := json.NewDecoder(answer.Body).Decode(&shown); err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range shown.Dependencies {
		fmt.Println(d.Name)
	}
	// Output:
	// a.example.com
	// b.example.com
}

// What the comment of the package shows.
func ExamplePage_Watch() {
	serve := func(mux *http.ServeMux) error {
		page := new(status.Page)
		orders, err := lull.NewDependency("orders", lull.Policy{}, lull.WithObserver(page))
		if err != nil {
			return err
		}
		page.Watch(orders)
		mux.Handle("/debug/dependencies", page)
		return nil
	}
	mux := http.NewServeMux()
	if err := serve(mux); err != nil {
		fmt.Println(err)
		return
	}
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest("GET", "/debug/dependencies", nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "orders"))
	// Output: 200 true
}
