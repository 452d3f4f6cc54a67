package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func places(n *Node, path string, b *strings.Builder) {
	fmt.Fprintf(b, "%d:%d %s\n", n.Line, n.Column, path)
	for i, item := range n.Items {
		places(item, Element(path, i), b)
	}
	for _, m := range n.Members {
		fmt.Fprintf(b, "%d:%d key %s\n", m.Line, m.Column, m.Key)
		places(m.Value, Join(path, m.Key), b)
	}
}

func TestPlacesOfJSON(t *testing.T) {
	docs := must.Have(ParseJSON([]byte("{\"a\" : [1, \"é\",\n\t{ } ],\n\n \"b\":null, \"c\": true}\n[-2.5e3]")))
	var b strings.Builder
	for _, d := range docs {
		places(d, "", &b)
	}
	const want = `1:1 
1:2 key a
1:8 a
1:9 a[0]
1:12 a[1]
2:2 a[2]
4:2 key b
4:6 b
4:12 key c
4:17 c
5:1 
5:2 [0]
`
	check.Equal(t, b.String(), want, "b.String()")
	check.Equal(t, string(docs[0].Compact()), `{"a":[1,"é",{}],"b":null,"c":true}`, "compacted")
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "unexpected EOF (line 1, column 1)",
		"  \n ":                  "unexpected EOF (line 2, column 2)",
		"{":                      "unexpected EOF (line 1, column 2)",
		"{\"a\":":                "unexpected EOF",
		"[1,\n2":                 "unexpected EOF (line 2, column 2)",
		"[1,\n  x]":              "invalid character 'x' looking for beginning of value (line 2, column 3)",
		"{\"a\" 1}":              "(line 1, column 6)",
		"[1 2]":                  "(line 1, column 4)",
		"{} ]":                   "(line 1, column 4)",
		"\"\\q\"":                "invalid character 'q' in string escape code (line 1, column 3)",
		"\"é\\u00g0\"":           "invalid character 'g' in \\u hexadecimal character escape (line 1, column 7)",
		"\"a\n\"":                "invalid character '\\n' in string literal (line 1, column 3)",
		"\"a":                    "unexpected EOF (line 1, column 3)",
		"[1,\n]":                 "invalid character ']' looking for beginning of value (line 2, column 1)",
		"{\"a\":1,\n }":          "invalid character '}' looking for beginning of object key string (line 2, column 2)",
		"{\"a\":1\n \"b\":2}":    "invalid character '\"' after object key:value pair (line 2, column 2)",
		"[01]":                   "invalid character '1' after array element (line 1, column 3)",
		"[-]":                    "invalid character ']' in numeric literal (line 1, column 3)",
		"[1.é]":                  "invalid character 'é' in numeric literal (line 1, column 4)",
		"1e":                     "unexpected EOF (line 1, column 3)",
		"nul":                    "unexpected EOF (line 1, column 4)",
		"\ufeff{}":               "(line 1, column 1)",
		"[\x00]":                 "(line 1, column 2)",
		strings.Repeat("[", 101): "nested deeper than 100 (line 1, column 101)",
		"{\"a\": tru}":           "(line 1, column 10)",
		"{1: 2}":                 "(line 1, column 2)",
	} {
		_, err := ParseJSON([]byte(text))
		m, ok := errors.AsType[Mistake](err)
		if got := fmt.Sprintf("%s (line %d, column %d)", m.Found, m.Line, m.Column); !ok || !strings.HasPrefix(got, "not JSON: ") || !strings.Contains(got, want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What is JSON, and its values, are the same as for the standard library.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, -0.5e+3, "é\u00e9\ud83d\ude00\n\/", true, false, null], "b": {}}`, `{} []1 2`, `"\ud800"`, "\"\xff\"", `[01]`, `[1.]`, `{"a":1,}`, `tru`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := ParseJSON(data)
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		for i := 0; ; i++ {
			var want, got any
			known := d.Decode(&want)
			if m, wrong := errors.AsType[Mistake](err); wrong {
				switch {
				case strings.Contains(m.Found, "nested"):
					return
				case m.Line < 1 || m.Column < 1:
					t.Fatalf("%q: %v has no place", data, m)
				case known == io.EOF && i > 0:
					t.Fatalf("%q: %v, and it is JSON", data, m)
				case known != nil:
					return
				}
				continue
			}
			if i == len(all) {
				if known != io.EOF {
					t.Fatalf("%q has %d values and then %v", data, i, known)
				}
				return
			}
			own := json.NewDecoder(bytes.NewReader(all[i].Compact()))
			own.UseNumber()
			if err := own.Decode(&got); err != nil || known != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: %v, %v, want %v, %v", data, got, err, want, known)
			}
		}
	})
}

func TestSeconds(t *testing.T) {
	for d, text := range map[time.Duration]string{
		0: "0s", 1: "0.000000001s", time.Second: "1s", 1500 * time.Millisecond: "1.5s", -250 * time.Millisecond: "-0.25s",
		math.MaxInt64: "9223372036.854775807s", math.MinInt64: "-9223372036.854775808s", 10 * time.Minute: "600s",
	} {
		check.Equal(t, Seconds(d), text, "%v is written", d)
		back, ok := ParseSeconds(text)
		if !ok || back != d && d != math.MinInt64 {
			t.Errorf("%s is %v, %v", text, back, ok)
		}
	}
	for _, bad := range []string{"", "s", ".s", "1", "1m", "1.1234567890s", "+1s", "--1s", "1.-5s", "1e3s", "0x1s", " 1s", "1 s", "315576000001s"} {
		if d, ok := ParseSeconds(bad); ok {
			t.Errorf("%q is %v", bad, d)
		}
	}
	if d, ok := ParseSeconds("315576000000s"); !ok || d != math.MaxInt64 {
		t.Errorf("the longest is %v, %v", d, ok)
	}
}

func TestObjects(t *testing.T) {
	docs := must.Have(ParseJSON([]byte(`{"numRetries": "3", "num_retries": 4, "on": "yes", "list": {}, "f": 1e400, "none": null, "big": 1.0, "half": 0.5, "other": 1}`)))
	r := &Reader{Same: SnakeOrCamel}
	o := r.Object(docs[0], "")
	if n, ok := o.Whole("num_retries", 0, 9, "a digit"); n != 3 || !ok {
		t.Errorf("num_retries %d, %v", n, ok)
	}
	o.Bool("on")
	o.List("list")
	o.Float("f", "a number", func(float64) bool { return true })
	if n, _ := o.Get("none"); n != nil || o.Has("none") {
		t.Error("null is a value")
	}
	if n, ok := o.Whole("big", 0, 9, "a digit"); n != 1 || !ok {
		t.Errorf("1.0 is %d, %v", n, ok)
	}
	o.Whole("half", 0, 9, "a digit")
	o.Require("missing", "something")
	o.NoMore("num_retries", "others")
	const want = `line 1: num_retries is given twice: want one value
line 1: on is "yes": want true or false
line 1: list is a mapping: want a list
line 1: f is 1e400: want a number
line 1: half is 0.5: want a digit
line 1: missing is missing: want something
line 1: other is unknown: want num_retries or others; did you mean others?`
	check.Equal(t, r.Mistakes.Error(), want, "r.Mistakes.Error()")
	var nobody *Object
	if n, _ := nobody.Get("x"); n != nil || nobody.Has("x") || nobody.Rest() != nil || len(nobody.Objects("x")) != 0 {
		t.Error("a mapping that is not there has fields")
	}
	nobody.NoMore("x")
}

// What is suggested in place of a duration can be read.
func TestSuggestedDurations(t *testing.T) {
	whole := func(text string) (time.Duration, bool) {
		d, ok := ParseSeconds(text)
		return d, ok && d%time.Second == 0
	}
	for text, want := range map[string]string{"2000ms": "2s", "250ms": "", "2 s": ""} {
		r := &Reader{}
		r.Duration(String(text), "x", 0, "whole seconds", whole)
		check.Equal(t, r.Mistakes[0].Suggestion, want, "%s", text)
	}
}

// A field is there if it can be read: of several the first counts.
func TestNullAndTwice(t *testing.T) {
	docs := must.Have(ParseJSON([]byte(`{"a": null, "a": 1, "b": 2, "b": null, "c": null}`)))
	r := &Reader{}
	o := r.Object(docs[0], "")
	for name, want := range map[string]bool{"a": false, "b": true, "c": false, "d": false} {
		has := o.Has(name)
		path, ok := o.PathOf(name)
		n, _ := o.Get(name)
		if has != want || ok != want || (path == name) != want || (n != nil) != want {
			t.Errorf("%s: Has %v, PathOf %q %v, Get %v", name, has, path, ok, n)
		}
	}
	check.Equal(t, len(r.Mistakes), 2, "problems %v", r.Mistakes)
}

func TestWordsAndForms(t *testing.T) {
	docs := must.Have(ParseJSON([]byte(`{"list": {}, "text": null, "d": {}, "items": [null, {}]}`)))
	for json, want := range map[bool]string{
		false: "line 1: list is a mapping: want a list\nline 1: d is a mapping: want 1s\nline 1: items[0] is empty: want a mapping",
		true:  "line 1: list is an object: want a list\nline 1: d is an object: want 1s\nline 1: items[0] is null: want an object",
	} {
		r := &Reader{JSON: json}
		o := r.Object(docs[0], "")
		o.List("list")
		o.Duration("d", 1, "1s", ParseSeconds)
		o.Objects("items")
		check.Equal(t, r.Mistakes.Error(), want, "JSON %v", json)
		err := fmt.Errorf("a file: %w", r.Mistakes)
		list, ok := errors.AsType[problem.List](err)
		if !ok || len(list) != 3 || list[0].Field != "list" || list[0].Allowed != "a list" || list[0].Value != r.Mistakes[0].Found {
			t.Errorf("as a list of problems %+v", list)
		}
		if p, ok := errors.AsType[problem.Problem](err); !ok || p != list[0] {
			t.Errorf("as a problem %+v", p)
		}
	}
	made := Mistakes{{Path: "a", Found: "1", Allowed: "2"}}
	check.Equal(t, made.Error(), "a is 1: want 2", "without a place")
}

func TestLongValuesAreCutOff(t *testing.T) {
	if got := Quote(strings.Repeat("é", 100)); len([]rune(got)) != 62 || !strings.HasSuffix(got, "…\"") {
		t.Errorf("%q", got)
	}
}

// What code makes is written as JSON, which is read as the same.
func TestTreesOfCode(t *testing.T) {
	n := NewMap().Set("a", "x").Set("b", 2).Set("c", int64(3)).Set("d", 0.5).Set("e", 1e300).Set("f", true).
		Set("g", (*Node)(nil)).SetIf(false, "h", 1).SetIf(true, "i", ListOf(Int(1), NewMap().Set("j", "y")))
	const want = `{"a":"x","b":2,"c":3,"d":0.5,"e":1e+300,"f":true,"i":[1,{"j":"y"}]}`
	again, err := ParseJSON(n.JSON())
	if err != nil || string(n.Compact()) != want || string(again[0].Compact()) != want {
		t.Fatalf("%s, and read again %v, %v; want %s", n.Compact(), again, err, want)
	}
	if n := again[0]; n.Count() != 8 || len(n.Values()) != 7 || !n.Any((*Node).Scalar) || n.Get("i").Any(func(n *Node) bool { return n.Kind == Text }) {
		t.Errorf("%d single values", n.Count())
	}
	i := again[0].Get("i")
	if i.Elements()[1].Get("j").Text != "y" || i.Get("j") != nil || i.Get("j").Get("k") != nil || i.Get("j").Elements() != nil {
		t.Errorf("%s", i.Compact())
	}
	o, read := new(Reader).Object(again[0], "p"), ""
	o.Each(func(name string, n *Node, path string) { read += name + " is " + path + ", " })
	if read != "a is p.a, b is p.b, c is p.c, d is p.d, e is p.e, f is p.f, i is p.i, " || o.Field("i") != i || o.Object("none") != nil {
		t.Errorf("%s", read)
	}
	o.Object("none").Each(func(string, *Node, string) { t.Error("nothing has a field") })
}
