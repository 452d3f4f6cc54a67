package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/lab/sim"
)

// everything is a scenario in which every field of every type has been set.
const everything = `
name: everything
title: "Title: with a colon"
teaches: >-
  A text that is folded,
  over two lines.
source: none
horizon: 1h
step: 1s
window: 500ms
warmup: 1m
services:
  - &api
    name: api
    hosts: 3
    workers: 100
    connections: {limit: 500, backlog: 128, drop: true, idle_for: 1m, handshake: {kind: exponential, mean: 2ms}}
    refusal_time: 100us
    heap: {size: 2000M, live: 100M, per_attempt: 50k, per_connection: 20k, garbage: 200k, pause: 100us, restart: 30s}
    queue: {limit: 10k, order: LIFO, drop_expired: true, retry_after: 2s, dont_retry: true}
    admission:
      on: true
      no_deadlines: true
      config: {initial: 20, min: 10, max: 2k, max_wait: 1s, pressed_wait: 5ms, max_queue: 50, retry_ratio: 10%}
    time: {kind: exponential, mean: 100ms}
    congestion: 1ms
    cancel_work: true
    errors: 1%
    error_time: 5ms
    rate: {per_second: 1.5k, burst: 10, retry_after: 250ms}
    deduplicates: true
    calls:
      - {service: db, policy: none, attempt_timeout: 2s, network: {latency: 1ms, loss: 0.1%, loss_back: 0.2%, pool: {on: true, kind: sql, size: 20, open: 2, idle: -1}, endpoints: {on: true, config: {choice: least-time, interval: 5s, max_ejected: 30}}}, cache: {keys: 1M, skew: 0.9, size: 10k, for: 10m, cold: true}, deadline: true}
    faults:
      - {kind: stall, at: 10m, for: 10s, every: 20m}
      - {kind: errors, at: 10m, for: 10s, share: 5 %, hosts: 1, retry_after: 1s, dont_retry: true, after: 1ms}
      - {kind: crash, at: 30m, for: 10s, warmup: 1m, cold: 5, silent: true}
      - {kind: flush, at: 40m, for: 1s, share: 90%}
  - <<: *api
    name: db
    calls: []
    time: {kind: bimodal, mean: 10ms, slow: 2%, slow_mean: 1s}
  - name: cache
    contention: true
    admission: {on: true, config: {limit: 5, max_wait: none, retry_ratio: -1}}
    time: {kind: histogram, bars: [{up_to: 1ms, weight: 3}, {up_to: 1s, weight: 0.5}]}
fleets:
  - name: phones
    calls: api
    processes: 25M
    arrivals:
      kind: poisson
      rate: 25k
      at: 1s
      ramp: [{at: 10m, factor: 1}, {at: 10m, factor: 2.5}]
    attempt_timeout: 1s
    deadline: 5s
    not_idempotent: true
    keyed: true
    reload: {share: 50%, after: {kind: uniform, min: 1s, max: 3s}, times: 3}
    network: {latency: {kind: lognormal, mean: 50ms, sigma: 0.5}, loss: 1%, pool: {on: true, idle: 2, idle_for: 90s, round_trips: 2, handshake: 1ms, dial_timeout: 3s, ports: 28_232, time_wait: 30s}}
    policy: none
  - calls: cache
    arrivals: {kind: closed, each: 2, think: {kind: normal, mean: 1s, deviation: 100ms}}
  - calls: cache
    arrivals: {kind: periodic, every: 4s, within: 1s}
  - calls: cache
    redial: true
    link: {on: true}
topics:
  - name: orders
    calls: api
    arrivals: {kind: constant, rate: 50}
    poison: {share: 1%, kills: true, down: 5s}
    broker: {count_defers: true, fixed_leases: true, max_delay: 15m}
    consumers:
      processes: 20
      concurrency: 8
      lease: 45s
      quick: 2
      quick_wait: 500ms
      network: {latency: 1ms}
      wary: true
      kills:
        - {at: 10m, for: 5s, every: 20m, processes: 10, apart: 1s}
    policy: none
`

func TestEverythingIsReadAndWritten(t *testing.T) {
	s := must(Parse("f", []byte(everything)))
	api, db := s.Services[0], s.Services[1]
	for _, c := range []struct{ what, got, want any }{
		{"title", s.Title, "Title: with a colon"},
		{"teaches", s.Teaches, "A text that is folded, over two lines."},
		{"limit", api.Queue.Limit, 10_000},
		{"order", api.Queue.Order, sim.LIFO},
		{"errors", api.Errors, 0.01},
		{"longest wait", api.Admission.Config.MaxWait, time.Second},
		{"retry ratio", api.Admission.Config.RetryRatio, 0.1},
		{"no wait", s.Services[2].Admission.Config.MaxWait, lull.NoTimeout},
		{"rate", api.Rate.PerSecond, 1500.0},
		{"latency", api.Calls[0].Network.Latency, sim.Distribution{Mean: time.Millisecond}},
		{"share", api.Faults[1].Share, 0.05},
		{"crash", api.Faults[2].Kind, sim.Crash},
		{"merged", db.Hosts, 3},
		{"overridden", len(db.Calls), 0},
		{"bars", s.Services[2].Time.Bars, []sim.Bar{{UpTo: time.Millisecond, Weight: 3}, {UpTo: time.Second, Weight: 0.5}}},
		{"processes", s.Fleets[0].Processes, 25_000_000},
		{"arrivals", s.Fleets[2].Arrivals.Kind, sim.Periodic},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
	golden.File(t, "testdata/everything.yaml", formatted(t, s))
	again, err := Parse("f", []byte(formatted(t, s)))
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("read again: %v\n%+v\nwant\n%+v", err, again, s)
	}
}

func formatted(t *testing.T, s sim.Scenario) string {
	t.Helper()
	data := must(Format(s))
	return string(data)
}

const small = `
horizon: 1m
services: [{name: api, time: %s}]
fleets: [{calls: api, arrivals: {rate: 10}}]
`

func TestDistributions(t *testing.T) {
	files := fstest.MapFS{
		"l.csv":     {Data: []byte("up_to,weight\n# quiet\n10ms,700\n 20ms , 2.5k\r\n\n1s,0\n")},
		"sub/l.csv": {Data: []byte("10ms,1\n")},
		"empty.csv": {Data: []byte("# nothing\n")},
		"down.csv":  {Data: []byte("10ms,1\n5ms,1\n")},
		"less.csv":  {Data: []byte("10ms,5\n20ms,-1\n")},
		"large.csv": {Data: []byte(strings.Repeat("#\n", codec.MaxBytes))},
		"long.csv":  {Data: []byte(strings.Repeat("10ms,1\n", codec.MaxElements+1))},
	}
	ms := time.Millisecond
	for text, want := range map[string]sim.Distribution{
		"100ms":                               {Mean: 100 * ms},
		"0":                                   {},
		"{mean: 100ms}":                       {Mean: 100 * ms},
		"{}":                                  {},
		"":                                    {},
		"{file: l.csv}":                       {Kind: sim.Histogram, Bars: []sim.Bar{{UpTo: 10 * ms, Weight: 700}, {UpTo: 20 * ms, Weight: 2500}, {UpTo: time.Second}}},
		"{file: sub/l.csv}":                   {Kind: sim.Histogram, Bars: []sim.Bar{{UpTo: 10 * ms, Weight: 1}}},
		"{kind: histogram, file: sub/l.csv}":  {Kind: sim.Histogram, Bars: []sim.Bar{{UpTo: 10 * ms, Weight: 1}}},
		"{kind: uniform, min: 1ms, max: 2ms}": {Kind: sim.Uniform, Min: ms, Max: 2 * ms},
		"{kind: lognormal, mean: 1ms, sigma: 1.5}": {Kind: sim.LogNormal, Mean: ms, Sigma: 1.5},
	} {
		s, err := parse("f", fmt.Appendf(nil, small, text), files)
		if err != nil || !reflect.DeepEqual(s.Services[0].Time, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, s.Services, err, want)
		}
	}
	for text, want := range map[string]string{
		"{file: empty.csv}":             `dir/f:3:37: services.0.time.file is "empty.csv", which has no lines: want a file with a line for each bar, such as 20ms,350`,
		"{file: down.csv}":              `dir/down.csv:2:1: services.0.time.bars.1.up_to is 5ms`,
		"{file: less.csv}":              `dir/less.csv:2:6: services.0.time.bars.1.weight is -1`,
		"{file: large.csv}":             `dir/large.csv:1:1: a file of more than 1 MiB: want at most 1 MiB`,
		"{file: long.csv}":              `dir/long.csv:10001:1: one line too many: want at most 10000 bars`,
		"{file: none.csv}":              `dir/f:3:37: services.0.time.file is "none.csv", which does not exist: want the name of a file in the folder of this one, or below it`,
		"{file: sub}":                   `dir/f:3:37: services.0.time.file is "sub", which cannot be read: want the name of a file in the folder of this one, or below it`,
		"{file: ../f}":                  `dir/f:3:37: services.0.time.file is "../f": want the name of a file in the folder of this one, or below it`,
		"{file: /etc/hosts}":            `dir/f:3:37: services.0.time.file is "/etc/hosts": want the name of a file in the folder of this one, or below it`,
		"{file: [l.csv]}":               `dir/f:3:37: services.0.time.file is a list: want the name of a file in the folder of this one, or below it`,
		"{file: l.csv, bars: [{}]}":     `dir/f:3:37: services.0.time.file is beside bars: want one of the two`,
		"{file: l.csv, kind: fixed}":    `dir/f:3:50: services.0.time.kind is "fixed": want histogram, because there is a file`,
		"{kind: histogram}":             `dir/f:3:30: services.0.time.bars is 0`,
		"{kind: exponential, mean: -1}": `dir/f:3:56: services.0.time.mean is "-1": want a duration such as 250ms, 1.5s or 2m`,
	} {
		_, err := parse("dir/f", fmt.Appendf(nil, small, text), files)
		codectest.Located(t, err)
		if got := err.Error(); got != want && allowed.ReplaceAllString(got, "") != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAScenarioIsCalledByItsFile(t *testing.T) {
	for _, c := range []struct{ file, data, want string }{
		{"a/b/stall.yaml", "", "stall"}, {"stall.yaml", "name: other\n", "other"}, {"stall", "", "stall"},
	} {
		s, err := Parse(c.file, []byte(c.data+fmt.Sprintf(small, "1ms")))
		if err != nil || s.Name != c.want {
			t.Errorf("%s: %q, %v, want %q", c.file, s.Name, err, c.want)
		}
	}
}

// Problems that Validate finds in a scenario, and those that only follow from
// what could not be read.
func TestProblemsOfAScenario(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"services: [{name: api}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:1:1: horizon is 0s`},
		{"horizon: 1m\nservices: [{name: api, admission: {on: true, config: {limit: 5, min: 2, max_wait: none, max_queue: 3, retry_ratio: 20}}}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			"f:2:70: services.0.admission.config.min is 2\n" +
				"f:2:100: services.0.admission.config.max_queue is 3\n" +
				`f:2:116: services.0.admission.config.retry_ratio is "20"; did you mean 20%?`},
		{"horizon: 1m\nservices: [{name: api, admission: true}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:2:35: services.0.admission is "true"`},
		{"horizon: 1m\nservices: [{name: api, errors: 20}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:2:32: services.0.errors is "20"; did you mean 20%?`},
		{"horizon: 1m\nservices: [{name: api}]\nfleets: [{calls: apo, arrivals: {rate: 1}}]\n",
			`f:3:18: fleets.0.calls is "apo"; did you mean api?`},
		{"horizon: 1m\nservices: [{name: api}, {name: api}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:2:32: services.1.name is "api"`},
		// The fault lies beyond a horizon that is not known.
		{"horizon: 1d\nservices: [{name: api, faults: [{at: 1h, for: 1s}]}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:1:10: horizon is "1d"; did you mean 24h?`},
		// A queue needs workers, of whom nothing is known.
		{"horizon: 1m\nservices: [{name: api, workers: x, queue: {limit: 5}}]\nfleets: [{calls: api, arrivals: {rate: 1}}]\n",
			`f:2:33: services.0.workers is "x"`},
		// The fleet calls a service whose name could not be read.
		{"horizon: 1m\nservices: [{nam: api}]\nfleets: [{calls: api, arrivals: {rate: -1}}]\n",
			"f:2:13: services.0.nam is unknown; did you mean name?\n" +
				`f:3:40: fleets.0.arrivals.rate is -1`},
	} {
		_, err := Parse("f", []byte(c.data))
		codectest.Located(t, err)
		if got := allowed.ReplaceAllString(err.Error(), ""); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.data, got, c.want)
		}
	}
}

var allowed = regexp.MustCompile(`(?m): want [^;\n]*`)

func TestBuiltIn(t *testing.T) {
	all := BuiltIn()
	seen := map[string]bool{}
	for _, s := range all {
		if s.Name == "" || seen[s.Name] || s.Title == "" || s.Teaches == "" || s.Source == "" {
			t.Errorf("%q: want a name of its own, a title, what it teaches, and a source", s.Name)
		}
		seen[s.Name] = true
		again, err := Parse("f", []byte(formatted(t, s)))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%s: read again: %v", s.Name, err)
		}
		if found, err := Find(s.Name); err != nil || !reflect.DeepEqual(found, s) {
			t.Errorf("%s: found %+v, %v", s.Name, found, err)
		}
	}
	all[0].Services[0].Name = "changed"
	if got := BuiltIn()[0].Services[0].Name; got == "changed" {
		t.Error("a change to a built-in scenario lasts")
	}
}

// must is for what a test needs before it begins.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
