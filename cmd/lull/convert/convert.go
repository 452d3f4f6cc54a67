// Package convert converts retry settings of other systems into lull's policy files, and back ([Formats]). No two of
// these systems have the same settings, so a [Report] has each setting that is lost or changed, with its place, its
// value and the reason. The readers mark each part of a file that they read; what has no mark is lost, unless it is
// known that it is not about calls.
//
// A setting that both systems can express is the same after a conversion to the other system and back. The result is
// valid by the rules of its system, and the same for the same input. A file of a hundred routes takes some ten
// milliseconds. The package keeps no state; all functions may be called concurrently, with values that are not shared.
// docs/convert.md has the rules, and tables of the settings.
package convert

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	proxyfile "github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/rivals"
)

type code = serviceconfig.Code

// A File is a text to convert.
type File struct {
	Name string // for messages, and for dependencies that have no name of their own
	Data []byte
}

// Options are how to convert. With the zero Options the format of each document is recognised.
type Options struct {
	// From is the format of all files. Nil: each document is looked at.
	From *Format
	// Base decides what the files leave open. Empty: the other system does, as far as a policy can describe that. "lull": the recommended
	// policy. Otherwise a preset (see config.Presets).
	Base string
	// Only is the name of the one dependency to write. Empty: all are written.
	Only string
	// GAPIC reads gRPC service configs as the generators of Google's API clients do: a retryPolicy
	// may have no maxAttempts, and is then in force until the timeout.
	GAPIC bool
	// Found are the names of files that were found in a directory. Those that are not for lull, or cannot be read, are left out.
	Found map[string]bool
	// Foreign leaves out the policy files of lull within ConfigMaps: the caller reads them (see [InConfigMaps]).
	Foreign bool
	// JSON writes JSON if the format can be JSON or YAML.
	JSON bool
}

// An Output is the result of a conversion.
type Output struct {
	Data   []byte
	Report Report
}

// Convert reads all files together and writes their policies in the format to. The result is valid
// for the system that the format belongs to, and the same for the same input. Files may have
// different formats, and a YAML file may hold several documents.
//
// The report has everything that could not be carried over, or not unchanged. The error is
// [config.Mistakes] if something is wrong in a file, [ErrNothing] if there is nothing to convert,
// and a [engine.Problems] if something is wrong with the options.
func Convert(files []File, to Format, o Options) (Output, error) {
	names := choice.Each(files, func(f File) string { return f.Name })
	set, report, err := Read(files, o)
	var data []byte
	var more written
	if err == nil {
		if data, more, err = write(set, to, o); err != nil {
			return Output{}, err
		}
		report = slices.DeleteFunc(report, func(e Entry) bool { return e.about != "" && more.carried(to, e.about) })
	}
	for i := range report {
		report[i].To, report[i].about = to, ""
	}
	return Output{data, append(report, more.Report...).sorted(names)}, err
}

// ErrNothing is the error for files that are valid and have nothing about how calls are made. The
// report is returned with it, and lists what was not read.
var ErrNothing = errors.New("there is nothing that says how calls are made in these files")

func readAll(files []File, o Options) (*Set, Report, error) {
	base, err := o.base()
	if err != nil {
		return nil, nil, err
	}
	r := &reading{options: o, base: base, set: newSet()}
	for _, f := range files {
		r.open(f)
	}
	for _, f := range []struct {
		format Format
		read   func([]*document)
	}{{GRPC, r.grpc}, {Istio, r.istio}, {Envoy, r.envoy}, {Gateway, r.gateway}, {Dapr, r.dapr}, {Resilience4j, r.resilience4j}, {Linkerd, r.linkerd}} {
		docs := r.documents[f.format]
		if f.format == Gateway { // Envoy Gateway's are for its routes
			docs = slices.Concat(docs, r.documents[EnvoyGateway])
		}
		if len(docs) > 0 {
			f.read(docs)
			for _, d := range docs {
				r.collect(d)
			}
		}
	}
	if len(r.mistakes) > 0 {
		return nil, nil, r.mistakes
	}
	if len(r.set.File.Dependencies) == 0 && len(files) > 0 {
		return r.set, r.report, ErrNothing
	}
	if o.Only != "" {
		if err := r.set.only(o.Only); err != nil {
			return nil, nil, err
		}
		r.report = r.set.about(o.Only, r.report)
	}
	return r.set, r.report, nil
}

func (s *Set) only(name string) error {
	d, ok := s.File.Dependency(name)
	if !ok {
		names := choice.Each(s.File.Dependencies, func(d config.Dependency) string { return d.Name })
		return engine.Problems{{Field: "dependency", Value: tree.Quote(name), Allowed: "one of those that there are: " + choice.List(names)}}
	}
	s.File.Dependencies = []config.Dependency{d}
	s.File.Services = nil // they may call others
	clear(s.index)
	return nil
}

func (s *Set) about(only string, r Report) Report {
	own, any := map[source]bool{}, map[source]bool{}
	for name, k := range s.known {
		for _, each := range k.sources {
			any[each.bare()] = true
			if name == only {
				own[each.bare()] = true
			}
		}
	}
	return slices.DeleteFunc(r, func(e Entry) bool { return !partOf(own, e) && partOf(any, e) })
}

func partOf(parts map[source]bool, e Entry) bool {
	if parts[source{file: e.File}] {
		return true
	}
	for i := len(e.Path); i > 0; i = strings.LastIndexAny(e.Path[:i], ".[") {
		if parts[source{file: e.File, path: e.Path[:i]}] {
			return true
		}
	}
	return false
}

// base is the policy that dependencies begin with, and its preset. given: it is that of the options, for all of them.
type base struct {
	given  bool
	policy lull.Policy
	preset string
}

func (o Options) base() (base, error) {
	switch o.Base {
	case "":
		return base{}, nil
	case "lull":
		return base{given: true}, nil
	}
	p, ok := config.PresetPolicy(o.Base)
	if !ok {
		return base{}, engine.Problems{{Field: "base", Value: tree.Quote(o.Base), Allowed: `"lull", or a preset: ` + choice.List(config.Presets())}}
	}
	return base{given: true, policy: p, preset: o.Base}, nil
}

// of returns what a dependency of format f begins with: unless the options set a base, what its system does by default.
func (b base) of(f Format) base {
	if b.given {
		return b
	}
	return standards()[f]
}

// standards are the defaults of the systems, by format. They are computed once, because presets take time to look up.
var standards = sync.OnceValue(func() (all [formats]base) {
	envoy := must.Have(rivals.Find("envoy")) // TestTheBasesAreThere
	all[GRPC].preset, all[Istio].preset = "grpc-no-throttling", "istio"
	for f := range all {
		p := &all[f].policy
		switch Format(f) {
		case GRPC, Istio:
			*p, _ = config.PresetPolicy(all[f].preset)
		case Envoy, EnvoyGateway, Gateway:
			*p = envoy.Policy
		case Dapr, Resilience4j, Linkerd:
			*p = lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways,
				HintLimit: anyHint, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}}
		}
		if Format(f) != Istio { // which retries by default
			p.Attempts = 1
		}
	}
	all[Gateway].policy.Deadline = lull.NoTimeout
	return all
})

type reading struct {
	options   Options
	base      base
	set       *Set
	report    Report
	mistakes  config.Mistakes
	documents [formats][]*document
	full      bool // there are too many dependencies; mistakes has that
}

// A document is a document that is being read: the mapping of a file, or an item of a list of Kubernetes.
type document struct {
	tree.Reader
	root    *tree.Node
	prefix  string // of its paths
	entries Report
	noted   map[Entry]bool // the entries as a set
	key     string         // of the ConfigMap that it is in; empty: none
	within  int            // texts in it that are read by themselves
	based   bool           // there is a base, which decides what the document leaves open
	// files are the files of the nodes, of a document that was made of several; nil: it was not.
	files map[*tree.Node]string
}

func (r *reading) newDocument(f File, root *tree.Node, prefix string) *document {
	return &document{Reader: tree.Reader{File: f.Name}, root: root, prefix: prefix, based: r.base.given, noted: map[Entry]bool{}}
}

// mappings yields the documents that are mappings; others are mistakes.
func mappings(docs []*document) iter.Seq2[*document, *tree.Object] {
	return func(yield func(*document, *tree.Object) bool) {
		for _, d := range docs {
			if o := d.Object(d.root, ""); o != nil && !yield(d, o) {
				return
			}
		}
	}
}

func (r *reading) open(f File) {
	if r.options.From != nil && *r.options.From == Lull {
		r.readPolicyFile(f)
		return
	}
	roots, err := parse(f.Name, f.Data)
	if wrong, ok := errors.AsType[config.Mistakes](err); ok {
		r.mistakes = append(r.mistakes, wrong...)
		return
	}
	if r.options.From == nil && len(roots) == 1 && isLull(roots[0]) {
		r.readPolicyFile(f)
		return
	}
	if len(roots) == 0 {
		r.wrong(f.Name, nil, "", "an empty file", "at least one of: "+FormatNames())
	}
	r.sortAll(f, roots, "", "")
}

func (r *reading) sortAll(f File, roots []*tree.Node, prefix, key string) {
	spring := r.options.From == nil && slices.ContainsFunc(roots, isSpring)
	for i, root := range roots {
		at := prefix
		if spring && root.Kind == tree.Map && root.Get("apiVersion") == nil { // all are documents of the application, whatever else they look like
			d := r.newDocument(f, root, at)
			d.key = key
			r.documents[Resilience4j] = append(r.documents[Resilience4j], d)
			continue
		}
		if key != "" && len(roots) > 1 {
			at = tree.Element(prefix, i)
		}
		r.sort(f, root, at, r.options.From)
	}
}

// sort adds a document to those of its format. otherwise is the format if it is not recognised; nil: that is a mistake.
func (r *reading) sort(f File, root *tree.Node, prefix string, otherwise *Format) {
	if items := listed(root); items != nil {
		for i, item := range items.Items {
			r.sort(f, item, tree.Element(tree.Join(prefix, "items"), i), otherwise)
		}
		return
	}
	if len(root.Items) > 0 && !root.Any(func(n *tree.Node) bool { return n.Kind != tree.Map }) {
		r.list(f, root, prefix, otherwise)
		return
	}
	d := r.newDocument(f, root, prefix)
	format, ok := recognise(root)
	if r.options.From != nil {
		format, ok = *r.options.From, true
	}
	kind, version := root.Get("kind"), root.Get("apiVersion")
	switch {
	case ok && format == Lull:
		r.wrong(f.Name, root, "", "a policy file among other documents", "one document, in a file of its own")
	case ok:
		r.documents[format] = append(r.documents[format], d)
	case kind != nil && version != nil:
		d.within = r.within(f, root)
		d.unreadObject()
		r.collect(d)
	case otherwise != nil:
		r.documents[*otherwise] = append(r.documents[*otherwise], d)
	default:
		r.wrong(f.Name, root, d.shown(""), found(root), certain)
	}
}

// list reads a list of documents: the output of "istioctl proxy-config -o json", or the service configs that gRPC finds in
// DNS. A document that cannot be recognised has the format of the others.
func (r *reading) list(f File, root *tree.Node, prefix string, otherwise *Format) {
	if isChoices(root) && (r.options.From == nil || *r.options.From == GRPC) {
		r.choices(f, root, prefix)
		return
	}
	for _, item := range root.Items {
		if format, ok := recognise(item); ok && otherwise == nil {
			otherwise = &format
		}
	}
	for i, item := range root.Items {
		r.sort(f, item, tree.Element(prefix, i), otherwise)
	}
}

func found(root *tree.Node) string {
	switch {
	case root.Kind != tree.Map:
		return root.Found()
	case len(root.Members) == 0:
		return "an empty mapping"
	}
	keys := choice.Each(root.Members[:min(len(root.Members), 5)], func(m tree.Member) string { return tree.Clip(m.Key) })
	if len(root.Members) > len(keys) {
		keys = append(keys, "...")
	}
	return "a mapping of " + strings.Join(keys, ", ")
}

func (r *reading) readPolicyFile(f File) {
	file, err := proxyfile.ParsePolicies(f.Name, f.Data)
	if wrong, ok := errors.AsType[config.Mistakes](err); ok {
		r.mistakes = append(r.mistakes, wrong...)
		return
	}
	if len(file.Dependencies) == 0 {
		r.wrong(f.Name, nil, "", "a policy file without dependencies", "at least one dependency")
		return
	}
	if len(r.set.policyFiles) == 0 && len(r.set.File.Dependencies) == 0 {
		r.set.File = file
	} else {
		r.join(file)
	}
	for _, d := range file.Dependencies {
		if _, ok := r.set.policyFiles[d.Name]; !ok {
			r.set.policyFiles[d.Name] = file
		}
	}
}

// join adds the content of another policy file. A name may be in only one of them.
func (r *reading) join(file *config.PolicyFile) {
	twice := func(path string) {
		r.mistakes = append(r.mistakes, config.Mistake{Position: file.Position(path), Path: path, Found: "in another file as well", Allowed: "each once"})
	}
	for _, d := range file.Dependencies {
		if _, ok := r.set.File.Dependency(d.Name); ok {
			twice("dependencies." + d.Name)
		} else {
			r.set.File.Dependencies = append(r.set.File.Dependencies, d)
		}
	}
	for _, s := range file.Services {
		if _, ok := r.set.File.Service(s.Name); ok {
			twice("services." + s.Name)
		} else {
			r.set.File.Services = append(r.set.File.Services, s)
			r.set.services[s.Name] = file
		}
	}
}

// wrong records a mistake in a file, at n; nil: in the file as a whole.
func (r *reading) wrong(file string, n *tree.Node, path, found, allowed string) {
	at := config.Position{File: file, Line: 1, Column: 1}
	if n != nil {
		at.Line, at.Column = n.Line, n.Column
	}
	r.mistakes = append(r.mistakes, config.Mistake{Position: at, Path: path, Found: found, Allowed: allowed})
}

func (r *reading) collect(d *document) {
	if len(d.Mistakes) == 0 && !r.full && d.files == nil {
		d.sweep(d.root, "")
	}
	for i := range d.Mistakes {
		m := &d.Mistakes[i]
		m.Position.File, m.Path = d.at(m.Path).File, d.shown(m.Path)
	}
	_ = d.Mistakes.Err() // it sorts
	for _, m := range d.Mistakes {
		if d.files == nil || !slices.Contains(r.mistakes, m) {
			r.mistakes = append(r.mistakes, m)
		}
	}
	for _, e := range d.entries {
		if d.based && slices.Contains([]about{ejected, bounds, hints, hintsUsed}, e.about) {
			e.about = "" // the policy of the base decides it
		}
		r.report = append(r.report, e)
	}
}

func (d *document) shown(path string) string { return tree.Concat(d.prefix, path) }

func (d *document) source(path string) source {
	at := d.at(path)
	return source{at.File, d.shown(at.path), d}
}

func (d *document) sourcesIn(path string) []source {
	all := []source{d.source(path)}
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		if file, ok := d.files[n]; ok && !slices.Contains(all, source{file, all[0].path, d}) {
			all = append(all, source{file, all[0].path, d})
		}
		for _, m := range n.Members {
			walk(m.Value)
		}
	}
	if n := d.at(path).node; n != nil && d.files != nil {
		walk(n)
	}
	return all
}

func (d *document) note(k Kind, path, why string) { d.noteAbout(true, "", k, path, why) }

func (d *document) noteIf(is bool, k Kind, path, why string) { d.noteAbout(is, "", k, path, why) }

// assume records at path what the default of a system decides, unless there is a base.
func (d *document) assume(is bool, path, why string) { d.noteIf(is && !d.based, Assumed, path, why) }

// noteWhole records all of n, at path, of which a part was read.
func (d *document) noteWhole(k Kind, n *tree.Node, path, why string) {
	n.Use = tree.Told
	d.note(k, path, why)
}

// noteAbout is noteIf for what can be carried from one proxy to another.
func (d *document) noteAbout(is bool, a about, k Kind, path, why string) {
	if !is {
		return
	}
	at := d.at(path)
	e := Entry{Kind: k, Position: at.Position, Path: cmp.Or(d.shown(at.path), "(all)"), Value: at.value, Why: why, about: a}
	if n := at.node; n != nil && n != d.root && n.Use != tree.Opened && n.Kind >= tree.List {
		e.Values, n.Use = n.Count(), tree.Told
	} else if n != nil && n.Kind < tree.List {
		n.Use = tree.Told
	}
	if !d.noted[e] {
		d.noted[e] = true
		d.entries = append(d.entries, e)
	}
}

type location struct {
	config.Position
	path  string     // of the field, as its keys are spelt
	value string     // if it is there, and a single one
	node  *tree.Node // nil: it is not there
}

func (d *document) at(path string) location {
	s := location{Position: d.Place(d.root), path: path}
	d.descend(d.root, path, "", &s)
	return s
}

func (d *document) in(n *tree.Node, at config.Position) config.Position {
	at.File = cmp.Or(d.files[n], at.File)
	return at
}

// descend follows rest, a path from n on; done is the path to n.
func (d *document) descend(n *tree.Node, rest, done string, s *location) {
	if rest == "" {
		s.path, s.node = done, n
		if n.Kind == tree.Bool || n.Kind == tree.Number || n.Kind == tree.Text {
			s.value = n.Found()
		}
		return
	}
	key, index, rest := tree.Cut(rest)
	if index >= 0 {
		if index < len(n.Items) {
			s.Position = d.in(n.Items[index], d.Place(n.Items[index]))
			d.descend(n.Items[index], rest, tree.Element(done, index), s)
		}
		return
	}
	for _, m := range n.Members {
		if m.Key != key && (d.Same == nil || !d.Same(m.Key, key)) {
			continue
		}
		s.Position = d.in(m.Value, d.KeyPlace(m))
		done = tree.Join(done, m.Key)
		s.path = tree.Concat(done, rest)
		d.descend(m.Value, rest, done, s)
		return
	}
}

func (d *document) noteUnread(o *tree.Object, why string) {
	for _, m := range o.Rest() {
		d.rest(m.Key, m.Value, o.At(m.Key), why)
	}
}

// noteRouting records the fields of what refers to something else: some were read, and the rest.
func (d *document) noteRouting(o *tree.Object, read ...string) {
	for _, name := range read {
		d.noteIf(o.Has(name), Aside, o.At(name), routingWhy)
	}
	d.noteUnread(o, routingWhy)
}

// lost reads and records those of the fields that o has; a policy has none of them.
func (d *document) lost(o *tree.Object, kind Kind, why string, names ...string) {
	for _, name := range names {
		if n, path := o.Get(name); n != nil && switchesOff(n) {
			d.note(Aside, path, offWhy)
		} else if n != nil {
			d.note(kind, path, why)
		}
	}
}

// idle records those of the fields that o has; they have no effect.
func (d *document) idle(o *tree.Object, why string, names ...string) {
	for _, name := range names {
		if o.Has(name) {
			d.note(Lost, o.At(name), why)
		}
	}
}

func (d *document) attempts(retries int64, path string) int {
	d.noteIf(retries >= mostAttempts, Changed, path, "a policy makes at most 1000 attempts")
	return int(min(retries, mostAttempts-1)) + 1
}

const mostAttempts = 1000

// maxDependencies is how many are read: more than fit into a policy file of 1 MiB.
const maxDependencies = 20_000

// add adds a dependency that was made of what is at path of d, and of rest. others are names for it if another policy has its name.
func (r *reading) add(d *document, name string, others []string, path string, p lull.Policy, extras known, rest ...source) {
	if r.full {
		return
	}
	if r.full = len(r.set.File.Dependencies) >= maxDependencies; r.full {
		d.Note(d.at(path).Position, path, "one of too many dependencies", fmt.Sprintf("at most %d in all files together: convert fewer at a time", maxDependencies), "")
		return
	}
	if p.Deadline > 0 && p.AttemptTimeout > p.Deadline {
		p.AttemptTimeout = p.Deadline
	}
	if p.Hedge.Attempts > 1 {
		p.Attempts = 1
	}
	if extras.ignoresHints && p.HintLimit == anyHint && p.MaxAttempts() > 1 {
		p.HintLimit = engine.DefaultHintLimit // lull heeds hints
	}
	preset := r.base.of(extras.of).preset
	if preset == "" && p.MaxAttempts() < 2 { // which have no effect without retries
		p.Backoff, p.RateLimitedBase, p.HintLimit = backoff.Schedule{}, 0, 0
	}
	if extras.rebased = r.base.given; extras.rebased {
		extras.ignoresHints = false
	}
	if own := !r.base.given || extras.retried != nil || extras.codes != nil; own && p.MaxAttempts() > 1 && !extras.safe {
		d.noteAbout(true, repeated, Changed, path, unsafeIn(extras.of))
	}
	at := d.at(path).Position
	if err := p.Validate(); err != nil { // only a defect of a reader makes such a policy
		d.Note(at, path, "no policy: "+strings.ReplaceAll(fmt.Sprint(err), "\n", "; "), "values that a policy can have", "")
		return
	}
	extras.origin, extras.sources = at, append(rest, d.source(path))
	own := r.set.add(config.Dependency{Name: name, Preset: preset, Policy: p}, others, d.fieldsOf(extras.of, path), extras)
	d.noteIf(own != name, Assumed, path,
		"it is the dependency "+tree.Quote(own)+" here, since names are taken or have characters that none can have")
}

func unsafeIn(f Format) string {
	system := f.System()
	switch f {
	case GRPC:
		return "gRPC retries a method whether it is safe to repeat or not; lull only one that is said to be (lullgrpc.WithIdempotent)"
	case Gateway:
		system = "a gateway"
	}
	return system + " retries a request whether it is safe to repeat or not; lull only one whose method is idempotent or that has an idempotency key"
}
