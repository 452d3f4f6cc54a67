package config

import (
	"fmt"
	"reflect"

	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

func init() {
	codec.Register(codec.Kinds{
		Keyed: []reflect.Type{reflect.TypeFor[Dependency](), reflect.TypeFor[Operation](), reflect.TypeFor[Service]()},
		Custom: map[reflect.Type]codec.Custom{
			reflect.TypeFor[Edge]():  {Read: readEdge, Write: writeEdge},
			reflect.TypeFor[YesNo](): {Words: answerNames[1:]},
		},
	})
}

func readEdge(_ *codec.Reader, n *tree.Node, v reflect.Value, _ string) bool {
	if n.Scalar() {
		v.FieldByName("Dependency").SetString(n.Text)
	}
	return n.Scalar()
}

func writeEdge(w *codec.Writer, v reflect.Value, path string) *tree.Node {
	e := v.Interface().(Edge)
	if e != (Edge{Dependency: e.Dependency}) {
		return nil
	}
	return w.Node(v.FieldByName("Dependency"), path, codec.Plain)
}

func newReader(file string) *codec.Reader { return codec.NewReader(syntax.ParseOwn, file, nil) }

// written returns the text of n, which w has made.
func written(w *codec.Writer, n *tree.Node) ([]byte, error) {
	if w.Err != nil {
		return nil, fmt.Errorf("config: %w", w.Err)
	}
	return syntax.YAML(80, n)
}
