package config

import (
	"reflect"
	"slices"

	"github.com/lullgo/lull/sim"
	"go.yaml.in/yaml/v4"
)

// distribution reads a sim.Distribution: a duration alone, which is a fixed one, or
// a mapping, in which file stands for bars that are kept elsewhere.
func (r *reader) distribution(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		var d sim.Distribution
		allowed, suggestion := scalar(n.Value, reflect.ValueOf(&d.Mean).Elem(), plain)
		if allowed != "" {
			if slices.Contains(enumNames(reflect.TypeFor[sim.DistributionKind]()), n.Value) {
				suggestion = "{kind: " + n.Value + ", mean: 100ms}"
			}
			r.wrong(n, path, quote(n.Value), allowed+", or a mapping such as {kind: exponential, mean: 100ms}", suggestion)
			return
		}
		v.Set(reflect.ValueOf(d))
		return
	}
	entries, ok := r.entries(n, path, mappingOf(v.Type(), "file"))
	if !ok {
		return
	}
	isFile := func(e entry) bool { return e.key.Value == "file" }
	i := slices.IndexFunc(entries, isFile)
	if i < 0 {
		r.fields(entries, v, path, "file")
		return
	}
	file := entries[i].value
	r.fields(slices.DeleteFunc(entries, isFile), v, path, "file")

	d := v.Addr().Interface().(*sim.Distribution)
	switch given, hasKind := r.places[field(path, "Kind")]; {
	case hasKind && d.Kind != sim.Histogram && !slices.Contains(r.broken, field(path, "Kind")):
		r.note(given, r.shown(field(path, "Kind")), quote(d.Kind.String()), "histogram, because there is a file", "")
		return
	case d.Bars != nil:
		r.wrong(file, field(path, "file"), "beside bars", "one of the two", "")
		return
	}
	d.Kind = sim.Histogram
	d.Bars = r.histogram(file, path)
}
