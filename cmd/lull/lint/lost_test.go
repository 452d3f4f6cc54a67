package lint

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
)

// A scalar is a single value somewhere in a file.
type scalar struct {
	path  string // with the names that files choose replaced by *
	in    *yaml.Node
	at    int // of the value in in.Content
	value string
}

func scalars(n *yaml.Node, path string) (all []scalar) {
	add := func(i int, path string) {
		switch v := n.Content[i]; {
		case v.Kind != yaml.ScalarNode:
			all = append(all, scalars(v, path)...)
		case v.Tag != "!!null":
			all = append(all, scalar{path, n, i, v.Value})
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return scalars(n.Content[0], path)
	case yaml.SequenceNode:
		for i := range n.Content {
			add(i, codec.Field(path, "*"))
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if path == "dependencies" || path == "services" || strings.HasSuffix(path, ".operations") {
				key = "*"
			}
			add(i+1, codec.Field(path, key))
		}
	}
	return all
}

// without runs f while the value is not in its file.
func (s scalar) without(f func()) {
	whole, from := s.in.Content, s.at
	if s.in.Kind == yaml.MappingNode {
		from-- // its key, too
	}
	s.in.Content = slices.Delete(slices.Clone(whole), from, s.at+1)
	f()
	s.in.Content = whole
}

// outcome is the content of a file and the findings in it, without places.
type outcome struct {
	read  any // nil: it has mistakes
	found []Finding
}

func outcomeOf(t *testing.T, doc *yaml.Node, isScenario bool) (o outcome) {
	data := must.Have(yaml.Marshal(doc))
	if isScenario {
		s, err := scenario.Parse("x.yaml", data)
		if err != nil {
			return outcome{found: []Finding{{Message: err.Error()}}}
		}
		return outcome{read: s}
	}
	if f, err := config.ParsePolicyFile("x.yaml", data); err == nil {
		o.read = []any{f.Version, f.Defaults, f.Dependencies, f.Services} // all but the places
	}
	o.found = linted(t, string(data)).Findings
	for i := range o.found {
		o.found[i].Line, o.found[i].Column = 0, 0
	}
	return o
}

// anyway are values that make no difference where they stand, each with the reason.
var anyway = map[string]string{
	"faults.*.kind: stall":                              "zero",
	"arrivals.kind: poisson":                            "zero",
	"ramp.*.factor: 0":                                  "zero",
	"backoff.kind: exponential":                         "zero",
	"pool.kind: http":                                   "zero",
	"backoff.jitter: full":                              "zero",
	"good/shop.yaml: dependencies.*.attempts: 2":        "preset internal-service has it",
	"good/shop.yaml: dependencies.*.backoff.base: 25ms": "preset internal-service has it",
	"found/sane.yaml: dependencies.*.attempts: 2":       "preset internal-service has it",
}

// unheeded are the fields that make no difference to what is found, each with the reason.
var unheeded = map[string]string{
	"version":               "1 is the only one, and others are refused",
	"timeouts":              "an attempt that takes nearly its timeout and fails otherwise is repeated: the sums are the same",
	"breaker.open_for":      "when calls are let through again is no time that any call takes",
	"breaker.open_jitter":   "as open_for",
	"breaker.open_max":      "as open_for",
	"breaker.probe_timeout": "as open_for",
	"breaker.probes":        "as open_for",
	"budget.cooldown":       "it makes retries fewer, and the sums are of the most that there may be",
	"budget.earn":           "the share is one of the calls either way",
	"limit.max_queue":       "it refuses calls; how long those that wait do is max_wait",
	"throttle.k":            "the adaptive mode refuses calls, and delays none",
	"throttle.min_requests": "as k",
	"throttle.window":       "as k",
	"throttle.recent":       "as k",
	"throttle.probe_every":  "as k",
}

// witnesses are files in which fields matter that matter in no example.
var witnesses = []string{
	"dependencies: {a: {attempts: 2, attempt_timeout: 100ms, deadline: 5s, rate_limited_base: 700ms}}\nservices: {s: {slo: 1s, calls: [a]}}",
	"dependencies: {a: {attempts: 2, attempt_timeout: 100ms, deadline: 5s, hint_limit: 900ms}}\nservices: {s: {slo: 1s, calls: [a]}}",
	"dependencies: {a: {budget: {unlimited: true, stock: 5}}}",
	"dependencies: {a: {attempts: 3, attempt_timeout: none, deadline: 3s, backoff: {base: 1s, fast_first: true}}}",
	"dependencies: {a: {rate: 10, budget: {floor: 1, window: 10s, ratio: 15%}}}",
	"dependencies: {a: {attempts: 2, attempt_timeout: 1s}}\nservices: {s: {deliveries: 5, calls: [a]}}",
	"dependencies:\n  " + layered("lull", "lull", ", nested: always"),
	"dependencies: {a: {attempts: 2, attempt_timeout: 100ms, deadline: 400ms, throttle: {mode: cubic, max_wait: 1s}}}",
	"dependencies: {a: {rate: 1, breaker: {consecutive: -1, failure_rate: 50%, window: 1s}}}",
	"dependencies: {a: {breaker: {consecutive: 1, consecutive_for: -1ns}}}",
	"dependencies: {a: {breaker: {consecutive: -1, slow_rate: 5%, slow_call: 1s, min_calls: 4}}}",
	"dependencies: {a: {breaker: {metrics_only: true, consecutive: -1}}}",
}

// Rule 21: nothing is lost without a word. If any single value is removed from an example, the
// content changes or the file is refused. Each field of a policy file changes the findings of some
// example.
func TestRule21NoValueIsLostWithoutAWord(t *testing.T) {
	t.Parallel()
	files := examples(t)
	maps.Copy(files, filesOf(t, "../../../lab/study/*.yaml", "../internal/simulate/testdata/*.yaml", "../../../lab/scenario/scenarios/*.yaml", "../../../config/testdata/*.yaml"))
	for i, text := range witnesses {
		files["witness "+strconv.Itoa(i)] = text
	}
	tried, heeded := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(files[name]), &doc); err != nil {
			if !strings.Contains(name, "mistake") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		scenario := slices.ContainsFunc(doc.Content[0].Content, func(n *yaml.Node) bool { return n.Value == "fleets" })
		whole := outcomeOf(t, &doc, scenario)
		for _, s := range scalars(&doc, "") {
			field := s.path
			if parts := strings.SplitN(s.path, ".", 3); len(parts) == 3 && (parts[0] == "dependencies" || parts[0] == "policies") {
				field = parts[2]
			}
			field = strings.TrimPrefix(field, "defaults.")
			at := name + ": " + s.path + ": " + s.value
			s.without(func() {
				tried++
				now := outcomeOf(t, &doc, scenario)
				found := !reflect.DeepEqual(now.found, whole.found)
				// Of a file with mistakes nothing but these is found.
				if !found && reflect.DeepEqual(now.read, whole.read) && whole.read != nil && !standsAnyway(at) {
					t.Errorf("%s: nothing changes without it", at)
				}
				if !scenario && whole.read != nil {
					heeded[field] = heeded[field] || found
				}
			})
		}
	}
	if tried < 1500 {
		t.Errorf("only %d values were tried", tried)
	}
	for _, field := range slices.Sorted(maps.Keys(heeded)) {
		if why := unheeded[field]; heeded[field] == (why != "") {
			t.Errorf("%s changes what is found: %v, and the reason why it does not: %q", field, heeded[field], why)
		}
	}
	for field := range unheeded {
		if _, ok := heeded[field]; !ok {
			t.Errorf("%s is in no example", field)
		}
	}
}

func standsAnyway(at string) bool {
	for end := range anyway {
		if strings.HasSuffix(at, end) {
			return true
		}
	}
	return false
}
