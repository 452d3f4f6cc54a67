package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/tree"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// What is read at most. What a control plane hands out can be large; these are for files
// that were never meant to be read.
const (
	maxBytes     = 16 << 20
	maxDocuments = 10_000
	// maxAliased is how many nodes are read by way of aliases. Ten aliases of ten
	// aliases each, nine times over, are a billion nodes in a file of ten lines.
	maxAliased = 100_000
)

// parse reads the values in data, JSON or YAML: one for each document that is not empty.
// The error is tree.Problems.
func parse(data []byte) ([]*tree.Node, error) {
	if len(data) > maxBytes {
		return nil, tree.Problems{{Line: 1, Column: 1, Found: "a file of more than 16 MiB", Allowed: "at most 16 MiB"}}
	}
	if p := notText(data); p != nil {
		return nil, p
	}
	data = unwrapped(data)
	if !isJSON(data) {
		return parseYAML(data)
	}
	all, err := tree.ParseJSON(data)
	var syntax *tree.SyntaxError
	if errors.As(err, &syntax) {
		return nil, tree.Problems{{Line: syntax.Line, Column: syntax.Column, Found: "not JSON: " + syntax.Message}}
	}
	return all, nil
}

// isJSON: data begins as JSON does: with a mapping or a list of which the first thing is
// in quotes, or nothing. YAML has braces and brackets, too, but then mostly keys without quotes.
func isJSON(data []byte) bool {
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return false
	}
	first := bytes.TrimLeft(start, " \t\r\n[{")
	return len(first) == 0 || strings.IndexByte(`"}],:`, first[0]) >= 0
}

// unwrapped is data without what may stand before a text: a byte order mark, and the name of the
// attribute in which gRPC looks for service configs in DNS. Blanks keep its place.
func unwrapped(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	const attribute = "grpc_config="
	at := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
	if !bytes.HasPrefix(data[at:], []byte(attribute)) {
		return data
	}
	return slices.Concat(data[:at], bytes.Repeat([]byte(" "), len(attribute)), data[at+len(attribute):])
}

// notText is what keeps data from being read as text at all.
func notText(data []byte) tree.Problems {
	line, column := 1, 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 {
			return tree.Problems{{Line: line, Column: column, Found: fmt.Sprintf("the byte 0x%02x", data[0]), Allowed: "text in UTF-8"}}
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
		data = data[size:]
	}
	return nil
}

func parseYAML(data []byte) ([]*tree.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(tree.MaxDepth))))
	if err != nil {
		return nil, notYAML(err)
	}
	var all []*tree.Node
	for {
		var document yaml.Node
		err := loader.Load(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, notYAML(err)
		}
		if len(document.Content) != 1 {
			continue
		}
		g := &grower{}
		n := g.grow(document.Content[0], 0)
		if len(g.problems) > 0 {
			return nil, g.problems
		}
		if n.Kind != tree.Null { // an empty document says nothing
			all = append(all, n)
		}
		if len(all) > maxDocuments {
			return nil, tree.Problems{{Line: n.Line, Column: n.Column, Found: "one of too many documents", Allowed: fmt.Sprintf("at most %d in a file", maxDocuments)}}
		}
	}
}

func notYAML(err error) tree.Problems {
	p := tree.Problem{Line: 1, Column: 1, Found: "not YAML: " + err.Error()}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.Found = "not YAML: " + e.Message
		if e.Mark.Line > 0 {
			p.Line, p.Column = e.Mark.Line, max(e.Mark.Column, 1)
		}
		switch {
		case strings.Contains(e.Message, "cannot start any token"), strings.Contains(e.Message, "tab character"):
			p.Allowed = "no tabs before values, and text with special characters in quotes"
		case strings.Contains(e.Message, "mapping values are not allowed"):
			p.Allowed = "one field a line, evenly indented; a value with a colon in quotes"
		}
	}
	return tree.Problems{p}
}

// A grower makes a tree of YAML nodes.
type grower struct {
	problems tree.Problems
	aliases  int // that lead to the node that is being read
	aliased  int // nodes read that way
}

func (g *grower) wrong(n *yaml.Node, found, allowed string) *tree.Node {
	if len(g.problems) < 100 {
		g.problems = append(g.problems, tree.Problem{Line: n.Line, Column: n.Column, Found: found, Allowed: allowed})
	}
	return &tree.Node{Line: n.Line, Column: n.Column}
}

func (g *grower) grow(n *yaml.Node, depth int) *tree.Node {
	if depth > tree.MaxDepth {
		return g.wrong(n, "nested too deep", fmt.Sprintf("at most %d lists and mappings in one another", tree.MaxDepth))
	}
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		g.aliases++
		defer func() { g.aliases-- }()
		grown := *g.grow(n.Alias, depth+1)
		grown.Line, grown.Column = n.Line, n.Column
		return &grown
	}
	if g.aliases > 0 {
		if g.aliased++; g.aliased > maxAliased {
			if g.aliased == maxAliased+1 {
				return g.wrong(n, "one of too many aliased values", fmt.Sprintf("at most %d of them", maxAliased))
			}
			return &tree.Node{}
		}
	}
	t := &tree.Node{Line: n.Line, Column: n.Column}
	switch n.Kind {
	case yaml.SequenceNode:
		t.Kind = tree.List
		for _, c := range n.Content {
			t.Items = append(t.Items, g.grow(c, depth+1))
		}
	case yaml.MappingNode:
		t.Kind = tree.Map
		g.members(t, n, depth)
	default:
		g.scalar(t, n)
	}
	return t
}

func (g *grower) scalar(t *tree.Node, n *yaml.Node) {
	t.Text = n.Value
	switch n.ShortTag() {
	case "!!null":
		t.Kind, t.Text = tree.Null, ""
	case "!!bool":
		t.Kind, t.Text = tree.Bool, strings.ToLower(n.Value)
	case "!!int", "!!float":
		t.Kind = tree.Number
	case "!!str", "!!timestamp":
		t.Kind = tree.Text
	default:
		g.wrong(n, "tagged "+tree.Quote(n.Tag), "a plain value")
	}
}

// members are those of the mapping n, and those of the mappings that are merged into it
// (<<), which its own hide.
func (g *grower) members(t *tree.Node, n *yaml.Node, depth int) {
	own := map[string]bool{}
	var merged []*tree.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, g.grow(value, depth+1))
			continue
		}
		if key.Kind == yaml.AliasNode && key.Alias != nil {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
			g.wrong(key, "a key that is no text", "a name, in quotes if it is ~ or null")
			continue
		}
		if key.Tag == "!ignore" { // with which Envoy has what there is only to be referred to
			continue
		}
		own[key.Value] = true
		t.Members = append(t.Members, tree.Member{Key: key.Value, Line: key.Line, Column: key.Column, Value: g.grow(value, depth+1)})
	}
	for len(merged) > 0 {
		m := merged[0]
		merged = merged[1:]
		switch {
		case m.Kind == tree.List:
			merged = append(append([]*tree.Node{}, m.Items...), merged...)
		case m.Kind != tree.Map:
			g.wrong(&yaml.Node{Line: m.Line, Column: m.Column}, m.Found(), "a mapping to merge, such as *name")
		}
		for _, each := range m.Members {
			if !own[each.Key] {
				own[each.Key] = true
				t.Members = append(t.Members, each)
			}
		}
	}
}

// yamlOf writes documents, one after another.
func yamlOf(documents []*tree.Node) ([]byte, error) {
	var b bytes.Buffer
	for i, d := range documents {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := yaml.Dump(yamlNode(d), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(120))
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}

func yamlNode(n *tree.Node) *yaml.Node {
	switch n.Kind {
	case tree.Map:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range n.Members {
			y.Content = append(y.Content, text(m.Key), yamlNode(m.Value))
		}
		if len(n.Members) == 0 || short(n) {
			y.Style = yaml.FlowStyle
		}
		return y
	case tree.List:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		scalars := true
		for _, item := range n.Items {
			y.Content = append(y.Content, yamlNode(item))
			scalars = scalars && item.Kind < tree.List
		}
		if scalars {
			y.Style = yaml.FlowStyle
		}
		return y
	case tree.Text:
		return text(n.Text)
	case tree.Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
}

// text is a string as a node, quoted where it would be something else without.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// short: the mapping n is better read on one line: it has one scalar.
func short(n *tree.Node) bool {
	return len(n.Members) == 1 && n.Members[0].Value.Kind < tree.List && n.Members[0].Key != "host"
}
