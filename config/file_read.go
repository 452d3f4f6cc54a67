package config

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
)

// version is the only version of the format; versionText is how it is written.
const (
	version     = 1
	versionText = "1"
)

var fileKeys = []string{"version", "defaults", "dependencies", "services"}

// ReadPolicyFile reads the policy file at path. The error is [Mistakes], with everything that is
// wrong in the file, or an error of reading it.
func ReadPolicyFile(path string) (*PolicyFile, error) {
	data, err := codec.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicyFile(path, data)
}

// ParsePolicyFile reads a policy file; the comment of this package has its format. A file may also
// be the fields of a single policy: the dependency is then called by the stem of name. The defaults
// and all policies are valid. The error is [Mistakes], in which name stands for the file.
//
// A program may have sections of its own beside those of policies. Each of sections is a pointer to a struct, and its fields
// are sections: structs, maps of names to structs, or single values. They are read as policies are. If *T has a method
// Validate(*PolicyFile) error, that is called when everything else has been read. A problem of a field such as
// Upstreams["payments"].Listen is reported with the line of upstreams.payments.listen.
func ParsePolicyFile(name string, data []byte, sections ...any) (*PolicyFile, error) {
	r := newFileReader(name)
	for _, s := range sections {
		r.sections = append(r.sections, reflect.ValueOf(s).Elem())
	}
	if root := r.Document(data); root != nil {
		r.root(root)
	}
	if err := r.Mistakes.Err(); err != nil {
		return nil, err
	}
	return &r.file, nil
}

type fileReader struct {
	*codec.Reader
	file     PolicyFile
	sections []reflect.Value // structs

	// These are set when the defaults have been read.
	setByDefaults  map[string]Position // the leaves that they set themselves, by path
	defaultsBroken []string
	defaultsWrong  problem.List // reported once, and not with each dependency again

	// operationsOf are names by dependency; nil: it names none. Without dependencies the map is nil, and any name may be one.
	operationsOf map[string]map[string]bool
}

func newFileReader(name string) *fileReader {
	places := &filePlaces{file: name, at: map[string]Position{}, bases: map[string]origins{}}
	return &fileReader{Reader: newReader(name), file: PolicyFile{places: places}}
}

func (r *fileReader) root(n *tree.Node) {
	known := slices.Clone(fileKeys)
	for _, s := range r.sections {
		for _, m := range codec.Members(s.Type()) {
			known = append(known, m.Key)
		}
	}
	inFile := func(m tree.Member) bool { return slices.Contains(known, m.Key) }
	if !slices.ContainsFunc(n.Members, inFile) {
		name := codec.Stem(r.File)
		if n.Kind == tree.Map && !properName(name) {
			r.Note(r.Place(n), "", "one dependency without a name, since that of the file gives it none", "it under dependencies, such as dependencies: {api: {attempts: 2}}", "")
			return
		}
		r.file.places.at[codec.Under("dependencies", name)] = r.Place(n)
		r.dependency(name, n, known...)
		return
	}
	if !r.Sound(n, "") {
		return
	}
	parts := map[string]tree.Member{}
	for _, e := range n.Members {
		if !slices.Contains(known, e.Key) {
			suggestion := choice.Nearest(e.Key, known)
			if _, ok, _ := codec.Find(reflect.TypeFor[Defaults](), e.Key); ok {
				suggestion = "defaults." + e.Key
			}
			r.Unknown(e, "", known, suggestion)
			continue
		}
		parts[e.Key] = e
		r.file.places.at[e.Key] = r.KeyPlace(e)
	}
	read := map[string]func(tree.Member){"version": r.version, "defaults": r.defaults, "dependencies": r.dependencies, "services": r.services}
	for _, key := range fileKeys {
		if e, ok := parts[key]; ok {
			read[key](e)
		}
	}
	r.further(parts)
}

// further reads the sections that are not those of policies.
func (r *fileReader) further(parts map[string]tree.Member) {
	r.Begin("")
	for _, s := range r.sections {
		for _, m := range codec.Members(s.Type()) {
			e, ok := parts[m.Key]
			if !ok {
				continue
			}
			if e.Value.Kind >= tree.List {
				r.Keys[m.Key] = r.KeyPlace(e)
			}
			if v := s.FieldByIndex(m.Index); v.Kind() == reflect.Map {
				r.named(e, v, m.Key)
			} else {
				r.Decode(e.Value, v, m.Key, m.Form)
			}
		}
	}
	r.keep("")
	for _, d := range r.file.Dependencies {
		r.Names = append(r.Names, d.Name)
	}
	for _, s := range r.sections {
		if v, ok := s.Addr().Interface().(interface{ Validate(*PolicyFile) error }); ok {
			r.Validated(v.Validate(&r.file))
		}
	}
}

// named reads a mapping of names to things.
func (r *fileReader) named(e tree.Member, v reflect.Value, key string) {
	if !r.Sound(e.Value, key) {
		return
	}
	r.Places[key] = r.Place(e.Value)
	v.Set(reflect.MakeMap(v.Type()))
	for _, item := range r.members(key, e.Value, key, "a mapping of names to "+key) {
		if r.Full() {
			return
		}
		path, thing := codec.Field(key, item.Key), reflect.New(v.Type().Elem()).Elem()
		r.Keys[path] = r.KeyPlace(item)
		r.Decode(item.Value, thing, path, codec.Plain)
		v.SetMapIndex(reflect.ValueOf(item.Key), thing)
	}
}

func (r *fileReader) version(e tree.Member) {
	r.Begin("")
	n := e.Value
	if !r.Sound(n, "version") {
		return
	}
	if n.Text != versionText {
		r.WrongAt(n, "version", n.Quoted(), versionText+", the only version of the format there is", "")
		return
	}
	r.file.Version = version
	r.Places["version"] = r.Place(n)
	r.keep("")
}

// keep records the places of the values that were read since begin, below prefix.
func (r *fileReader) keep(prefix string) {
	for path, at := range r.Places {
		if key, ok := r.Keys[path]; ok {
			at = key
		}
		if path != "" {
			r.file.places.at[codec.Under(prefix, path)] = at
		}
	}
}

// items returns the members under the key of e, which are things by name. example is one of them.
func (r *fileReader) items(key string, e tree.Member, thing, example string) []tree.Member {
	r.Begin(key)
	value := e.Value
	if !r.Sound(value, "") {
		return nil
	}
	named := r.members(key, value, "", "a mapping of names to "+key+", such as "+example)
	if len(named) == 0 && len(r.Mistakes) == 0 {
		r.WrongAt(value, "", "empty", "at least one "+thing+", such as "+example, "")
	}
	return named
}

// members returns the members of n, which is at path, if it has not too many: those with proper names.
func (r *fileReader) members(key string, n *tree.Node, path, allowed string) []tree.Member {
	named, _ := r.Members(n, path, allowed)
	if len(named) > codec.MaxElements {
		r.WrongAt(n, path, fmt.Sprintf("a mapping of %d", len(named)), fmt.Sprintf("at most %d", codec.MaxElements), "")
		return nil
	}
	return slices.DeleteFunc(slices.Clone(named), func(m tree.Member) bool {
		ok := properName(m.Key)
		if !ok {
			r.Note(r.KeyPlace(m), key, tree.Quote(m.Key), allowedName, "")
		}
		return !ok
	})
}

func (r *fileReader) defaults(e tree.Member) {
	r.Begin("defaults")
	r.file.places.at["defaults"] = r.KeyPlace(e)
	v := reflect.ValueOf(&r.file.Defaults).Elem()
	members, t, named := r.splitPreset(e.Value, &r.file.Defaults.Preset, codec.MappingOf(v.Type()))
	r.file.Defaults.Policy = t.policy
	r.Fields(members, v, "")
	r.keep("defaults")
	r.file.places.bases[""] = origins{base{policy: t.policy}, r.Places["preset"], named}

	r.setByDefaults = map[string]Position{}
	for _, l := range policyLeaves() {
		if at, ok := r.Places[l.path]; ok {
			r.setByDefaults[l.path] = at
		}
	}
	r.defaultsBroken = r.Broken
	if named {
		r.inherit(t.policy, r.Places["preset"], "from the preset "+r.file.Defaults.Preset)
	}
	err := r.file.Defaults.Policy.Validate()
	r.defaultsWrong = problemsOf(err)
	r.Validated(err)
}

// splitPreset reads the preset of n and returns its other members. n has the fields of a policy.
func (r *fileReader) splitPreset(n *tree.Node, name *string, allowed string) (members []tree.Member, t template, named bool) {
	if !r.Sound(n, "") {
		return nil, template{}, false
	}
	r.Places[""] = r.Place(n)
	members, ok := r.Members(n, "", allowed)
	if !ok {
		return nil, template{}, false
	}
	preset, members := tree.Without(members, "preset")
	if preset != nil {
		*name, t = readPreset(r.Reader, preset.Value, "preset")
	}
	return members, t, *name != ""
}

// inherit records a place and a source for the leaves of p that are set nowhere else.
func (r *fileReader) inherit(p lull.Policy, at Position, source string) {
	for _, l := range policyLeaves() {
		if !codec.Has(r.Places, l.path) && !l.of(&p).IsZero() {
			r.borrow(l, at, source)
		}
	}
}

func (r *fileReader) borrow(l leaf, at Position, source string) {
	if r.Sources == nil {
		r.Sources = map[string]string{}
	}
	r.Places[l.path], r.Sources[l.path] = at, source
}

func (r *fileReader) dependencies(e tree.Member) {
	items := r.items("dependencies", e, "dependency", "api: {attempts: 2}")
	if len(items) > 0 {
		r.operationsOf = make(map[string]map[string]bool, len(items))
	}
	for _, item := range items {
		if r.Full() {
			return
		}
		path := codec.Under("dependencies", item.Key)
		r.Begin(path)
		r.file.places.at[path] = r.KeyPlace(item)
		r.dependency(item.Key, item.Value)
	}
}

// dependency reads the dependency that n holds. extra are further keys that may stand beside its fields.
func (r *fileReader) dependency(name string, n *tree.Node, extra ...string) {
	d := Dependency{Name: name}
	v := reflect.ValueOf(&d).Elem()
	path, shown := codec.Under("dependencies", name), r.Prefix
	members, _, named := r.splitPreset(n, &d.Preset, codec.MappingOf(v.Type(), extra...))
	b := baseOf(r.file.Defaults.Policy, func(path string) bool { return codec.Has(r.setByDefaults, path) }, presetOf(d.Preset))
	d.Policy = b.policy

	operations, members := tree.Without(members, "operations")
	if operations != nil {
		r.file.places.at[codec.Under(path, "operations")] = r.KeyPlace(*operations)
	}
	r.Fields(members, v, "", extra...)
	r.keep(path)
	from := origins{b, r.Places["preset"], named}
	if !named {
		at := r.file.places.bases[""]
		from.preset, from.named = at.preset, at.named
	}
	r.file.places.bases[name] = from
	r.valid(d, from)

	if operations != nil {
		r.operations(&d, path, codec.Under(shown, "operations"), *operations)
	}
	if r.operationsOf != nil {
		r.operationsOf[name] = d.operationNames()
	}
	r.file.Dependencies = append(r.file.Dependencies, d)
}

func (d *Dependency) operationNames() map[string]bool {
	if d.Operations == nil {
		return nil
	}
	names := make(map[string]bool, len(d.Operations))
	for i := range d.Operations {
		names[d.Operations[i].Name] = true
	}
	return names
}

// valid records the problems of d where its values come from, and those of the defaults only once.
func (r *fileReader) valid(d Dependency, from origins) {
	written := maps.Clone(r.Places)
	for _, l := range policyLeaves() {
		if at, ok := r.setByDefaults[l.path]; ok && from.base.fromDefaults(l) && !codec.Has(written, l.path) {
			r.borrow(l, at, "from defaults")
		}
	}
	switch {
	case d.Preset != "":
		r.inherit(d.Policy, from.preset, "from the preset "+d.Preset)
	case from.named:
		r.inherit(d.Policy, from.preset, "from the defaults' preset "+r.file.Defaults.Preset)
	}
	for _, path := range r.defaultsBroken {
		if !codec.Has(written, path) && !from.base.whole && (path != "preset" || !from.base.preset) {
			r.Broken = append(r.Broken, path)
		}
	}
	known := func(p problem.Problem) bool {
		return !codec.Has(written, codec.Path(p.Field)) && slices.ContainsFunc(r.defaultsWrong, func(w problem.Problem) bool { return w.Error() == p.Error() })
	}
	r.Validated(slices.DeleteFunc(problemsOf(d.Validate()), known).Err())
}

func (r *fileReader) operations(d *Dependency, path, shown string, e tree.Member) {
	for _, item := range r.items(shown, e, "operation", "charge: {idempotent: false}") {
		if r.Full() {
			return
		}
		o := Operation{Name: item.Key}
		r.Begin(codec.Under(shown, o.Name))
		r.file.places.at[codec.Under(path, "operations", o.Name)] = r.KeyPlace(item)
		r.Decode(item.Value, reflect.ValueOf(&o).Elem(), "", codec.Plain)
		r.keep(codec.Under(path, "operations", o.Name))
		r.Validated(o.Validate())
		d.Operations = append(d.Operations, o)
	}
}

func (r *fileReader) services(e tree.Member) {
	provider := map[string]string{} // by dependency
	for _, item := range r.items("services", e, "service", "shop: {slo: 2s, calls: [payments]}") {
		if r.Full() {
			return
		}
		s := Service{Name: item.Key}
		path := codec.Under("services", s.Name)
		r.Begin(path)
		r.file.places.at[path] = r.KeyPlace(item)
		r.Decode(item.Value, reflect.ValueOf(&s).Elem(), "", codec.Plain)
		r.keep(path)
		r.Validated(s.Validate())
		r.links(s, provider)
		r.file.Services = append(r.file.Services, s)
	}
}

// links records calls that lead nowhere. Without dependencies a file may be the call graph of other files.
func (r *fileReader) links(s Service, provider map[string]string) {
	for i, name := range s.Provides {
		at := codec.Element("provides", i)
		if other, ok := provider[name]; ok {
			r.Note(r.PlaceOf(at), r.Shown(at), tree.Quote(name)+", which "+other+" provides", "a dependency that no other service provides", "")
			continue
		}
		provider[name] = s.Name // the callers of s may have the dependency in a file of theirs
	}
	for i, e := range s.Calls {
		at := codec.Element("calls", i)
		operations, known := r.operationsOf[e.Dependency]
		switch {
		case r.Full():
			return
		case r.operationsOf == nil || e.Dependency == "":
		case !known:
			r.noteUnknown(e.Dependency, codec.Field(at, "dependency"), "a dependency", maps.Keys(r.operationsOf))
		case e.Operation != "" && operations != nil && !operations[e.Operation]:
			r.noteUnknown(e.Operation, codec.Field(at, "operation"), "an operation of "+e.Dependency, maps.Keys(operations))
		}
	}
}

func (r *fileReader) noteUnknown(name, path, thing string, names iter.Seq[string]) {
	all := slices.Sorted(names)
	r.Note(r.PlaceOf(path), r.Shown(path), tree.Quote(name), thing+": "+tree.ClipTo(codec.MaxAllowed, choice.List(all)), choice.Nearest(name, all))
}
