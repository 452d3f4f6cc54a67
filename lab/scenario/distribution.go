package scenario

import (
	"reflect"
	"slices"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/sim"
)

// readDistribution reads a sim.Distribution. A duration alone is a fixed one. In a mapping, file names
// a file that has the bars.
func readDistribution(r *codec.Reader, n *tree.Node, v reflect.Value, path string) bool {
	if n.Scalar() {
		v.SetZero()
		allowed, suggestion := codec.Scalar(n.Text, v.FieldByName("Mean"), codec.Plain)
		if allowed != "" {
			if slices.Contains(codec.EnumNames(reflect.TypeFor[sim.DistributionKind]()), n.Text) {
				suggestion = "{kind: " + n.Text + ", mean: 100ms}"
			}
			r.WrongAt(n, path, n.Quoted(), allowed+", or a mapping such as {kind: exponential, mean: 100ms}", suggestion)
		}
		return true
	}
	members, ok := r.Members(n, path, codec.MappingOf(v.Type(), "file"))
	if !ok {
		return true
	}
	file, members := tree.Without(members, "file")
	r.Fields(members, v, path, "file")
	if file == nil {
		return true
	}
	d := v.Addr().Interface().(*sim.Distribution)
	switch given, hasKind := r.Places[codec.Field(path, "kind")]; {
	case hasKind && d.Kind != sim.Histogram && !slices.Contains(r.Broken, codec.Field(path, "kind")):
		r.Note(given, r.Shown(codec.Field(path, "kind")), tree.Quote(d.Kind.String()), "histogram, because there is a file", "")
		return true
	case d.Bars != nil:
		r.WrongAt(file.Value, codec.Field(path, "file"), "beside bars", "one of the two", "")
		return true
	}
	d.Kind = sim.Histogram
	d.Bars = readHistogram(r, file.Value, path)
	return true
}

// writeDistribution writes a distribution in its shortest form.
func writeDistribution(w *codec.Writer, v reflect.Value, path string) *tree.Node {
	d := v.Interface().(sim.Distribution)
	rest := d
	rest.Mean = 0
	if codec.Empty(reflect.ValueOf(rest)) {
		return codec.Written(pretty.Duration(d.Mean))
	}
	n := w.Mapping(v, path)
	n.Flow = n.Flow || len(d.Bars) == 0
	return n
}
