package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of values. A whole Envoy configuration has some thirty levels.
const MaxDepth = 100

// ParseJSON reads the JSON values in data, at least one. The error is a [Mistake] without a path.
func ParseJSON(data []byte) ([]*Node, error) {
	r := &jsonReader{data: data, line: 1, column: 1, d: json.NewDecoder(bytes.NewReader(data))}
	r.d.UseNumber()
	var all []*Node
	for {
		r.began = int(r.d.InputOffset())
		n, err := r.value(0)
		if err == io.EOF && len(all) > 0 {
			return all, nil
		}
		if err != nil {
			return nil, r.located(err)
		}
		all = append(all, n)
	}
}

// A jsonReader reads the tokens of a decoder, with their places.
type jsonReader struct {
	data         []byte
	d            *json.Decoder
	began        int // the offset of the value at the top that is being read
	at           int // the offset of which line and column are
	line, column int
}

// token returns the next token and its place. The decoder has the end of a token; its start is
// after the separators that may stand before it.
func (r *jsonReader) token() (t json.Token, line, column int, err error) {
	begin := int(r.d.InputOffset())
	for begin < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[begin]) >= 0 {
		begin++
	}
	t, err = r.d.Token()
	line, column = r.place(begin)
	return t, line, column, err
}

// place returns the line and column of an offset. Offsets must not decrease.
func (r *jsonReader) place(offset int) (line, column int) {
	for r.at < offset && r.at < len(r.data) {
		c, size := utf8.DecodeRune(r.data[r.at:])
		r.at += size
		r.column++
		if c == '\n' {
			r.line, r.column = r.line+1, 1
		}
	}
	return r.line, r.column
}

func (r *jsonReader) located(err error) error {
	if known, ok := errors.AsType[Mistake](err); ok {
		return known
	}
	// The offsets in a decoder's errors ignore what is between the tokens. Those of
	// Unmarshal are right.
	offset := int(r.d.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(r.data[r.began:], new(any)), &syntax) {
		offset = r.began + int(syntax.Offset) - 1 // it includes the wrong character
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		err, offset = io.ErrUnexpectedEOF, len(r.data)
	}
	r.at, r.line, r.column = 0, 1, 1 // it may be before the last token
	line, column := r.place(offset)
	return notJSON(line, column, err.Error())
}

func notJSON(line, column int, why string) Mistake {
	return Mistake{Position: Position{Line: line, Column: column}, Found: "not JSON: " + why}
}

func (r *jsonReader) value(depth int) (*Node, error) {
	t, line, column, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &Node{Line: line, Column: column}
	switch v := t.(type) {
	case nil:
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(v)
	case json.Number:
		n.Kind, n.Text = Number, string(v)
	case string:
		n.Kind, n.Text = Text, v
	case json.Delim:
		if depth == MaxDepth {
			return nil, notJSON(line, column, fmt.Sprintf("values are nested deeper than %d", MaxDepth))
		}
		n.Kind = List
		if v == '{' {
			n.Kind = Map
		}
		for r.d.More() {
			if err := r.element(n, depth); err != nil {
				return nil, err
			}
		}
		_, _, _, err = r.token() // the bracket or brace
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// element reads an element of the list or mapping n.
func (r *jsonReader) element(n *Node, depth int) error {
	var m Member
	if n.Kind == Map {
		key, line, column, err := r.token()
		if err != nil {
			return unexpected(err)
		}
		m.Key, _ = key.(string)
		m.Line, m.Column = line, column
	}
	value, err := r.value(depth + 1)
	if err != nil {
		return unexpected(err)
	}
	if m.Value = value; n.Kind == Map {
		n.Members = append(n.Members, m)
	} else {
		n.Items = append(n.Items, value)
	}
	return nil
}

// unexpected makes the end of the text an error, within a value.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
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
