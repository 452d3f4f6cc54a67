package convert

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// gapicConfig is a service config as googleapis has them: many methods, and no maxAttempts.
func gapicConfig(methods int) string {
	var names []string
	for i := range methods {
		names = append(names, fmt.Sprintf(`{"service": "google.cloud.example.v1.Example", "method": "Method%d"}`, i))
	}
	return `{"methodConfig": [{"name": [` + strings.Join(names, ",\n") + `], "timeout": "60s",
  "retryPolicy": {"initialBackoff": "0.100s", "maxBackoff": "60s", "backoffMultiplier": 1.3, "retryableStatusCodes": ["UNAVAILABLE"]}},
 {"name": [{"service": "google.cloud.example.v1.Other"}], "timeout": "30s"}]}`
}

// A service config of googleapis is refused as gRPC refuses it, with a word of the option, and read
// with the option as its generators do.
func TestServiceConfigsOfGoogleapis(t *testing.T) {
	f := File{"example_grpc_service_config.json", []byte(gapicConfig(149))}
	refused(t, f, Options{}, "methodConfig[0].retryPolicy.maxAttempts is missing: want a whole number from 2 (--gapic reads")
	out := convert(t, f, Lull, Options{GAPIC: true})
	noted(t, out.Report, Assumed, "methodConfig[0].retryPolicy", "retries until the timeout")
	all := policies(t, out.Data)
	if len(all) != 150 || all[0].Policy.Attempts != 1000 || all[0].Policy.Deadline != time.Minute || all[149].Policy.Attempts != 1 {
		t.Errorf("%d dependencies, %+v", len(all), all[0])
	}
	// A policy with attempts keeps them.
	with := strings.Replace(string(f.Data), `"retryPolicy": {`, `"retryPolicy": {"maxAttempts": 3, `, 1)
	if p := policies(t, convert(t, File{"x.json", []byte(with)}, Lull, Options{GAPIC: true}).Data)[0].Policy; p.Attempts != 3 {
		t.Errorf("%+v", p)
	}
}

// The policy that most dependencies have is written once, as that of the defaults.
func TestIdenticalMethodsAreWrittenOnce(t *testing.T) {
	out := convert(t, File{"x.json", []byte(gapicConfig(149))}, Lull, Options{GAPIC: true})
	if n := strings.Count(string(out.Data), "attempts: 1000"); n != 1 {
		t.Errorf("the attempts are written %d times:\n%s", n, out.Data)
	}
	noted(t, out.Report, Assumed, "(all)", "149 dependencies have the same policy")
	// What each of them has is as it was.
	set, _, err := Read([]File{{"x.json", []byte(gapicConfig(149))}}, Options{GAPIC: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range policies(t, out.Data) {
		if was, ok := set.File.Dependency(d.Name); !ok || was.Policy != d.Policy {
			t.Errorf("%s: %+v, want %+v", d.Name, d.Policy, was.Policy)
		}
	}
}
