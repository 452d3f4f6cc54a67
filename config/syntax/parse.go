// Package syntax reads texts as trees of values with their places, and writes such trees as YAML.
// It is the only package here that uses the YAML library.
package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// Rules are the limits of a text, and how strictly it is read.
type Rules struct {
	// Bytes, Documents and Aliased are the most that is read. Aliases need a limit: ten of ten
	// aliases each, nine times over, are a billion values in a file of ten lines.
	Bytes, Documents, Aliased int
	// Strict is for lull's own files. It refuses tags, keys that are set twice, and characters that an editor may hide, and
	// reads JSON as YAML. What is wrong with a value is recorded in its Faults; without Strict it is an error.
	Strict bool
}

// Parse reads the values in data, one for each document; an empty one is Null. The error is [tree.Mistakes], with name for the file.
func Parse(name string, data []byte, rules Rules) ([]*tree.Node, error) {
	p := &parser{rules: rules, r: tree.Reader{File: name}}
	all := p.parse(data)
	return all, p.r.Mistakes.Err()
}

type parser struct {
	rules Rules
	r     tree.Reader

	aliases int  // on the way to the node that is being read
	aliased int  // nodes that were read by way of aliases
	spent   bool // the text is beyond the limits
}

func (p *parser) parse(data []byte) []*tree.Node {
	if len(data) > p.rules.Bytes {
		most := fmt.Sprintf("%d MiB", p.rules.Bytes>>20)
		p.r.Note(p.r.Top(), "", "a file of more than "+most, "at most "+most, "")
		return nil
	}
	if !p.isText(data) {
		return nil
	}
	if p.rules.Strict {
		return p.yaml(data)
	}
	if data = unwrapped(data); !isJSON(data) {
		return p.yaml(data)
	}
	all, err := tree.ParseJSON(data)
	if m, ok := errors.AsType[tree.Mistake](err); ok {
		m.File = p.r.File
		p.r.Mistakes = append(p.r.Mistakes, m)
	}
	return all
}

// hiddenBreak reports whether YAML ends a line at c, and a comment with it, where many editors show no end of a line.
func hiddenBreak(c rune) bool { return c == '\u0085' || c == '\u2028' || c == '\u2029' }

// isText reports whether data is text, of lull's own files with the same lines for every reader, and records what is wrong.
func (p *parser) isText(data []byte) bool {
	at := p.r.Top()
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		allowed := ""
		switch {
		case c == utf8.RuneError && size == 1:
			p.r.Note(at, "", fmt.Sprintf("the byte 0x%02x", data[0]), "text in UTF-8", "")
			return false
		case !p.rules.Strict:
		case c == '\r' && !bytes.HasPrefix(data, []byte("\r\n")), hiddenBreak(c):
			allowed = `lines that end in \n or \r\n`
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c >= '\x7f' && c < '\u00a0', c == '\ufffe', c == '\uffff': // as YAML defines it
			allowed = "text without control characters"
		}
		if allowed != "" {
			p.r.Note(at, "", fmt.Sprintf("the character %U", c), allowed, "")
			return false
		}
		if c != '\ufeff' { // the byte order mark, which has no width
			at.Column++
		}
		if c == '\n' {
			at.Line, at.Column = at.Line+1, 1
		}
		data = data[size:]
	}
	return true
}

// isJSON reports whether data begins with a mapping or a list, and then with a quote or nothing: in YAML keys have mostly no quotes.
func isJSON(data []byte) bool {
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return false
	}
	first := bytes.TrimLeft(start, " \t\r\n[{")
	return len(first) == 0 || strings.IndexByte(`"}],:`, first[0]) >= 0
}

// unwrapped is data without a byte order mark, and with blanks for the attribute in which gRPC looks for service configs in DNS.
func unwrapped(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	const attribute = "grpc_config="
	at := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
	if !bytes.HasPrefix(data[at:], []byte(attribute)) {
		return data
	}
	return slices.Concat(data[:at], bytes.Repeat([]byte(" "), len(attribute)), data[at+len(attribute):])
}

// own are the limits of lull's own files, which have some hundred lines if written by hand.
var own = Rules{Bytes: codec.MaxBytes, Documents: 1, Aliased: 10_000, Strict: true}

// ParseOwn reads one of lull's own files.
func ParseOwn(name string, data []byte) ([]*tree.Node, error) { return Parse(name, data, own) }
