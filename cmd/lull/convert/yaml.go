package convert

import (
	"slices"

	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/tree"
)

// rules accept what the readers of other systems accept. The output of a control plane can be
// large.
var rules = syntax.Rules{Bytes: 16 << 20, Documents: 10_000, Aliased: 100_000}

// Parse reads the values in a file, JSON or YAML: one for each document that is not empty.
func Parse(f File) ([]*tree.Node, error) { return parse(f.Name, f.Data) }

func parse(name string, data []byte) ([]*tree.Node, error) {
	all, err := syntax.Parse(name, data, rules)
	return slices.DeleteFunc(all, func(n *tree.Node) bool { return n.Kind == tree.Null }), err
}

func yamlOf(documents []*tree.Node) ([]byte, error) {
	for _, d := range documents {
		lineUp(d)
	}
	return syntax.YAML(120, documents...)
}

// lineUp decides which parts of n are written on one line: a mapping with one single value, and a
// list of single values.
func lineUp(n *tree.Node) {
	single := func(n *tree.Node) bool { return n.Kind < tree.List }
	switch n.Kind {
	case tree.List:
		n.Flow = !slices.ContainsFunc(n.Items, func(item *tree.Node) bool { return !single(item) })
	case tree.Map:
		n.Flow = len(n.Members) == 0 || len(n.Members) == 1 && single(n.Members[0].Value) && n.Members[0].Key != "host"
	}
	for _, v := range n.Values() {
		lineUp(v)
	}
}
