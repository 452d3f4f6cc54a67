package lint_test

import (
	"fmt"
	"os"

	"github.com/lullgo/lull/cmd/lull/lint"
)

func ExampleCheck() {
	report, err := lint.Check([]lint.File{{Name: "retry.yaml", Data: []byte(`
dependencies:
  payments: {attempts: 3, attempt_timeout: 1s, deadline: 3500ms}
services:
  shop: {slo: 2s, calls: [payments]}
`)}}, lint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		fmt.Printf("%s:%d: %s: %s\n", f.File, f.Line, f.Severity, f.Message)
	}
	fmt.Println(report.Summary())
	// Output:
	// retry.yaml:5: error: shop must answer within 2s, and its call to payments may take 3.5s
	// 1 finding in 1 file: 1 error
}

func ExampleReport_Text() {
	report, err := lint.Check([]lint.File{{Name: "retry.yaml", Data: []byte(`dependencies:
  stock:
    budget: {ratio: 50%}
`)}}, lint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.Text(os.Stdout)
	// Output:
	// retry.yaml:3:21: warning: the budget for stock lets retries add 50% to the calls, more than 20% [budget-too-large]
	//     3 |     budget: {ratio: 50%}
	//       |                     ^~~
	//         calls that earn                      1000  1000
	//         the retries that they pay for, 50%  + 500  1500
	//         with the most that is sound, 20%           1200
	//       fix: write budget.ratio: 10% in dependencies.stock; 20% at the most
	//       source: Site Reliability Engineering, ch. 21, Handling Overload, https://sre.google/sre-book/handling-overload/
	//
	// 1 finding in 1 file: 1 warning
}

// A file of another system is checked as policies of lull. The fix has the names of its own fields.
func ExampleCheck_istio() {
	report, err := lint.Check([]lint.File{{Name: "route.yaml", Data: []byte(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: payments}
spec:
  hosts: [payments]
  http:
  - route: [{destination: {host: payments}}]
    timeout: 2s
    retries: {attempts: 8, perTryTimeout: 1s}
`)}}, lint.Options{Off: map[string]string{"budget-missing": "the example is about times", "breaker-cannot-trip": "the same"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		if f.Ignored == nil {
			fmt.Printf("%s:%d: %s\nfix: %s\n", f.File, f.Line, f.Rule, f.Fix.Text)
		}
	}
	// Output:
	// route.yaml:10: attempt-never-made
	// fix: write retries.attempts: 1 in spec.http[0] (line 8); or, if its callers can wait so long, write timeout: 11s in spec.http[0] (line 8)
}

// Fixes are made in the text of the file: its comments stay.
func ExampleFixFile() {
	file := lint.File{Name: "retry.yaml", Data: []byte("dependencies:\n  stock: {backoff: {jitter: none}} # asked for often\n")}
	data, fixed, err := lint.FixFile(file, lint.Options{}, lint.Warning)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s%d fixed: %s\n", data, len(fixed), fixed[0].Rule)
	// Output:
	// dependencies:
	//   stock: {backoff: {jitter: full}} # asked for often
	// 1 fixed: jitter-missing
}
