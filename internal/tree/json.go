package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of values. A whole Envoy configuration has some thirty levels.
const MaxDepth = 100

// ParseJSON reads the JSON values in data, at least one. The error is a [Mistake] without a path, at the first character that
// cannot be part of JSON, or at the end.
func ParseJSON(data []byte) ([]*Node, error) {
	r := &jsonReader{data: data, line: 1, column: 1}
	var all []*Node
	for r.blanks(); r.at < len(data) || len(all) == 0; r.blanks() {
		n, err := r.value(0)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// A jsonReader reads a text character by character, by RFC 8259. The decoder of the standard library does not
// return the places of keys and values, and its places and words of mistakes change with releases of Go.
type jsonReader struct {
	data         []byte
	at           int // the index of the next character
	line, column int // of it
}

// next returns the first byte of the next character; 0 at the end.
func (r *jsonReader) next() byte {
	if r.at == len(r.data) {
		return 0
	}
	return r.data[r.at]
}

func (r *jsonReader) nextIn(chars string) bool { return strings.IndexByte(chars, r.next()) >= 0 }

func (r *jsonReader) skip() {
	c, size := utf8.DecodeRune(r.data[r.at:])
	r.at += size
	r.column++
	if c == '\n' {
		r.line, r.column = r.line+1, 1
	}
}

func (r *jsonReader) blanks() {
	for r.nextIn(" \t\r\n") {
		r.skip()
	}
}

func (r *jsonReader) notJSON(why string) error {
	return Mistake{Position: Position{Line: r.line, Column: r.column}, Found: "not JSON: " + why}
}

// wrong returns the mistake that the next character is; where describes its surroundings.
func (r *jsonReader) wrong(where string) error {
	if r.at == len(r.data) {
		return r.notJSON("unexpected EOF")
	}
	c, _ := utf8.DecodeRune(r.data[r.at:])
	return r.notJSON(fmt.Sprintf("invalid character %q %s", c, where))
}

const digits = "0123456789"

// value reads a value. The blanks before it have been read.
func (r *jsonReader) value(depth int) (n *Node, err error) {
	n = &Node{Line: r.line, Column: r.column}
	switch c := r.next(); {
	case c == '{':
		n.Kind = Map
		err = r.elements(n, depth, '}', "after object key:value pair")
	case c == '[':
		n.Kind = List
		err = r.elements(n, depth, ']', "after array element")
	case c == '"':
		n.Kind = Text
		n.Text, err = r.text()
	case c == '-', r.nextIn(digits):
		n.Kind = Number
		n.Text, err = r.number()
	case c == 'n':
		err = r.literal("null")
	case c == 't':
		n.Kind, n.Text = Bool, "true"
		err = r.literal(n.Text)
	case c == 'f':
		n.Kind, n.Text = Bool, "false"
		err = r.literal(n.Text)
	default:
		err = r.wrong("looking for beginning of value")
	}
	return n, err
}

func (r *jsonReader) elements(n *Node, depth int, end byte, after string) error {
	if depth == MaxDepth {
		return r.notJSON(fmt.Sprintf("values are nested deeper than %d", MaxDepth))
	}
	r.skip()
	r.blanks()
	for first := true; r.next() != end; first = false {
		if !first {
			if r.next() != ',' {
				return r.wrong(after)
			}
			r.skip()
			r.blanks()
		}
		if err := r.element(n, depth); err != nil {
			return err
		}
		r.blanks()
	}
	r.skip()
	return nil
}

func (r *jsonReader) element(n *Node, depth int) (err error) {
	m := Member{Line: r.line, Column: r.column}
	if n.Kind == Map {
		if r.next() != '"' {
			return r.wrong("looking for beginning of object key string")
		}
		if m.Key, err = r.text(); err != nil {
			return err
		}
		if r.blanks(); r.next() != ':' {
			return r.wrong("after object key")
		}
		r.skip()
		r.blanks()
	}
	if m.Value, err = r.value(depth + 1); err != nil {
		return err
	}
	if n.Kind == Map {
		n.Members = append(n.Members, m)
	} else {
		n.Items = append(n.Items, m.Value)
	}
	return nil
}

func (r *jsonReader) text() (s string, err error) {
	begin := r.at
	for r.skip(); r.next() != '"'; r.skip() {
		if r.next() < ' ' {
			return "", r.wrong("in string literal")
		}
		if r.next() != '\\' {
			continue
		}
		r.skip()
		if !r.nextIn(`"\/bfnrtu`) {
			return "", r.wrong("in string escape code")
		}
		if r.next() != 'u' {
			continue
		}
		for range 4 { // the last one is passed with the loop
			if r.skip(); !r.nextIn(digits + "abcdefABCDEF") {
				return "", r.wrong(`in \u hexadecimal character escape`)
			}
		}
	}
	r.skip()
	json.Unmarshal(r.data[begin:r.at], &s) // which is a string, as has been read
	return s, nil
}

func (r *jsonReader) number() (string, error) {
	begin := r.at
	if r.next() == '-' {
		r.skip()
	}
	if r.next() == '0' { // no digit follows it
		r.skip()
	} else if err := r.digits(); err != nil {
		return "", err
	}
	if r.next() == '.' {
		r.skip()
		if err := r.digits(); err != nil {
			return "", err
		}
	}
	if r.nextIn("eE") {
		if r.skip(); r.nextIn("+-") {
			r.skip()
		}
		if err := r.digits(); err != nil {
			return "", err
		}
	}
	return string(r.data[begin:r.at]), nil
}

func (r *jsonReader) digits() error {
	if !r.nextIn(digits) {
		return r.wrong("in numeric literal")
	}
	for r.nextIn(digits) {
		r.skip()
	}
	return nil
}

func (r *jsonReader) literal(word string) error {
	for _, c := range []byte(word) {
		if r.next() != c {
			return r.wrong("in literal " + word)
		}
		r.skip()
	}
	return nil
}

// JSON writes n, indented by two spaces a level and ended by a new line.
func (n *Node) JSON() []byte {
	var b bytes.Buffer
	n.writeJSON(&b)
	var out bytes.Buffer
	if json.Indent(&out, b.Bytes(), "", "  ") != nil {
		return append(b.Bytes(), '\n') // code has made a Number that is not JSON
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// Compact writes n as JSON on one line.
func (n *Node) Compact() []byte {
	var b bytes.Buffer
	n.writeJSON(&b)
	return b.Bytes()
}

func (n *Node) writeJSON(b *bytes.Buffer) {
	quoted := func(s string) {
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		e.Encode(s)             // a string can always be encoded
		b.Truncate(b.Len() - 1) // the new line
	}
	switch n.Kind {
	case Null:
		b.WriteString("null")
	case Bool:
		b.WriteString(strings.ToLower(n.Text)) // YAML has True, too
	case Number:
		b.WriteString(n.Text)
	case Text:
		quoted(n.Text)
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			quoted(m.Key)
			b.WriteByte(':')
			m.Value.writeJSON(b)
		}
		b.WriteByte('}')
	}
}
