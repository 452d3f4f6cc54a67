package schematest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	_ "github.com/lullgo/lull/lab/rivals" // whose names the program lull takes, and so the schema
	"github.com/lullgo/lull/preset"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc := must.Have(jsonschema.UnmarshalJSON(bytes.NewReader(config.PolicySchema())))
	c := jsonschema.NewCompiler()
	must.Succeed(c.AddResource(config.SchemaURL, doc))
	s := must.Have(c.Compile(config.SchemaURL)) // against the meta-schema as well
	return s
}

// value is n as the language server hands it to the schema: as YAML 1.2 has it.
func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return value(n.Content[0])
	case yaml.AliasNode:
		return value(n.Alias)
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, value(c))
		}
		return list
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Tag == "!!merge" {
				for k, v := range value(n.Content[i+1]).(map[string]any) {
					if _, ok := m[k]; !ok {
						m[k] = v
					}
				}
				continue
			}
			m[n.Content[i].Value] = value(n.Content[i+1])
		}
		return m
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value
	}
	return plain(n.Value)
}

// plain is a text without quotes: the core schema of YAML 1.2 (section 10.3.2).
func plain(text string) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	switch {
	case decimal.MatchString(text):
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
		}
	case others.MatchString(text):
		if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10))
		}
	}
	return text
}

var (
	decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	others  = regexp.MustCompile(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	usual   = regexp.MustCompile(`^(true|false|-?(0|[1-9][0-9]*|0?\.[0-9]*[1-9]|[1-9][0-9]*\.[0-9]+))$`)
)

// respelt: the text of a mistake is a number or a boolean to YAML, though not one that the
// reader takes: 010, +3, 1e3 for a whole number, True. The schema is not shown the text.
func respelt(m config.Mistake) bool {
	text, err := strconv.Unquote(m.Found)
	if err != nil || usual.MatchString(text) {
		return false
	}
	switch plain(text).(type) {
	case json.Number, bool:
		return true
	}
	return false
}

func parsed(t testing.TB, data string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(data), &n); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return &n
}

// beyond reports whether a schema cannot know of a mistake. PolicySchema lists all of it.
func beyond(m config.Mistake) bool {
	if respelt(m) || relation.MatchString(m.Allowed) || relation.MatchString(m.Found) {
		return true
	}
	if m.Found == "unknown" {
		return strings.Contains(m.Path, "<<")
	}
	text, err := strconv.Unquote(m.Found)
	if err != nil { // a duration or a number that the reader has read already
		text = m.Found
	}
	return compound.MatchString(text) || exponent.MatchString(text)
}

var (
	// relation is what the reader allows where other fields count, of the file or of a preset.
	relation = regexp.MustCompile(`no more than the Deadline|at least Base|less than Base|at most Cap|of at most 9|because|where (Window|Delay) is|Hedge\.Attempts|hedging off|` +
		`when SlowRate|of at least (OpenFor|MinDelay)|up to Window|what Percentile leaves|with a Delay of AtOnce|retries from 1 to|a dependency: |an operation of |no other service|beside dependencies|set twice|` +
		`one dependency without a name`)
	compound = regexp.MustCompile(`[a-zµμ]+[0-9.]`)  // 1h30m
	exponent = regexp.MustCompile(`^-?[0-9._]+[eE]`) // 1e3, in quotes
)

// agree fails unless the schema takes what the reader takes, and refuses what it refuses but for what
// is beyond a schema.
func agree(t testing.TB, s *jsonschema.Schema, data string) {
	t.Helper()
	_, readErr := config.ParsePolicyFile("f", []byte(data))
	schemaErr := s.Validate(value(parsed(t, data)))
	var mistakes config.Mistakes
	if readErr != nil && !errors.As(readErr, &mistakes) {
		t.Fatal(readErr)
	}
	must := false
	for _, m := range mistakes {
		must = must || !beyond(m)
	}
	switch {
	case readErr == nil && schemaErr != nil:
		t.Errorf("the reader takes it, the schema does not: %v\n%s", schemaErr, data)
	case must && schemaErr == nil:
		t.Errorf("the schema takes it, the reader does not: %v\n%s", readErr, data)
	}
}

func TestSchemaTakesAndRefuses(t *testing.T) {
	s := compiled(t)
	for _, c := range []struct {
		data  string
		takes bool
	}{
		{"# yaml-language-server: $schema=" + config.SchemaURL + "\nversion: 1\n", true},
		{"{}", true},
		{"attempts: 3", true},
		{"attempts: 10k", false},
		{"attempts: 1001", false},
		{"attempts: -1", false},
		{"attempts: '-0'", true},
		{"attempts: 1_000", true},
		{"attempts: 1_001", false},
		{"attempts: 0.001M", true},
		{"attempts: 0.002M", false},
		{"attempts: '1e9'", false}, // a whole number has no exponent
		{"deadline: 99us", false},
		{"deadline: 100us", true},
		{"deadline: 0.05ms", false},
		{"deadline: 60000ns", false}, // a minute that has lost its unit
		{"deadline: 0.000s", true},
		{"deadline: -1s", false},
		{"deadline: -1ns", true}, // none, as Go writes it
		{"budget: {window: 2h}", false},
		{"budget: {window: 61m}", false},
		{"budget: {window: 1h}", true},
		{"budget: {window: 50ms}", false},
		{"budget: {ratio: 401%}", false},
		{"budget: {ratio: -1}", false},
		{"breaker: {failure_rate: 101%}", false},
		{"breaker: {consecutive_for: -1s}", true},
		{"breaker: {consecutive_for: 5us}", false},
		{"breaker: {open_jitter: 1001%}", false},
		{"hedge: {attempts: 2, percentile: 0.4}", false},
		{"hedge: {attempts: 2, percentile: 99.95%}", false},
		{"hedge: {attempts: 6}", false},
		{"throttle: {k: 1.01}", false},
		{"services: {shop: {calls: [{dependency: api, times: 10001}]}}", false},
		{"services: {shop: {provides: ['']}}", false},
		{"services: {shop: {calls: ['']}}", false},
		{"services: {shop: {calls: [{times: 2}]}}", false},
		{"attempts: '3'", true},
		{"attempts: 1.5", false},
		{"attempts: many", false},
		{"atempts: 3", false},
		{"attempts: 3\nversion: 1", false},
		{"deadline: 3s", true},
		{"deadline: none", true},
		{"deadline: 0", true},
		{"deadline: 3", false},
		{"deadline: ' 3s'", false},
		{"hedge: {attempts: 2, share: -1, delay: at-once}", true},
		{"hedge: {attempts: 2, share: -1, delay: none}", false},
		{"attempts: '1_0'", true},
		{"attempts: '1_'", false},
		{"attempts: '010'", false},
		{"attempts: 010", true}, // ten to YAML, by its version, or eight; only the reader sees the text
		{"attempts: '0.002k'", true},
		{"attempts: '0.0002k'", false},
		{"breaker: {off: True}", true}, // likewise
		{"breaker: {off: 'True'}", false},
		{"deadline: 3 sec", false},
		{"hint_limit: none", false},
		{"budget: {ratio: 5%}", true},
		{"budget: {ratio: 5 percent}", false},
		{"budget: {ratio: 0.05}", true},
		{"budget: {ratio: 10}", false},
		{"budget: {ratio: '10'}", false},
		{"budget: {ratio: '1.5'}", false},
		{"budget: {ratio: 1.0}", true},
		{"budget: {ratio: '1.0'}", true},
		{"budget: {ratio: 250%}", true},
		{"breaker: {open_jitter: -1}", true},
		{"breaker: {open_jitter: '-5'}", true},
		{"breaker: off", false},
		{"budget:", true},
		{"budget: 5%", false},
		{"backoff: {jitter: Full}", true},
		{"backoff: {jitter: ful}", false},
		{"preset: external-api", true},
		{"preset: External-API", false},
		{"dependencies: {api: }", true},
		{"dependencies: {api: {name: x}}", false},
		{"dependencies:", false},
		{"dependencies: {}", false},
		{"services: {}", false},
		{"dependencies: {a: {operations: {}}}", false},
		{"dependencies: {a: {rate: 2 k}}", true},
		{"dependencies: {' a': }", false},
		{"version: 2", false},
		{"defaults: {attempts: 2}", true},
		{"defaults: {operations: {}}", false},
		{"services: {shop: {slo: 2s, calls: [api, {dependency: api, parallel: true}], provides: [x]}}", true},
		{"services: {shop: {calls: api}}", false},
		{"services: {shop: {calls: [{dependancy: api}]}}", false},
		{"services: {shop: {calls: [[api]]}}", false},
		{"[]", false},
		{"text", false},
	} {
		err := s.Validate(value(parsed(t, c.data)))
		check.Equal(t, err == nil, c.takes, "%q: %v", c.data, err)
		agree(t, s, c.data)
	}
}

// Every policy file of the repository that is right.
func TestSchemaTakesTheFilesThatTheReaderTakes(t *testing.T) {
	s, files := compiled(t), 0
	for _, pattern := range []string{"../../config/testdata/*.yaml", "../study/policies/*.yaml", "../../docs/examples/policies/*.yaml", "../../docs/examples/policies/*/*.yaml"} {
		names := must.Have(filepath.Glob(filepath.FromSlash(pattern)))
		for _, name := range names {
			data := must.Have(os.ReadFile(name))
			if _, err := config.ParsePolicyFile(name, data); err != nil {
				continue
			}
			files++
			if err := s.Validate(value(parsed(t, string(data)))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if files < 5 {
		t.Errorf("only %d files", files)
	}
}

// Every value of a file that has every field is replaced by things that somebody may write, a
// quarter of all in each run, and every mapping gets a key that there is not.
func TestSchemaAgreesWithTheReaderFieldByField(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 1))
	data := everything(t)
	agree(t, s, data)
	fields := 0
	root := parsed(t, data)
	visit(root, func(n *yaml.Node) {
		fields++
		before := *n
		for _, other := range []string{
			"3", "0", "-1", "1.5", "2.0", ".5", "1e3", "1_000", "10k", "2 M", "5%", "10 %", "3s", "1h30m", "-3s", "1.5ms", "3 sec", "none", "None",
			"true", "false", "yes", "True", "full", "FULL", "exponential", "when-answered", "successes", "x", "''", "'3'", "'true'", "~", "", "[]", "{}", "[1]", "{a: 1}",
			"external-api", "go-retryablehttp", "grpc", "99999999999999999999", "1.2.3", "+3", "0x10", "k", "'%'", "' 3s'", "'full '", "|\n  3\n", "100", "250%", "at-once", "010", "1_", "'1.5'", "1001", "2147483648", "0.3", "99us", "50ms", "61m", "-1ms", "1e-7", "NULL", "TRUE", "2001-01-01", "api", "[api]", "[[]]",
		} {
			if random.IntN(4) > 0 {
				continue
			}
			var with yaml.Node
			must.Succeed(yaml.Unmarshal([]byte("v: "+other), &with))
			*n = *with.Content[0].Content[1]
			if agreeOn(t, s, root); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			*n = before
		}
		if n.Kind == yaml.MappingNode {
			n.Content = append(n.Content[:len(n.Content):len(n.Content)], &yaml.Node{Kind: yaml.ScalarNode, Value: "bogus"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1"})
			agreeOn(t, s, root)
			*n = before
		}
	})
	if fields < 80 {
		t.Errorf("only %d values", fields)
	}
}

// Files in which several things are replaced, left out or moved, by numbers and durations
// among others that are made of any characters which such have.
func TestSchemaAgreesWithTheReaderOnAnyFile(t *testing.T) {
	t.Parallel()
	s, data := compiled(t), everything(t)
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	files := 1500
	if testing.Short() {
		files = 300
	}
	for range files {
		root := parsed(t, data)
		for range 1 + random.IntN(4) {
			mutate(random, root)
		}
		if agreeOn(t, s, root); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// mutate changes one thing below root.
func mutate(random *rand.Rand, root *yaml.Node) {
	var all []*yaml.Node
	visit(root, func(n *yaml.Node) { all = append(all, n) })
	n, other := all[random.IntN(len(all))], all[random.IntN(len(all))]
	entries := len(n.Content) / 2
	switch {
	case n.Kind == yaml.ScalarNode && random.IntN(3) > 0:
		n.Value, n.Tag = anyScalar(random), "" // YAML finds out what it is
		n.Style = [...]yaml.Style{0, 0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle}[random.IntN(4)]
	case n.Kind == yaml.ScalarNode && other.Kind == yaml.ScalarNode:
		*n = *other
	case n.Kind == yaml.MappingNode && entries > 1:
		i, k := 2*random.IntN(entries), 2*random.IntN(entries)
		if random.IntN(2) == 0 {
			n.Content = slices.Delete(n.Content, i, i+2)
		} else {
			n.Content[i+1], n.Content[k+1] = n.Content[k+1], n.Content[i+1]
		}
	}
}

// anyScalar is a number, a duration or a share, or nearly one.
func anyScalar(random *rand.Rand) string {
	const characters = "00112233445566778899..--+__  kMG%eEsmhnuµ"
	var b strings.Builder
	for range 1 + random.IntN(6) {
		all := []rune(characters)
		b.WriteRune(all[random.IntN(len(all))])
	}
	return b.String()
}

func agreeOn(t *testing.T, s *jsonschema.Schema, root *yaml.Node) {
	t.Helper()
	data := must.Have(yaml.Marshal(root))
	agree(t, s, string(data))
}

func visit(n *yaml.Node, f func(*yaml.Node)) {
	if n.Kind != yaml.DocumentNode {
		f(n)
	}
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			visit(c, f)
		}
	}
}

// everything is a file in which every field is set.
func everything(t *testing.T) string {
	t.Helper()
	f := config.PolicyFile{
		Version:  1,
		Defaults: config.Defaults{Preset: "external-api", Policy: preset.ExternalAPI()},
		Dependencies: []config.Dependency{{
			Name: "api", Preset: "lull", P99: time.Second, Rate: 5,
			Operations: []config.Operation{{Name: "charge", Idempotent: config.No, Keyed: true, P99: time.Second}},
		}},
		Services: []config.Service{{
			Name: "shop", SLO: time.Second, Provides: []string{"api"}, Handler: time.Second, Visibility: time.Second, Deliveries: 2, Server: config.LullServer,
			Calls: []config.Edge{{Dependency: "api"}, {Dependency: "api", Operation: "charge", Times: 2, Parallel: "x"}},
		}},
	}
	set(reflect.ValueOf(&f.Dependencies[0].Policy).Elem())
	data := must.Have(config.FormatPolicyFile(&f))
	return string(data)
}

// set makes all of v something other than zero.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint8:
		v.SetUint(1)
	default:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(1500 * time.Millisecond))
			return
		}
		v.SetInt(2)
	}
}

func TestValueIsAsYAMLHasIt(t *testing.T) {
	got := fmt.Sprint(value(parsed(t, "a: &x {b: 1, c: '1', d: true, e: ~, f: 3s}\ng: {<<: *x, b: 2}\n")))
	check.Equal(t, got, "map[a:map[b:1 c:1 d:true e:<nil> f:3s] g:map[b:2 c:1 d:true e:<nil> f:3s]]", "got")
}
