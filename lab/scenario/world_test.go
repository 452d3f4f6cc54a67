package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

func world() (sim.Scenario, Learned) {
	s := sim.Scenario{
		Name: "world", Horizon: time.Minute,
		Services: []sim.Service{{Name: "db.eu", Errors: 0.01, Workers: 4,
			Time:   sim.Distribution{Kind: sim.Histogram, Bars: []sim.Bar{{UpTo: 10 * time.Millisecond, Weight: 3}, {UpTo: 40 * time.Millisecond, Weight: 1}}},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}}}},
		Fleets: []sim.Fleet{{Calls: "db.eu", Arrivals: sim.Arrivals{Rate: 100}}},
	}
	return s, Learned{
		Zero: "2026-11-29T14:03:00.5Z",
		From: []string{"nginx: 12,000 lines"},
		Values: []Interval{
			{Path: "services.0.errors", Low: "0.9%", High: "1.2%", By: "120 of 12,000 attempts"},
			{Path: "services.0.time", By: "12,000 attempts"},
			{Path: "services.0.faults.0.at", Low: "19s", High: "21s", By: "no answers from then on"},
			{Path: "fleets.0.arrivals.rate", Low: "98", High: "102", By: "a count"},
		},
		Unknown: []Question{
			{Path: "services.0.workers", Least: "4", Ask: "How many does it work on at a time?", Needs: "a time in which it is busy"},
			{Path: "services.0.queue.limit", Ask: "How many may wait?"},
			{Path: "fleets.0.processes", Ask: "How many processes call?"},
		},
		Seen: []Fact{{What: "attempt timeout", Low: "990ms", High: "1.01s", By: "a spike"}},
		Observed: Observed{Step: 20 * time.Second, Calls: []float64{100.123456, -1, 0}, Attempts: []float64{100, 101, 102},
			Failed: []float64{0, 1, 0.5}, P50: []float64{0.01, 0.0123456, -1}, P99: []float64{0.03, -1, -1}},
	}
}

func TestWorldIsWrittenAndReadAgain(t *testing.T) {
	s, l := world()
	text := must.Have(FormatLearned(s, l))
	golden.File(t, "testdata/world.yaml", string(text))
	again, learned, err := ParseLearned("f", text)
	l.Observed.Calls[0], l.Observed.P50[1] = 100.1, 0.01235
	if err != nil || !reflect.DeepEqual(again, s) || !reflect.DeepEqual(*learned, l) {
		t.Errorf("read again: %v\n%+v\n%+v\nwant\n%+v\n%+v", err, again, learned, s, l)
	}
	plain, err := Parse("f", text)
	if err != nil || !reflect.DeepEqual(plain, s) {
		t.Errorf("as a scenario: %v\n%+v", err, plain)
	}
	if _, none, err := ParseLearned("f", must.Have(Format(s))); err != nil || none != nil {
		t.Errorf("without the section: %v, %v", none, err)
	}
}

func TestLearnedMistakes(t *testing.T) {
	s, _ := world()
	text := string(must.Have(Format(s)))
	for section, want := range map[string]string{
		"learned: 3":                 `learned is "3": want a mapping of`,
		"learned: {zero: yesterday}": `learned.zero is "yesterday": want a time such as`,
		"learned: {values: [{path: services.0.erors, low: 1%, high: 2%}]}":                            `learned.values.0.path is "services.0.erors": want the path of a field`,
		"learned: {values: [{path: '', low: 1%, high: 2%}]}":                                          `learned.values.0.path is "": want the path`,
		"learned: {values: [{path: services.0.errors, low: 1s, high: 2%}]}":                           `learned.values.0.low is "1s": want a value of services.0.errors`,
		"learned: {values: [{path: services.0.errors, low: 1%, high: many}]}":                         `learned.values.0.high is "many": want a value`,
		"learned: {values: [{path: services.0.errors, low: 1%}]}":                                     `learned.values.0.high is "": want a value if there is a low one`,
		"learned: {values: [{pth: services.0.errors}]}":                                               `learned.values.0.pth is unknown: want path, low, high or by; did you mean path?`,
		"learned: {unknown: [{path: services.7.workers, ask: x}]}":                                    `learned.unknown.0.path is "services.7.workers"`,
		"learned: {unknown: [{path: services.0.workers}]}":                                            `learned.unknown.0.ask is "": want a question`,
		"learned: {unknown: [{path: services.0.workers, ask: x, least: 1s}]}":                         `learned.unknown.0.least is "1s": want a value of`,
		"learned: {observed: {step: 1s, calls: [1, 2], attempts: [1]}}":                               `learned.observed.attempts is "a list of 1": want as many as calls, 2`,
		"learned: {observed: {calls: [1], attempts: [1], failed: [0], p50: [0], p99: [0]}}":           `learned.observed.step is 0s: want a positive duration`,
		"learned: {observed: {step: 1s, calls: [1], attempts: [1], failed: [2], p50: [0], p99: [0]}}": `learned.observed.failed.0 is 2: want a share`,
	} {
		_, _, err := ParseLearned("f", []byte(text+section+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", section, err, want)
			continue
		}
		codectest.Located(t, err)
		_, plain := Parse("f", []byte(text+section+"\n"))
		check.Equal(t, plain.Error(), err.Error(), "the mistake as a scenario")
	}
}

// A world that is read without a mistake is written and read again as the same, but for rounding; and nothing panics.
func FuzzParseLearned(f *testing.F) {
	s, l := world()
	f.Add(must.Have(FormatLearned(s, l)))
	f.Add(must.Have(Format(s)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, l, err := ParseLearned("f", data)
		if err != nil {
			codectest.Located(t, err)
			return
		}
		if l == nil {
			return
		}
		once, err := FormatLearned(s, *l)
		if err != nil {
			t.Fatal(err)
		}
		again, learned, err := parseLearned("f", once, nil)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("read again: %v\n%+v\nwant\n%+v\nfrom\n%s", err, again, s, once)
		}
		if twice := must.Have(FormatLearned(again, *learned)); string(twice) != string(once) {
			t.Errorf("written again:\n%s\nwant\n%s", twice, once)
		}
	})
}
