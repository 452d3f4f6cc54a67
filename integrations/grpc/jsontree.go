package lullgrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// node is a JSON value, with the order and the repetitions of its members. Its
// value is nil, a bool, a json.Number, a string, a []*node or a []member.
type node struct{ value any }

type member struct {
	name  string
	value *node
}

// maxDepth bounds values within values; a service config has eight or so.
const maxDepth = 64

var errDepth = errors.New("values are nested too deep")

// parseJSON reads one JSON value. The error names the place.
func parseJSON(data []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := readNode(d, 0)
	if err == nil {
		if _, more := d.Token(); more == io.EOF {
			return n, nil
		}
		err = errors.New("there is more after the end")
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("%w (%s)", err, placeOf(data, d.InputOffset(), err))
}

// placeOf is where in data an error was met.
func placeOf(data []byte, offset int64, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	before := string(data[:min(max(offset, 0), int64(len(data)))])
	line := strings.Count(before, "\n") + 1
	column := len(before) - strings.LastIndexByte(before, '\n')
	return "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column)
}

func readNode(d *json.Decoder, depth int) (*node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		if depth == maxDepth {
			return nil, errDepth
		}
		if t == json.Delim('[') {
			return readList(d, depth)
		}
		return readObject(d, depth)
	}
	return &node{t}, nil
}

func readList(d *json.Decoder, depth int) (*node, error) {
	list := []*node{}
	for d.More() {
		n, err := readNode(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	_, err := d.Token() // the bracket
	return &node{list}, err
}

func readObject(d *json.Decoder, depth int) (*node, error) {
	members := []member{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		n, err := readNode(d, depth+1)
		if err != nil {
			return nil, err
		}
		text, _ := name.(string)
		members = append(members, member{text, n})
	}
	_, err := d.Token() // the brace
	return &node{members}, err
}

// found says what a value is, for a mistake.
func (n *node) found() any {
	switch v := n.value.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	case []*node:
		return "a list"
	case []member:
		return "an object"
	default:
		return v
	}
}
