package syntax

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/tree"
)

var (
	strict  = Rules{Bytes: 1 << 20, Documents: 1, Aliased: 100, Strict: true}
	lenient = Rules{Bytes: 1 << 20, Documents: 3, Aliased: 100}
)

func faults(n *tree.Node) (all tree.Mistakes) {
	all = append(all, n.Faults...)
	for _, item := range n.Items {
		all = append(all, faults(item)...)
	}
	for _, m := range n.Members {
		all = append(all, faults(m.Value)...)
	}
	return all
}

// read returns the mistakes in text; if there are none, its content.
func read(text string, rules Rules) string {
	all, err := Parse("f", []byte(text), rules)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, n := range all {
		if f := faults(n).Err(); f != nil {
			lines = append(lines, f.Error())
		}
		lines = append(lines, string(n.Compact()))
	}
	return strings.Join(lines, "\n")
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, strict, lenient string }{
		{"# nothing", "", ""},
		{"~", "null", "null"},
		{"a: True\nb: 0x10\nc: 2020-01-01\nd: 'x'", `{"a":true,"b":0x10,"c":"2020-01-01","d":"x"}`, `{"a":true,"b":0x10,"c":"2020-01-01","d":"x"}`},
		{"a: 1\n---\nb: 2", "f:2:1: a second document: want one document in a file", "{\"a\":1}\n{\"b\":2}"},
		{"a\n---\nb\n---\nc\n---\nd", "f:2:1: a second document: want one document in a file", "f:6:1: one of too many documents: want at most 3 in a file"},
		{"{~: 1, null: 2}", "f:1:2: ? is empty: want a name, in quotes if it is ~ or null\nf:1:8: ? is empty: want a name, in quotes if it is ~ or null\n{}",
			"f:1:2: ? is empty: want a name, in quotes if it is ~ or null\nf:1:8: ? is empty: want a name, in quotes if it is ~ or null"},
		{"a: 1\na: 2", "f:2:1: a is set twice, first in line 1: want one value\n{\"a\":1}", `{"a":1,"a":2}`},
		{"a: !!str 1\nb: !x 2", "f:1:4: tagged \"!!str\": want a plain value\nf:2:4: tagged \"!x\": want a plain value\n{\"a\":\"1\",\"b\":\"2\"}", `f:2:4: tagged "!x": want a plain value`},
		{"a: !x {b: 1}", "f:1:4: tagged \"!x\": want a plain value\n{\"a\":{\"b\":1}}", `{"a":{"b":1}}`},
		{"!ignore a: 1\nb: 2", "f:1:1: ? is tagged \"!ignore\": want a plain value\n{\"b\":2}", `{"b":2}`},
		{"{[a]: 1, {b: 2}: 3}", "f:1:2: ? is a list: want a name\nf:1:10: ? is a mapping: want a name\n{}", "f:1:2: ? is a list: want a name\nf:1:10: ? is a mapping: want a name"},
		// An own key hides a merged one, and the first of those the others.
		{"a: &a {x: 1, y: 2}\nb: &b {x: 3, z: 4}\nc: {<<: [*a, *b], y: 5}", `{"a":{"x":1,"y":2},"b":{"x":3,"z":4},"c":{"y":5,"x":1,"z":4}}`, `{"a":{"x":1,"y":2},"b":{"x":3,"z":4},"c":{"y":5,"x":1,"z":4}}`},
		{"a: &a [{x: 1}, {y: 2}]\nb: {<<: *a}", `{"a":[{"x":1},{"y":2}],"b":{"x":1,"y":2}}`, `{"a":[{"x":1},{"y":2}],"b":{"x":1,"y":2}}`},
		{"a: {<<: 3}\nb: {<<: [[]]}", "f:1:9: << is \"3\": want a mapping to merge, such as *name\nf:2:10: << is a list: want a mapping to merge, such as *name\n{\"a\":{},\"b\":{}}",
			"f:1:9: << is \"3\": want a mapping to merge, such as *name\nf:2:10: << is a list: want a mapping to merge, such as *name"},
		{"a: {<<: {x: 1}, <<: {y: 2}}", "f:1:17: << is set twice, first in line 1: want a list of all that is merged, such as [*a, *b]\n{\"a\":{\"x\":1}}", `{"a":{"x":1,"y":2}}`},
		{"a: &a {<<: *a}", "f:1:4: nested too deep: want at most 100 lists and mappings in one another", "f:1:4: nested too deep: want at most 100 lists and mappings in one another"},
		{"a: &a [" + strings.Repeat("1,", 60) + "]\nb: [*a, *a]", "f:1:84: one of too many aliased values: want at most 100 of them", "f:1:84: one of too many aliased values: want at most 100 of them"},
		{"a: &a [" + strings.Repeat("{},", 60) + "]\nb: [{<<: *a}, {<<: *a}, *a]", "f:1:8: one of too many aliased values: want at most 100 of them", "f:1:8: one of too many aliased values: want at most 100 of them"},
		{`{"a": [1, 2.5, "x", null, true, {}]}`, `{"a":[1,2.5,"x",null,true,{}]}`, `{"a":[1,2.5,"x",null,true,{}]}`},
		{`{"a": [1}`, "f:1:9: not YAML: did not find expected ',' or ']' (while parsing a flow sequence, line 1)", "f:1:9: not JSON: invalid character '}' after array element"},
		{"grpc_config=[{\"a\":1}]", `"grpc_config=[{\"a\":1}]"`, `[{"a":1}]`},
		{"a: 1 # \u2028b: 2", `f:1:8: the character U+2028: want lines that end in \n or \r\n`, `{"a":1,"b":2}`},
		{"a: \xff", "f:1:4: the byte 0xff: want text in UTF-8", "f:1:4: the byte 0xff: want text in UTF-8"},
	} {
		if got := read(c.text, strict); got != c.strict {
			t.Errorf("%q, strict:\n%s\nwant\n%s", c.text, got, c.strict)
		}
		if got := read(c.text, lenient); got != c.lenient {
			t.Errorf("%q:\n%s\nwant\n%s", c.text, got, c.lenient)
		}
	}
}

// What an alias leads to stands where its anchor does.
func TestPlaces(t *testing.T) {
	all, err := Parse("f", []byte("\ufeffä: &a\n  - x\nb: *a\n? c\n: {<<: {d: 1}}\n"), strict)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all[0].Members {
		got = append(got, fmt.Sprintf("%s %d:%d %d:%d", m.Key, m.Line, m.Column, m.Value.Line, m.Value.Column))
	}
	if want := []string{"ä 1:1 1:4", "b 3:1 1:4", "c 4:3 5:3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Everything that is read can be written, and is then read as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: [1, x, ~, 'true', {b: \"\"}]\n", "a: &a {b: 1}\nc: {<<: *a}\n", `{"a": "\u2028"}`, "- |\n  x\n- >-\n  y\n", "? [a]\n: b\n", "%YAML 1.1\n---\na\n", "<<: {a: !x 1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, rules := range []Rules{strict, lenient} {
			all, err := Parse("f", data, rules)
			if err != nil {
				continue
			}
			for _, n := range all {
				if len(faults(n)) > 0 {
					continue
				}
				text, err := YAML(80, n)
				if err != nil {
					t.Fatalf("%q cannot be written: %v", data, err)
				}
				again, err := Parse("f", text, lenient)
				if err != nil || len(again) != 1 || string(again[0].Compact()) != string(n.Compact()) {
					t.Errorf("%q is written\n%s\nwhich is read as %v, %v", n.Compact(), text, again, err)
				}
			}
		}
	})
}
