package convert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/throttle"
)

// written is the report of a Write, and what it could carry over although no policy can hold it.
type written struct {
	Report
	took map[about]bool
}

// carried reports whether the writer of the format to has carried over what an entry is about.
func (w written) carried(to Format, a about) bool {
	switch a {
	case hintsUsed:
		return to == Envoy
	case hints:
		return to == Envoy || to == Istio || to == EnvoyGateway || to == Dapr
	case ejected, bounds, hosted:
		return to == Envoy || to == Istio || to == EnvoyGateway
	case repeated:
		return to != Lull
	}
	return w.took[a]
}

// maxPolicies is the largest policy file that package config reads.
const maxPolicies = 1 << 20

// Write writes the policies of a set. The report has what the format cannot hold. See [Convert].
func Write(s *Set, to Format, o Options) ([]byte, Report, error) {
	data, w, err := write(s, to, o)
	if err != nil {
		return nil, nil, err
	}
	return data, w.Report, nil
}

func write(s *Set, to Format, o Options) ([]byte, written, error) {
	w := &writer{set: s, to: to, written: written{took: map[about]bool{}}}
	switch write := writers[min(to, formats)]; {
	case to == Lull:
		data, err := config.FormatPolicyFile(w.folded())
		if err == nil && o.JSON {
			var nodes []*tree.Node
			if nodes, err = parse("", data); err == nil {
				data = nodes[0].JSON()
			}
		}
		if len(data) > maxPolicies {
			err = fmt.Errorf("%d dependencies make a policy file of more than the 1 MiB that is read of one: convert fewer files at a time", len(s.File.Dependencies))
		}
		return data, w.written, err
	case to == GRPC:
		n, err := w.grpc()
		if err != nil {
			return nil, w.written, err
		}
		return n.JSON(), w.written, nil
	case write == nil:
		return nil, w.written, engine.Problems{{Field: "to", Value: to, Allowed: TargetNames()}}
	case !o.JSON:
		documents := write(w)
		for _, d := range documents {
			lineUp(d)
		}
		data, err := syntax.YAML(120, documents...)
		return data, w.written, err
	default:
		documents := write(w)
		n := documents[0]
		if len(documents) > 1 { // as Kubernetes and xDS have several in one
			n = listOf(to, documents)
		}
		return n.JSON(), w.written, nil
	}
}

var writers = [formats + 1]func(*writer) []*tree.Node{Istio: (*writer).istio, Envoy: (*writer).envoy, Gateway: (*writer).gateway,
	EnvoyGateway: (*writer).envoyGateway, Dapr: (*writer).dapr}

// each calls write for each dependency, with its policy and the defaults of it, and records what no system but lull has.
func (w *writer) each(system string, write func(d config.Dependency, p lull.Policy, note noter)) {
	for _, d := range w.set.File.Dependencies {
		note, p := w.of(d), d.Policy.WithDefaults()
		write(d, p, note)
		note.lost(p.Nested == engine.NestedNever && p.MaxAttempts() > 1, "nested",
			system+" also retries what is done on behalf of a retry")
		note.lost(p.Throttle.Mode != throttle.Off, "throttle", system+" holds no attempts back here")
		note.lost(p.Limit.MaxWait > 0, "limit.max_wait", system+" refuses at once what is beyond the limit")
		note.lost(p.Limit.MaxQueue > 0, "limit.max_queue", system+" refuses at once what is beyond the limit")
		w.facts(d)
	}
	w.services()
}

// folded makes the policy that most dependencies have the defaults, unless the set has files of lull's own or a call graph.
func (w *writer) folded() *config.PolicyFile {
	s := w.set
	if len(s.policyFiles) > 0 || len(s.File.Services) > 0 || len(s.File.Dependencies) < 2 {
		return s.File
	}
	type content struct {
		preset string
		policy lull.Policy
	}
	count, first := map[content]int{}, map[content]string{}
	var most content
	for _, d := range s.File.Dependencies {
		c := content{d.Preset, d.Policy}
		if count[c]++; count[c] == 1 {
			first[c] = d.Name
		}
		if count[c] > count[most] {
			most = c
		}
	}
	n := count[most]
	if n < 2 || 2*n < len(s.File.Dependencies) { // otherwise most would have to override it
		return s.File
	}
	f := *s.File
	f.Defaults = config.Defaults{Preset: most.preset, Policy: most.policy}
	f.Dependencies = slices.Clone(f.Dependencies)
	for i := range f.Dependencies {
		if d := &f.Dependencies[i]; d.Preset == most.preset && d.Policy == most.policy {
			d.Preset = "" // that of the defaults
		}
	}
	w.Report = append(w.Report, Entry{Kind: Assumed, Position: s.position(first[most], ""), Path: "(all)", To: w.to,
		Why: fmt.Sprintf("%d dependencies have the same policy: it is that of the defaults, and so of dependencies that the file does not name, too", n)})
	return &f
}

func listOf(f Format, documents []*tree.Node) *tree.Node {
	if f == Envoy {
		all := tree.ListOf()
		for _, d := range documents {
			all.Items = append(all.Items, d.Get("resources").Items...)
		}
		return tree.NewMap().Set("resources", all)
	}
	return tree.NewMap().Set("apiVersion", "v1").Set("kind", "List").Set("items", tree.ListOf(documents...))
}

type writer struct {
	set *Set
	to  Format
	written

	shown   *tree.Node // the dependency as in a policy file
	shownOf string
}

// note records what became of a field of the dependency; an empty field means all of it.
func (w *writer) note(d config.Dependency, k Kind, field, why string) {
	path, value := "dependencies."+d.Name, ""
	if field != "" {
		path, value = path+"."+field, w.value(d, field)
	}
	w.Report = append(w.Report, Entry{Kind: k, Position: w.set.position(d.Name, field), Path: path, Value: value, To: w.to, Why: why})
}

func (w *writer) of(d config.Dependency) noter {
	return func(k Kind, field, why string) { w.note(d, k, field, why) }
}

// value is the value of a field as in a file. It is empty if there is more than one value, or if it is a default.
func (w *writer) value(d config.Dependency, field string) string {
	p := d.Policy.WithDefaults()
	switch field {
	case "timeouts":
		return p.Timeouts.String()
	case "nested":
		return p.Nested.String()
	}
	if w.shown == nil || w.shownOf != d.Name {
		w.shown, w.shownOf = &tree.Node{}, d.Name
		data, err := config.FormatPolicyFile(&config.PolicyFile{Dependencies: []config.Dependency{{Name: "it", Policy: p, P99: d.P99, Rate: d.Rate}}})
		if docs, wrong := parse("", data); err == nil && wrong == nil && len(docs) == 1 {
			w.shown = docs[0].Get("dependencies").Get("it")
		}
	}
	n := w.shown
	for name := range strings.SplitSeq(field, ".") {
		n = n.Get(name)
	}
	if n == nil || n.Kind < tree.Bool || n.Kind > tree.Text {
		return ""
	}
	return tree.Clip(n.Text)
}

// unsafe records that requests are repeated even if that is not safe. A dependency from another system had that before.
func (w *writer) unsafe(d config.Dependency, why string) {
	if f, ok := w.set.known[d.Name]; !ok || f.safe {
		w.note(d, Changed, "", why)
	}
}

func (w *writer) facts(d config.Dependency) {
	note := w.of(d)
	note.lost(d.P99 > 0, "p99", "a fact for lull lint; "+w.to.String()+" has no place for it")
	note.lost(d.Rate > 0, "rate", "a fact for lull lint; "+w.to.String()+" has no place for it")
	note.lost(len(d.Operations) > 0, "operations", "facts for lull lint; "+w.to.String()+" has no place for them")
}

func (w *writer) services() {
	for _, s := range w.set.File.Services {
		path := "services." + s.Name
		file := cmp.Or(w.set.services[s.Name], w.set.File)
		w.Report = append(w.Report, Entry{Kind: Lost, Position: file.Position(path), Path: path, To: w.to, Why: "a fact for lull lint; " + w.to.String() + " has no place for it"})
	}
}

func millis(d time.Duration, field, system string, note noter) time.Duration {
	rounded := toMillis(d)
	note.changed(rounded != d && d != math.MaxInt64, field,
		fmt.Sprintf("%s counts in whole milliseconds: %s", system, pretty.Duration(rounded)))
	return rounded
}

func rateLimitedWaits(p lull.Policy, f failures, system string, note noter) {
	note.lost(!f.retried(rateLimited), "rate_limited_base",
		system+" would retry 429 after the same wait as other failures, so it does not retry it")
}

// rules accept what the readers of other systems accept. The output of a control plane can be large.
var rules = syntax.Rules{Bytes: 16 << 20, Documents: 10_000, Aliased: 100_000}

// Parse reads the values in a file, JSON or YAML: one for each document that is not empty.
func Parse(f File) ([]*tree.Node, error) { return parse(f.Name, f.Data) }

func parse(name string, data []byte) ([]*tree.Node, error) {
	all, err := syntax.Parse(name, data, rules)
	return slices.DeleteFunc(all, func(n *tree.Node) bool { return n.Kind == tree.Null }), err
}

// lineUp decides which parts of n are written on one line: a mapping with one single value, and a list of single values.
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
