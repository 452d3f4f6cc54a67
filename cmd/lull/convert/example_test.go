package convert_test

import (
	"fmt"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/config"
)

func ExampleConvert() {
	const service = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  hosts: [reviews]
  http:
    - route: [{destination: {host: reviews}}]
      timeout: 2s
      retries: {attempts: 3, perTryTimeout: 500ms, retryOn: "5xx,429"}
`
	out, err := convert.Convert([]convert.File{{Name: "shop.yaml", Data: []byte(service)}}, convert.Lull, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(out.Data))
	for _, e := range out.Report.Losses() {
		fmt.Println(e.Line, e.Kind, e.Path)
	}
	// Output:
	// dependencies:
	//   reviews:
	//     preset: istio
	//     attempts: 4
	//     attempt_timeout: 500ms
	//     deadline: 2s
	//     timeouts: always
	//     hint_limit: 30s
	// 8 changed spec.http[0]
	// 8 changed spec.http[0]
	// 10 changed spec.http[0].retries.retryOn
}

func ExampleConvert_toGRPC() {
	const policies = `
dependencies:
  payments:
    attempts: 4
    attempt_timeout: none
    deadline: 2s
    backoff: {jitter: proportional, base: 100ms, cap: 1200ms}
    rate_limited_base: 100ms
    timeouts: never
    nested: always
    budget: {unlimited: true}
    breaker: {off: true}
`
	out, err := convert.Convert([]convert.File{{Name: "policies.yaml", Data: []byte(policies)}}, convert.GRPC, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(out.Data))
	fmt.Print(out.Report)
	// Output:
	// {
	//   "methodConfig": [
	//     {
	//       "name": [
	//         {}
	//       ],
	//       "timeout": "2s",
	//       "retryPolicy": {
	//         "maxAttempts": 4,
	//         "initialBackoff": "0.1s",
	//         "maxBackoff": "1s",
	//         "backoffMultiplier": 2,
	//         "retryableStatusCodes": [
	//           "UNAVAILABLE",
	//           "RESOURCE_EXHAUSTED"
	//         ]
	//       }
	//     }
	//   ]
	// }
	// policies.yaml:3:3: assumed: dependencies.payments: it is the configuration of all methods; gRPC takes it from the server that is called
	// policies.yaml:3:3: lost: dependencies.payments.hint_limit is 30s: gRPC waits for as long as a server asks
	// policies.yaml:3:3: changed: dependencies.payments: gRPC retries a method whether it is safe to repeat or not: name those that are
}

func ExampleConvert_mistakes() {
	const route = `
cluster: payments
retry_policy: {retry_on: 5xx, num_retry: 3, per_try_timeout: 250ms}
`
	_, err := convert.Convert([]convert.File{{Name: "route.yaml", Data: []byte(route)}}, convert.Lull, convert.Options{})
	for _, m := range err.(interface{ Unwrap() []error }).Unwrap() {
		fmt.Println(m.Error()[:62])
	}
	// Output:
	// route.yaml:3:31: retry_policy.num_retry is unknown: want retry
	// route.yaml:3:62: retry_policy.per_try_timeout is "250ms": want
}

// The policies of a file, for programs that want to look at them.
func ExampleRead() {
	const config = `{"methodConfig": [{"name": [{"service": "shop.Orders"}], "timeout": "1s"}]}`
	set, report, err := convert.Read([]convert.File{{Name: "config.json", Data: []byte(config)}}, convert.Options{Base: "lull"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range set.File.Dependencies {
		fmt.Println(d.Name, d.Policy.Deadline, d.Policy.WorstCase())
	}
	fmt.Println(len(report))
	// Output:
	// /shop.Orders/ 1s 1s
	// 0
}

func ExampleWrite() {
	const policies = "attempts: 1\ndeadline: 2s\nattempt_timeout: none\nbreaker: {off: true}\n"
	set, _, err := convert.Read([]convert.File{{Name: "payments.yaml", Data: []byte(policies)}}, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, report, err := convert.Write(set, convert.Istio, convert.Options{})
	fmt.Print(string(data))
	fmt.Println(len(report.Losses()), err)
	// Output:
	// apiVersion: networking.istio.io/v1
	// kind: VirtualService
	// metadata: {name: payments}
	// spec:
	//   hosts: [payments]
	//   http:
	//     - route:
	//         - destination:
	//             host: payments
	//       timeout: 2s
	//       retries: {attempts: 0}
	// 0 <nil>
}

func ExampleFormats() {
	for _, f := range convert.Formats() {
		fmt.Println(f)
	}
	// Output:
	// lull
	// grpc
	// istio
	// envoy
	// gateway
	// envoy-gateway
	// dapr
	// resilience4j
	// linkerd
}

func ExampleReport_Losses() {
	r := convert.Report{
		{Kind: convert.Assumed, Position: config.Position{File: "a.yaml", Line: 3, Column: 1}, Path: "spec", Why: "..."},
		{Kind: convert.Lost, Position: config.Position{File: "a.yaml", Line: 9, Column: 5}, Path: "spec.http[0].fault", Why: "a policy makes no faults"},
	}
	fmt.Print(r.Losses())
	// Output: a.yaml:9:5: lost: spec.http[0].fault: a policy makes no faults
}

// The formats of the documents of a file, and what a field of a policy is called in one.
func ExampleRecognise() {
	for _, f := range convert.Recognise(convert.File{Name: "x.yaml", Data: []byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\n---\nattempts: 3\n")}) {
		name, ok := convert.FieldName(f, "attempt_timeout")
		fmt.Println(f, f.System(), name, ok)
	}
	// Output:
	// istio Istio retries.perTryTimeout true
	// lull lull  false
}

// The place of a field in the file that a dependency comes from.
func ExampleSet_Position() {
	set, _, err := convert.Read([]convert.File{{Name: "route.yaml", Data: []byte(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: payments}
spec:
  hosts: [payments]
  http:
  - route: [{destination: {host: payments}}]
    timeout: 2s
`)}}, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Position("payments", "deadline"), set.Format("payments"), set.Files("payments"))
	// Output:
	// route.yaml:8:5 istio [route.yaml]
}
