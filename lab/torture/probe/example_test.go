package probe_test

import (
	"fmt"

	"github.com/lullgo/lull/lab/torture/probe"
)

func ExampleSelect() {
	cases, err := probe.Select([]string{"load"})
	for _, c := range cases {
		fmt.Println(c.Name)
	}
	fmt.Println(err)
	// Output:
	// load-attempt
	// load-late
	// load-deadline
	// load-left
	// <nil>
}

func ExampleCheck() {
	fmt.Println(probe.Check(probe.Target{URL: "http://127.0.0.1:8080/orders", Slow: "report"}, probe.Options{}))
	// Output: Slow is "report": want a path that begins with one /, of the same host
}
