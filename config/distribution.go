package config

import (
	"reflect"
	"slices"

	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/sim"
)

// distribution reads a sim.Distribution. A duration alone is a fixed one. In a mapping, file names
// a file that has the bars.
func (r *reader) distribution(n *tree.Node, v reflect.Value, path string) {
	if n.Scalar() {
		var d sim.Distribution
		allowed, suggestion := scalar(n.Text, reflect.ValueOf(&d.Mean).Elem(), plain)
		if allowed != "" {
			if slices.Contains(enumNames(reflect.TypeFor[sim.DistributionKind]()), n.Text) {
				suggestion = "{kind: " + n.Text + ", mean: 100ms}"
			}
			r.wrong(n, path, n.Quoted(), allowed+", or a mapping such as {kind: exponential, mean: 100ms}", suggestion)
			return
		}
		v.Set(reflect.ValueOf(d))
		return
	}
	members, ok := r.members(n, path, mappingOf(v.Type(), "file"))
	if !ok {
		return
	}
	file, members := without(members, "file")
	r.fields(members, v, path, "file")
	if file == nil {
		return
	}
	d := v.Addr().Interface().(*sim.Distribution)
	switch given, hasKind := r.places[field(path, "kind")]; {
	case hasKind && d.Kind != sim.Histogram && !slices.Contains(r.broken, field(path, "kind")):
		r.Note(given, r.shown(field(path, "kind")), tree.Quote(d.Kind.String()), "histogram, because there is a file", "")
		return
	case d.Bars != nil:
		r.wrong(file.Value, field(path, "file"), "beside bars", "one of the two", "")
		return
	}
	d.Kind = sim.Histogram
	d.Bars = r.histogram(file.Value, path)
}
