package convert

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/tree"
)

// What nobody reads may still say how calls are made: a patch of Envoy, a header by which
// it is told how often to retry, the annotation of another mesh. It is found by its name.

// telling are parts of the names of fields, headers and annotations that are about how
// calls are made, in lower case and without what stands between words. What is not read is
// lost whether it has such a name or not; by its name it is found in what is about something
// else, too, and named as a whole.
var telling = []string{"retry", "retries", "retriable", "hedge", "hedging", "timeout", "maxstreamduration", "circuitbreaker", "outlier",
	"failureaccrual", "backoff", "nextupstream", "connectattempts", "passivehealth", "healthcheck", "faultinjection", "admissioncontrol", "inflightreq", "deadletter", "failover"}

// unrelated are fields whose values may have such names and are about something else: how
// a request is recognised, how hosts are probed, how the proxy gets its own configuration.
var unrelated = []string{"match", "matches", "healthchecks", "healthcheck", "livenessprobe", "readinessprobe", "startupprobe", "status", "managedfields",
	"labels", "selector", "edsclusterconfig", "configsource", "adsconfig", "cdsconfig", "ldsconfig", "rtdslayer", "hdsconfig", "accesslog", "tracing"}

// extensions of Envoy that refuse, slow down or break requests, by their types.
var extensions = []string{"AdmissionControl", "AdaptiveConcurrency", "HTTPFault"}

// tells: that is the name of something which is about how calls are made.
func tells(name string) bool {
	name = plain(name)
	return slices.ContainsFunc(telling, func(part string) bool { return strings.Contains(name, part) })
}

// plain is name in lower case, letters and digits only.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, name)
}

// mentions are the paths, below path, of what is about how calls are made in n, whatever it
// is part of; of what is within one another the outermost.
func mentions(n *tree.Node, path string) (all []string) {
	for i, item := range n.Items {
		all = append(all, mentions(item, tree.Element(path, i))...)
	}
	for _, m := range n.Members {
		at := tree.Join(path, m.Key)
		switch {
		case off(m.Value), slices.Contains(unrelated, plain(m.Key)):
		case tells(m.Key):
			all = append(all, at)
		case m.Value.Kind == tree.Text && (m.Key == "key" || m.Key == "header" || m.Key == "name") && strings.HasPrefix(m.Value.Text, "x-envoy-") && tells(m.Value.Text),
			m.Key == "@type" && slices.Contains(extensions, lastOf(m.Value.Text)):
			all = append(all, at)
		default:
			all = append(all, mentions(m.Value, at)...)
		}
	}
	return all
}

// off: that is how something is switched off, so that nothing is lost with it: false, no
// time, or a mapping of such things.
func off(n *tree.Node) bool {
	switch n.Kind {
	case tree.Null:
		return true
	case tree.Bool:
		return strings.EqualFold(n.Text, "false")
	case tree.Text:
		d, err := time.ParseDuration(n.Text)
		return err == nil && d == 0
	case tree.Map:
		return len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m tree.Member) bool { return !off(m.Value) })
	}
	return false
}

const (
	notReadWhy = "it is not read here"
	offWhy     = "it is switched off"
	plainWhy   = "not how calls are made"
	anchorWhy  = "it is there to be referred to"
)

// sweep notes what nobody has read of n, at path, which was opened: what the readers ask for
// is marked, so what they know nothing of is found whatever it is called.
func (d *document) sweep(n *tree.Node, path string) {
	if n.Use != tree.Opened {
		d.rest("", n, path, plainWhy)
		return
	}
	for i, item := range n.Items {
		if item.Kind >= tree.List { // single values are read with their list
			d.sweep(item, tree.Element(path, i))
		} else {
			d.octal(item, tree.Element(path, i))
		}
	}
	for _, m := range n.Members {
		at := tree.Join(path, m.Key)
		switch {
		case m.Value.Use == tree.Opened:
			d.sweep(m.Value, at)
		case path == "" && strings.HasPrefix(m.Key, "x-"):
			d.note(Aside, at, anchorWhy)
		default:
			d.rest(m.Key, m.Value, at, plainWhy)
		}
	}
}

// rest notes n, the value of a field called key that nobody has read: as aside, and why, if it is
// known to be about something else, and as lost if not.
func (d *document) rest(key string, n *tree.Node, path, why string) {
	name := plain(key)
	switch {
	case n.Kind == tree.Null || n.Use == tree.Told:
	case n.Use == tree.Opened:
		d.sweep(n, path)
	case n.Use == tree.Read && n.Kind < tree.List:
		d.octal(n, path)
	case path == key && strings.HasPrefix(key, "x-"):
		d.note(Aside, path, anchorWhy)
	case n.Kind >= tree.List && opened(n):
		d.inside(key, n, path, why)
	case off(n):
		d.note(Aside, path, offWhy)
	case key != "@type" && irrelevant[name] && !tells(name), key == "@type" && containers[lastOf(n.Text)], n.Kind == tree.Map && otherTypes[typeOf(n)]:
		if !slices.Contains(unrelated, name) {
			for _, at := range mentions(n, path) {
				d.note(Lost, at, notReadWhy)
			}
		}
		d.note(Aside, path, why)
	case n.Kind < tree.List, tells(name), flat(n):
		d.note(Lost, path, notReadWhy)
	default:
		d.inside(key, n, path, why)
	}
}

// inside is rest of what is in n.
func (d *document) inside(key string, n *tree.Node, path, why string) {
	for i, item := range n.Items {
		d.rest(key, item, tree.Element(path, i), why)
	}
	for _, m := range n.Members {
		d.rest(m.Key, m.Value, tree.Join(path, m.Key), why)
	}
}

// opened reports whether something in n was opened.
func opened(n *tree.Node) bool {
	return n.Use == tree.Opened || slices.ContainsFunc(n.Items, opened) ||
		slices.ContainsFunc(n.Members, func(m tree.Member) bool { return opened(m.Value) })
}

// flat reports whether n is a list of single values.
func flat(n *tree.Node) bool {
	return n.Kind == tree.List && !slices.ContainsFunc(n.Items, func(n *tree.Node) bool { return n.Kind >= tree.List })
}

// octal notes a number that looks like another.
func (d *document) octal(n *tree.Node, path string) {
	if n.Kind != tree.Number || len(n.Text) < 2 || n.Text[0] != '0' {
		return
	}
	if i, ok := tree.WholeNumber(n); ok && strconv.FormatInt(i, 10) != n.Text {
		d.note(Assumed, path, "a number that is not in decimal, as YAML has it: "+strconv.FormatInt(i, 10))
	}
}

// annotations notes those of an object of Kubernetes by which something may be told how to make
// calls.
func (d *document) annotations(root *tree.Node) {
	all := root.Get("metadata").Get("annotations")
	if all == nil {
		return
	}
	for _, m := range all.Members {
		if m.Value.Kind > tree.Null && !elsewhere(m.Key) {
			d.note(Lost, tree.Join("metadata.annotations", m.Key), "annotations are not read here")
		}
	}
}

// elsewhere reports whether an annotation is known to be about something else.
func elsewhere(annotation string) bool {
	domain, name, ok := strings.Cut(annotation, "/")
	if !ok {
		name = annotation
	}
	if tells(name) || tells(domain) {
		return false
	}
	return !ok || slices.ContainsFunc(otherDomains, func(s string) bool { return domain == s || strings.HasSuffix(domain, "."+s) }) ||
		slices.ContainsFunc(otherAnnotations, func(part string) bool { return strings.Contains(plain(name), part) })
}

// stranger notes what there is in an object of Kubernetes that is none of those which are
// read. Those of Kubernetes itself say nothing of calls but in their annotations.
func (d *document) stranger(root *tree.Node, kind, version string) {
	d.annotations(root)
	if meta := root.Get("metadata"); meta != nil {
		meta.Use = tree.Told
	}
	group, _, _ := strings.Cut(version, "/")
	of := tree.Clip(kind) + " of " + tree.Clip(version)
	count := root.Count()
	root.Use = tree.Told
	if own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasPrefix(group, "gateway."); !own && !slices.ContainsFunc(otherDomains, func(s string) bool { return group == s || strings.HasSuffix(group, "."+s) }) {
		for _, m := range root.Members {
			d.rest(m.Key, m.Value, m.Key, "")
		}
	}
	left := d.entries[:0]
	for _, e := range d.entries {
		switch {
		case e.Kind == Aside: // one entry for all of it
			continue
		case e.Why == notReadWhy:
			e.Why = of + " is not read here"
		}
		count -= max(e.Values, 1)
		left = append(left, e)
	}
	d.entries = left
	clear(d.noted)
	why := of + " says nothing of how calls are made"
	if len(left) > 0 {
		why = "the rest of this " + of + " says nothing of how calls are made"
	}
	at := d.at("kind")
	d.entries = append(d.entries, Entry{Kind: Aside, File: d.File, Line: at.line, Column: at.column, Path: d.shown(at.path), Values: max(count, 0), Why: why})
}
