package scenario

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// everything is a scenario in which every field of every type has been set.
var everything = must.Have(os.ReadFile("testdata/everything.yaml"))

func TestEverythingIsReadAndWritten(t *testing.T) {
	s := must.Have(Parse("f", everything))
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
		{"bars", s.Services[2].Time.Bars, []sim.Bar{{UpTo: time.Millisecond, Weight: 3}, {UpTo: time.Second, Weight: 0.5}}},
		{"processes", s.Fleets[0].Processes, 25_000_000},
		{"arrivals", s.Fleets[2].Arrivals.Kind, sim.Periodic},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
	golden.File(t, "testdata/everything.yaml", formatted(t, s))
}

func formatted(t *testing.T, s sim.Scenario) string {
	t.Helper()
	data := must.Have(Format(s))
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
		check.Equal(t, allowed.ReplaceAllString(err.Error(), ""), c.want, "%s", c.data)
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
