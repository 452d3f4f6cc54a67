package lint

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/config/convert"
	"github.com/lullgo/lull/internal/tree"
)

// configMaps reads the policy files in the ConfigMaps among the objects of t, and reports whether
// there are any.
func (g *gathering) configMaps(t part, roots []*tree.Node) (found bool) {
	for _, root := range roots {
		for _, object := range objects(root) {
			if kind := object.Get("kind"); kind == nil || kind.Text != "ConfigMap" {
				continue
			}
			data := object.Get("data")
			if data == nil {
				continue
			}
			for _, m := range data.Members {
				if m.Value.Kind != tree.Text || !slices.Equal(convert.Recognise(convert.File{Name: m.Key, Data: []byte(m.Value.Text)}), []convert.Format{convert.Lull}) {
					continue
				}
				inner := part{file: t.file, data: []byte(m.Value.Text)}
				if !isPolicy(inner, parsed(inner)) {
					continue
				}
				found = g.policy(t.inner(m)) || found
			}
		}
	}
	return found
}

func parsed(t part) []*tree.Node {
	_, roots := kindOf(t)
	return roots
}

// objects are the objects of Kubernetes that root is or has.
func objects(root *tree.Node) (all []*tree.Node) {
	if items := root.Get("items"); items != nil {
		for _, item := range items.Items {
			all = append(all, objects(item)...)
		}
		return all
	}
	return []*tree.Node{root}
}

// inner is the text of a member as a part of its own. A text behind "|" is in the file line by line;
// of any other only the place of the whole is known.
func (t part) inner(m tree.Member) part {
	out := part{file: t.file, data: []byte(m.Value.Text)}
	line, column := t.place(m.Line, m.Column)
	out.fixed = &config.Position{File: t.file, Line: line, Column: column}
	lines := bytes.Split(t.data, []byte("\n"))
	if t.fixed != nil || m.Value.Line < 1 || m.Value.Line >= len(lines) {
		return out
	}
	head := bytes.TrimRight(lines[m.Value.Line-1], " \t\r")
	if at := bytes.LastIndexByte(head, ':'); at < 0 || !bytes.HasPrefix(bytes.TrimLeft(head[at+1:], " "), []byte("|")) {
		return out
	}
	first := lines[m.Value.Line]
	indent := len(first) - len(bytes.TrimLeft(first, " "))
	for i, text := range strings.Split(strings.TrimRight(m.Value.Text, "\n"), "\n") {
		at := m.Value.Line + i
		if at >= len(lines) {
			return out
		}
		own := strings.TrimRight(string(lines[at]), "\r")
		if len(own) < indent && strings.TrimSpace(own) == "" && text == "" {
			continue
		}
		if len(own) < indent || own[indent:] != text {
			return out
		}
	}
	out.fixed, out.line, out.column = nil, t.line+m.Value.Line, t.column+indent
	return out
}
