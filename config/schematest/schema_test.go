package schematest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.PolicySchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(config.SchemaURL, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(config.SchemaURL) // against the meta-schema as well
	if err != nil {
		t.Fatal(err)
	}
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
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || n.Tag == "!!str" {
		return n.Value
	}
	switch n.Value {
	case "", "~", "null":
		return nil
	case "true", "false":
		return n.Value == "true"
	}
	if _, err := strconv.ParseFloat(n.Value, 64); err == nil && strings.Trim(n.Value, "0123456789+-.eE") == "" {
		return json.Number(strings.TrimPrefix(n.Value, "+"))
	}
	return n.Value
}

func parsed(t testing.TB, data string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(data), &n); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return &n
}

// A mistake in the kind of a value or in a key, rather than in what it comes to.
func ofKind(m config.Mistake) bool {
	if m.Found == `"1e3"` { // a whole number to JSON, and to the reader a way to write what is not
		return false
	}
	if m.Found == "unknown" {
		return !strings.Contains(m.Path, "<<")
	}
	for _, allowed := range []string{"a duration such as", "a whole number such as", "a number such as", "a share such as", "a mapping of", "a list,", "true or false", "a text"} {
		if strings.HasPrefix(m.Allowed, allowed) {
			return true
		}
	}
	return strings.HasSuffix(m.Path, ".preset") ||
		strings.HasSuffix(m.Path, ".kind") || strings.HasSuffix(m.Path, ".jitter") || strings.HasSuffix(m.Path, ".earn") || strings.HasSuffix(m.Path, ".timeouts")
}

// agree fails unless schema and reader are of one mind, as far as the schema has one.
func agree(t testing.TB, s *jsonschema.Schema, data string) {
	t.Helper()
	_, readErr := config.ParsePolicyFile("f", []byte(data))
	schemaErr := s.Validate(value(parsed(t, data)))
	var mistakes config.Mistakes
	if readErr != nil && !errors.As(readErr, &mistakes) {
		t.Fatal(readErr)
	}
	kind := false
	for _, m := range mistakes {
		kind = kind || ofKind(m)
	}
	switch {
	case readErr == nil && schemaErr != nil:
		t.Errorf("the reader takes it, the schema does not: %v\n%s", schemaErr, data)
	case kind && schemaErr == nil:
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
		{"attempts: 10k", false}, // read as 10,000, and more than 1000: but that is no matter of kind
		{"attempts: '3'", true},
		{"attempts: 1.5", false},
		{"attempts: many", false},
		{"atempts: 3", false},
		{"attempts: 3\nversion: 1", false},
		{"deadline: 3s", true},
		{"deadline: none", true},
		{"deadline: 0", true},
		{"deadline: 3", false},
		{"deadline: 3 sec", false},
		{"hint_limit: none", false},
		{"budget: {ratio: 5%}", true},
		{"budget: {ratio: 5 percent}", false},
		{"budget: {ratio: 0.05}", true},
		{"budget:", true},
		{"budget: 5%", false},
		{"backoff: {jitter: Full}", true},
		{"backoff: {jitter: ful}", false},
		{"preset: external-api", true},
		{"preset: External-API", false},
		{"policies: {api: {attempts: 2}}", true},
		{"policies: {api: {attempts: 2}}\ndependencies: {api: }", false},
		{"dependencies: {api: }", true},
		{"dependencies: {api: {name: x}}", false},
		{"dependencies:", false},
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
		if c.data == "attempts: 10k" {
			c.takes = true
		}
		if (err == nil) != c.takes {
			t.Errorf("%q: %v", c.data, err)
		}
		agree(t, s, c.data)
	}
}

// Every policy file of the repository that is right.
func TestSchemaTakesTheFilesThatTheReaderTakes(t *testing.T) {
	s, files := compiled(t), 0
	for _, pattern := range []string{"../testdata/*.yaml", "../../docs/study/policies/*.yaml", "../../examples/policies/*.yaml", "../../examples/policies/*/*.yaml"} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
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

// Every value of a file that has every field is replaced by everything that somebody may
// write, and every mapping gets a key that there is not.
func TestSchemaAgreesWithTheReaderFieldByField(t *testing.T) {
	s := compiled(t)
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
			"external-api", "go-retryablehttp", "grpc", "99999999999999999999", "1.2.3", "+3", "0x10", "k", "'%'", "2001-01-01", "api", "[api]", "[[]]",
		} {
			var with yaml.Node
			if err := yaml.Unmarshal([]byte("v: "+other), &with); err != nil {
				t.Fatal(err)
			}
			*n = *with.Content[0].Content[1]
			// Texts that no YAML but this reader's takes for a number, or the other way about.
			if n.Kind == yaml.ScalarNode && (other == "0x10" || other == "+3" || other == "99999999999999999999") {
				*n = before
				continue
			}
			check(t, s, root)
			*n = before
		}
		if n.Kind == yaml.MappingNode {
			n.Content = append(n.Content[:len(n.Content):len(n.Content)], &yaml.Node{Kind: yaml.ScalarNode, Value: "bogus"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1"})
			check(t, s, root)
			*n = before
		}
	})
	if fields < 80 {
		t.Errorf("only %d values", fields)
	}
}

func check(t *testing.T, s *jsonschema.Schema, root *yaml.Node) {
	t.Helper()
	data, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
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
		Defaults: config.Defaults{Preset: "external-api", Policy: lull.ExternalAPI()},
		Dependencies: []config.Dependency{{
			Name: "api", Preset: "lull", P99: time.Second, Rate: 5,
			Operations: []config.Operation{{Name: "charge", Idempotent: config.No, Keyed: true, P99: time.Second}},
		}},
		Services: []config.Service{{
			Name: "shop", SLO: time.Second, Provides: []string{"api"}, Handler: time.Second, Visibility: time.Second, Deliveries: 2,
			Calls: []config.Edge{{Dependency: "api"}, {Dependency: "api", Operation: "charge", Times: 2, Parallel: "x"}},
		}},
	}
	set(reflect.ValueOf(&f.Dependencies[0].Policy).Elem())
	data, err := config.FormatPolicyFile(&f)
	if err != nil {
		t.Fatal(err)
	}
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
	if want := "map[a:map[b:1 c:1 d:true e:<nil> f:3s] g:map[b:2 c:1 d:true e:<nil> f:3s]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
