package syntax

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

func (p *parser) yaml(data []byte) (all []*tree.Node) {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(tree.MaxDepth))))
	for err == nil {
		var d yaml.Node
		if err = loader.Load(&d); errors.Is(err, io.EOF) {
			return all
		}
		switch {
		case err != nil:
		case len(all) == p.rules.Documents && len(all) == 1:
			p.r.Note(p.place(&d), "", "a second document", "one document in a file", "")
			return nil
		case len(all) == p.rules.Documents:
			p.r.Note(p.place(&d), "", "one of too many documents", fmt.Sprintf("at most %d in a file", p.rules.Documents), "")
			return nil
		case len(d.Content) == 1:
			all = append(all, p.grow(d.Content[0], 0))
		default:
			all = append(all, &tree.Node{Line: d.Line, Column: d.Column})
		}
	}
	p.syntax(data, err)
	return nil
}

func (p *parser) syntax(data []byte, err error) {
	at := p.r.Top()
	message := err.Error()
	e, located := errors.AsType[*yaml.LoadError](err)
	if located {
		message = e.Message
		if e.Mark.Line > 0 {
			at.Line, at.Column = e.Mark.Line, max(e.Mark.Column, 1)
		}
	}
	found, allowed := "", ""
	switch c := characterAt(data, at); {
	case strings.Contains(message, "cannot start any token") && c == '\t', strings.Contains(message, "tab character"):
		found, allowed = "a tab", "spaces, since YAML does not indent by tabs"
	case strings.Contains(message, "cannot start any token"):
		found, allowed = fmt.Sprintf("a value that begins with %q", c), "such a value in quotes"
	case strings.Contains(message, "mapping values are not allowed"):
		found, allowed = "a colon in the wrong place", "one field a line, evenly indented; a value with a colon in quotes"
	case strings.HasPrefix(message, "unknown anchor"):
		name := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(message, "unknown anchor "), " referenced"), "'")
		found, allowed = "*"+name, "an alias of an anchor that stands before it, &"+name
	case strings.Contains(message, "incompatible YAML document"):
		found, allowed = "a %YAML line for another version", "none, or %YAML 1.1"
	case strings.Contains(message, "exceeded max depth"):
		found, allowed = "nested too deep", fmt.Sprintf("at most %d lists and mappings in one another", tree.MaxDepth)
	default:
		if located && e.ContextMsg != "" {
			message += fmt.Sprintf(" (%s, line %d)", e.ContextMsg, max(e.ContextMark.Line, 1))
		}
		found = "not YAML: " + message
	}
	p.r.Note(at, "", found, allowed, "")
}

func characterAt(data []byte, at tree.Position) rune {
	lines := strings.Split(string(data), "\n")
	if at.Line > len(lines) {
		return 0
	}
	line := []rune(lines[at.Line-1])
	if at.Column > len(line) {
		return 0
	}
	return line[at.Column-1]
}

func (p *parser) place(n *yaml.Node) tree.Position {
	return tree.Position{File: p.r.File, Line: max(n.Line, 0), Column: max(n.Column, 0)}
}

// wrong records a fault of t, at a node within it: see [Rules].
func (p *parser) wrong(t *tree.Node, at *yaml.Node, path, found, allowed string) {
	if p.rules.Strict {
		t.Faults = append(t.Faults, tree.Mistake{Position: p.place(at), Path: path, Found: found, Allowed: allowed})
		return
	}
	p.r.Note(p.place(at), path, found, allowed, "")
}

// spend records that the text is beyond a limit, at n. Nothing more of it is read.
func (p *parser) spend(n *yaml.Node, found, allowed string) {
	p.spent = true
	p.r.Note(p.place(n), "", found, allowed, "")
}

// grow makes a tree of n. The value of an alias has the place of its anchor.
func (p *parser) grow(n *yaml.Node, depth int) *tree.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil && depth <= tree.MaxDepth {
		p.aliases++
		defer func() { p.aliases-- }()
		return p.grow(n.Alias, depth+1)
	}
	at := p.place(n)
	t := &tree.Node{Line: at.Line, Column: at.Column}
	if p.aliases > 0 {
		p.aliased++
	}
	switch {
	case p.spent:
		return t
	case depth > tree.MaxDepth:
		p.spend(n, "nested too deep", fmt.Sprintf("at most %d lists and mappings in one another", tree.MaxDepth))
		return t
	case p.aliased > p.rules.Aliased:
		p.spend(n, "one of too many aliased values", fmt.Sprintf("at most %d of them", p.rules.Aliased))
		return t
	}
	p.untagged(t, n, "")
	switch n.Kind {
	case yaml.SequenceNode:
		t.Kind = tree.List
		for _, c := range n.Content {
			t.Items = append(t.Items, p.grow(c, depth+1))
		}
	case yaml.MappingNode:
		t.Kind = tree.Map
		p.members(t, n, depth)
	default:
		p.scalar(t, n)
	}
	return t
}

// untagged reports whether n has no tag, and records a tag. Lull's own files need none: a tag can only contradict the field.
func (p *parser) untagged(t *tree.Node, n *yaml.Node, path string) bool {
	if !p.rules.Strict || n.Style&yaml.TaggedStyle == 0 && (!strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!")) {
		return true
	}
	p.wrong(t, n, path, "tagged "+tree.Quote(n.Tag), "a plain value")
	return false
}

func (p *parser) scalar(t *tree.Node, n *yaml.Node) {
	t.Kind, t.Text = tree.Text, n.Value
	switch n.ShortTag() {
	case "!!null":
		t.Kind, t.Text = tree.Null, ""
	case "!!bool":
		t.Kind = tree.Bool
	case "!!int", "!!float":
		t.Kind = tree.Number
	case "!!str", "!!timestamp":
	default:
		if !p.rules.Strict { // otherwise untagged has recorded it
			p.wrong(t, n, "", "tagged "+tree.Quote(n.Tag), "a plain value")
		}
	}
}

// members reads the members of n, which hide those of the mappings that are merged into it (<<); of these the first counts.
func (p *parser) members(t *tree.Node, n *yaml.Node, depth int) {
	lines := map[string]int{} // of the keys
	add := func(m tree.Member) {
		lines[m.Key] = m.Line
		t.Members = append(t.Members, m)
	}
	twice := func(key *yaml.Node, line int, allowed string) {
		p.wrong(t, key, key.Value, fmt.Sprintf("set twice, first in line %d", line), allowed)
	}
	var merge *yaml.Node    // the first key <<
	var merged []*yaml.Node // what is merged
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode && key.Alias != nil {
			key = key.Alias
		}
		line, known := lines[key.Value]
		switch {
		case !p.untagged(t, key, "?"):
		case key.Tag == "!!merge" && merge != nil && p.rules.Strict:
			twice(key, merge.Line, "a list of all that is merged, such as [*a, *b]")
		case key.Tag == "!!merge":
			merge, merged = key, append(merged, p.listed(value)...)
		case key.Kind != yaml.ScalarNode:
			p.wrong(t, key, "?", (&tree.Node{Kind: kinds[key.Kind]}).Found(), "a name")
		case key.ShortTag() == "!!null":
			p.wrong(t, key, "?", "empty", "a name, in quotes if it is ~ or null")
		case key.Tag == "!ignore": // Envoy's tag for members that are only there for aliases
		case known && p.rules.Strict:
			twice(key, line, "one value")
		default:
			add(tree.Member{Key: key.Value, Line: key.Line, Column: key.Column, Value: p.grow(value, depth+1)})
		}
	}
	for _, value := range merged {
		m := p.grow(value, depth+1)
		if m.Kind != tree.Map && !p.spent {
			p.wrong(t, value, "<<", m.Quoted(), "a mapping to merge, such as *name")
		}
		for _, f := range m.Faults {
			f.Path = cmp.Or(f.Path, "<<")
			t.Faults = append(t.Faults, f)
		}
		for _, each := range m.Members {
			if _, known := lines[each.Key]; !known {
				add(each)
			}
		}
	}
}

// listed returns the elements of n if it is a list, otherwise n alone.
func (p *parser) listed(n *yaml.Node) []*yaml.Node {
	list := choice.Either(n.Kind == yaml.AliasNode && n.Alias != nil, n.Alias, n)
	if list.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	if list != n {
		p.aliased += len(list.Content)
	}
	return list.Content
}

var kinds = map[yaml.Kind]tree.Kind{yaml.SequenceNode: tree.List, yaml.MappingNode: tree.Map}

// YAML writes documents, one after another, with lines of about width characters.
func YAML(width int, documents ...*tree.Node) ([]byte, error) {
	var b bytes.Buffer
	for i, d := range documents {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := yaml.Dump(nodeOf(d), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(width))
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}

func nodeOf(n *tree.Node) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	switch n.Kind {
	case tree.Map:
		y.Kind = yaml.MappingNode
		for _, m := range n.Members {
			key := text(m.Key)
			key.HeadComment = m.Value.Comment
			y.Content = append(y.Content, key, nodeOf(m.Value))
		}
	case tree.List:
		y.Kind = yaml.SequenceNode
		for _, item := range n.Items {
			value := nodeOf(item)
			value.HeadComment = item.Comment
			y.Content = append(y.Content, value)
		}
	case tree.Text:
		return text(n.Text)
	case tree.Null:
		y.Tag, y.Value = "!!null", "null"
	}
	if n.Flow {
		y.Style = yaml.FlowStyle
	}
	return y
}

// text is a string as a node, quoted where it would be something else without.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, hiddenBreak) {
		n.Style = yaml.DoubleQuotedStyle // in which they are escaped
	}
	return n
}
