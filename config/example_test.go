package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/preset"
)

const shopPolicies = `version: 1
defaults:
  preset: internal-service
  budget: {ratio: 5%}
dependencies:
  payments:
    attempts: 3
    deadline: 4s
    operations:
      charge: {idempotent: false, p99: 400ms}
  maps:
    preset: external-api
services:
  shop:
    slo: 2s
    calls: [maps, {dependency: payments, operation: charge}]
`

func ExampleParsePolicyFile() {
	f, err := config.ParsePolicyFile("retry.yaml", []byte(shopPolicies))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range f.Dependencies {
		fmt.Println(d.Name, d.Policy.Attempts, d.Policy.AttemptTimeout, d.Policy.Deadline, d.Policy.Budget.Ratio, d.Policy.Limit.InFlight)
	}
	for _, path := range []string{"dependencies.payments.attempts", "dependencies.payments.attempt_timeout", "dependencies.maps.attempts", "dependencies.maps.budget.ratio"} {
		fmt.Println(path, f.Position(path), f.Origin(path))
	}
	for _, e := range f.Services[0].Calls {
		fmt.Printf("shop calls %s %q\n", e.Dependency, e.Operation)
	}
	// Output:
	// payments 3 1s 4s 0.05 256
	// maps 4 15s 1m0s 0.05 0
	// dependencies.payments.attempts retry.yaml:7:15 written
	// dependencies.payments.attempt_timeout retry.yaml:3:11 from the preset of defaults
	// dependencies.maps.attempts retry.yaml:12:13 from the preset
	// dependencies.maps.budget.ratio retry.yaml:4:19 from defaults
	// shop calls maps ""
	// shop calls payments "charge"
}

func ExampleReadPolicyFile() {
	_, err := config.ReadPolicyFile("testdata/none.yaml")
	var wrong config.Mistakes
	fmt.Println(errors.As(err, &wrong), errors.Is(err, os.ErrNotExist))
	// Output: false true
}

// Of a policy what differs from the defaults and the preset is written, and no more.
func ExampleFormatPolicyFile() {
	careful := preset.InternalService()
	careful.Attempts, careful.Limit.InFlight = 1, 0
	data, err := config.FormatPolicyFile(&config.PolicyFile{
		Defaults: config.Defaults{Preset: "internal-service", Policy: preset.InternalService()},
		Dependencies: []config.Dependency{
			{Name: "stock", Policy: preset.InternalService()},
			{Name: "payments", Policy: careful, P99: 120 * time.Millisecond},
			{Name: "maps", Preset: "external-api", Policy: preset.ExternalAPI()},
		},
	})
	fmt.Print(string(data), err)
	// Output:
	// defaults:
	//   preset: internal-service
	// dependencies:
	//   stock: {}
	//   payments:
	//     attempts: 1
	//     limit: {in_flight: 0}
	//     p99: 120ms
	//   maps:
	//     preset: external-api
	// <nil>
}

// A program that takes its policies from a file, and again whenever that changes.
func ExampleLive() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("lull-example-", os.Getpid(), ".yaml"))
	defer os.Remove(path)
	write := func(text string) { os.WriteFile(path, []byte(text), 0o600) }

	write("dependencies: {payments: {attempts: 2}}\n")
	live, err := config.OpenLive(path, func(r config.Reload) {
		if r.Err != nil {
			fmt.Println("still the old policies:", strings.ReplaceAll(r.Err.Error(), path, "retry.yaml"))
		}
		for _, c := range r.Changes {
			fmt.Println(c.Name, c.Kind, c.Before.Attempts, "to", c.After.Attempts)
		}
	})
	if err != nil {
		fmt.Println(err) // and do not start
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go live.Watch(ctx, 0)
	payments, err := live.Dependency("payments")
	if err != nil {
		fmt.Println(err)
		return
	}

	write("dependencies: {payments: {attempts: 3}}\n")
	live.Reload() // at once, rather than at the second look
	write("dependencies: {payments: {atempts: 9}}\n")
	live.Reload()
	fmt.Println(payments.Policy().Attempts)
	// Output:
	// payments changed 2 to 3
	// still the old policies: retry.yaml:1:27: dependencies.payments.atempts is unknown: want preset, attempts, attempt_timeout, deadline, backoff, rate_limited_base, timeouts, nested, hint_limit, budget, breaker, hedge, throttle, limit, operations, p99 or rate; did you mean attempts?
	// 3
}

// Everything with an Update can follow the file: a registry of hosts, here under the defaults.
func ExampleLive_Follow() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("lull-example-", os.Getpid(), "-follow.yaml"))
	defer os.Remove(path)
	os.WriteFile(path, []byte("defaults: {attempts: 2}\n"), 0o600)
	live, err := config.OpenLive(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	hosts, err := lull.NewRegistry(lull.Policy{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(live.Follow("", hosts), hosts.Get("example.com").Policy().Attempts)
	os.WriteFile(path, []byte("defaults: {attempts: 5}\n"), 0o600)
	fmt.Println(live.Reload(), hosts.Get("example.com").Policy().Attempts)
	// Output:
	// <nil> 2
	// <nil> 5
}

// Hosts are called under the policies that the file has for their names.
func ExampleLive_FollowEach() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("lull-example-", os.Getpid(), "-each.yaml"))
	defer os.Remove(path)
	os.WriteFile(path, []byte("defaults: {attempts: 2}\ndependencies: {api.example.com: {attempts: 4}}\n"), 0o600)
	live, err := config.OpenLive(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	hosts, err := lull.NewRegistry(lull.Policy{}, 0) // as that of a lullhttp.Transport
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(live.FollowEach(hosts))
	for _, host := range []string{"api.example.com", "other.example.com"} {
		fmt.Println(host, hosts.Get(host).Policy().Attempts)
	}
	// Output:
	// <nil>
	// api.example.com 4
	// other.example.com 2
}

func ExamplePresets() {
	fmt.Println(config.Presets()[:7])
	p, ok := config.PresetPolicy("edge")
	fmt.Println(p.Attempts, ok)
	// Output:
	// [internal-service external-api background-worker command-line edge per-key llm]
	// 2 true
}

func ExamplePolicySchema() {
	var schema struct {
		ID string `json:"$id"`
	}
	err := json.Unmarshal(config.PolicySchema(), &schema)
	fmt.Println(schema.ID, err)
	// Output: https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json <nil>
}

func ExampleParsePolicies() {
	policies, err := config.ParsePolicies("retry.yaml", []byte(`
dependencies:
  payments:
    attempts: 2
    deadline: 3s
    budget: {ratio: 5%}
  mail:
    preset: background-worker
    limit: {in_flight: 16}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range policies {
		fmt.Println(p.Name, p.Policy.Attempts, p.Policy.Deadline, p.Policy.Budget.Ratio, p.Policy.Limit.InFlight)
	}
	// Output:
	// payments 2 3s 0.05 0
	// mail 8 10m0s 0 16
}

func ExampleParsePolicies_mistakes() {
	_, err := config.ParsePolicies("retry.yaml", []byte(`dependencies:
  api:
    deadline: 3 sec
    limit: {max_wiat: 1s}
    backoff: {base: 1s, cap: 500ms}
`))
	fmt.Println(err)
	// Output:
	// retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m, or "none"; did you mean 3s?
	// retry.yaml:4:13: dependencies.api.limit.max_wiat is unknown: want in_flight, max_wait or max_queue; did you mean max_wait?
	// retry.yaml:5:30: dependencies.api.backoff.cap is 500ms: want zero or at least Base (1s)
}

func ExampleReadPolicies() {
	policies, err := config.ReadPolicies("testdata/policies.yaml")
	fmt.Println(policies[0].Name, policies[0].Policy.Attempts, err)
	// Output: full 7 <nil>
}

func ExampleFormatPolicies() {
	data, err := config.FormatPolicies([]config.NamedPolicy{
		{Name: "recommended"},
		{Name: "patient", Policy: lull.Policy{
			Attempts: 6,
			Deadline: lull.NoTimeout,
			Backoff:  backoff.Schedule{Jitter: backoff.Equal, Base: 2 * time.Second, Cap: 2 * time.Minute},
		}},
	})
	fmt.Print(string(data), err)
	// Output:
	// dependencies:
	//   recommended: {}
	//   patient:
	//     attempts: 6
	//     deadline: none
	//     backoff: {kind: exponential, jitter: equal, base: 2s, cap: 2m}
	// <nil>
}

func ExampleSetPolicy() {
	p := preset.ExternalAPI()
	fmt.Println(config.SetPolicy(&p, "backoff.base=50ms"), p.Backoff.Base)
	fmt.Println(config.SetPolicy(&p, "backoff.jitter=ful"))
	// Output:
	// <nil> 50ms
	// backoff.jitter is "ful": want full, equal, none, decorrelated or proportional; did you mean full?
}

func ExampleMistake() {
	_, err := config.ParsePolicies("retry.yaml", []byte("backoff:\n  bace: 1s\n"))
	for _, m := range err.(config.Mistakes) {
		fmt.Printf("line %d, column %d: %s; suggested: %s\n", m.Line, m.Column, m.Path, m.Suggestion)
	}
	// Output: line 2, column 3: backoff.bace; suggested: base
}
