package convert

import (
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/tree"
)

// What nobody reads may still say how calls are made: a patch of Envoy, a header by which
// it is told how often to retry, the annotation of another mesh. It is found by its name.

// telling are parts of the names of fields, headers and annotations that are about how
// calls are made, in lower case and without what stands between words.
var telling = []string{"retry", "retries", "retriable", "hedge", "hedging", "timeout", "maxstreamduration", "circuitbreaker", "outlier",
	"failureaccrual", "backoff", "nextupstream", "connectattempts"}

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
		return n.Text == "false"
	case tree.Text:
		d, err := time.ParseDuration(n.Text)
		return err == nil && d == 0
	case tree.Map:
		return len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m tree.Member) bool { return !off(m.Value) })
	}
	return false
}

// overlooked notes what is in the value of a field that nobody asked for, and is about how
// calls are made all the same.
func (d *document) overlooked(m tree.Member, path string) {
	const why = "it is not read here"
	if off(m.Value) || slices.Contains(unrelated, plain(m.Key)) {
		return
	}
	if tells(m.Key) {
		d.note(Lost, path, why)
		return
	}
	for _, at := range mentions(m.Value, path) {
		d.note(Lost, at, why)
	}
}

// annotations notes those of an object of Kubernetes by which something is told how to make
// calls.
func (d *document) annotations(root *tree.Node) {
	all := root.Get("metadata").Get("annotations")
	if all == nil {
		return
	}
	for _, at := range mentions(all, "metadata.annotations") {
		d.note(Lost, at, "annotations are not read here")
	}
}

// stranger notes what there is in an object of Kubernetes that is none of those which are
// read. Those of Kubernetes itself say nothing of calls but in their annotations.
func (d *document) stranger(root *tree.Node, kind, version string) {
	found := len(d.entries)
	group, _, _ := strings.Cut(version, "/")
	if own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasPrefix(group, "gateway."); own {
		d.annotations(root)
	} else {
		for _, at := range mentions(root, "") {
			d.note(Lost, at, tree.Clip(kind)+" of "+tree.Clip(version)+" is not read here")
		}
	}
	if len(d.entries) == found {
		d.note(Aside, "kind", "a "+tree.Clip(kind)+" of "+tree.Clip(version)+" says nothing of how calls are retried")
	}
}
