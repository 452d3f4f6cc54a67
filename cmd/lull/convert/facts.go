package convert

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/tree"
)

// Facts are what files of other systems say of the calls to a dependency, beside its policy. The
// zero Facts is that they say nothing.
type Facts struct {
	// Service is the name of the service that is called, and Namespace that of its namespace in
	// Kubernetes, if the file gives it. Settings of several systems for the same service are layers.
	// Empty: the system does not name services so that others know them.
	Service, Namespace string
	// Methods are the methods of HTTP that routes with this policy name, each once. Routes may
	// also be for others: nil is that no route names one.
	Methods []Method
	// Unknown are the fields of the policy that something decides which is in none of the files: the
	// breaker of a cluster that is not there. What the policy has in them is the default of the system.
	Unknown []string
	// LongAttempt is a time for each attempt that has no effect, since the call ends no later.
	// Zero: there is none. LongAttemptAt is its place.
	LongAttempt   time.Duration
	LongAttemptAt config.Position
	// Ejected is the largest share of the endpoints that the system ejects, in per cent. Zero: it
	// ejects none.
	Ejected int

	host   string     // of a destination of Istio, or a backend of a gateway, as it is written
	subset string     // of the host
	labels *tree.Node // of the subset
}

// A Method is a method of HTTP that a route names, and where.
type Method struct {
	Name string
	config.Position
}

// Facts returns what the files say of the calls to the dependency of that name.
func (s *Set) Facts(dependency string) Facts {
	k := s.known[dependency]
	if k.ejection != nil {
		k.facts.Ejected = k.ejection.most
	}
	return k.facts
}

// Says reports whether a file has the field of the policy of the dependency, such as
// "attempt_timeout". It does not for what only the default of a system decides. Policy files of lull
// are not asked.
func (s *Set) Says(dependency, field string) bool {
	_, ok := s.known[dependency].places[field]
	return ok
}

// with joins the facts of two routes that are one dependency.
func (f Facts) with(more Facts) Facts {
	for _, m := range more.Methods {
		if !slices.ContainsFunc(f.Methods, func(known Method) bool { return known.Name == m.Name }) {
			f.Methods = append(slices.Clip(f.Methods), m)
		}
	}
	if f.LongAttempt == 0 {
		f.LongAttempt, f.LongAttemptAt = more.LongAttempt, more.LongAttemptAt
	}
	f.Unknown = slices.DeleteFunc(slices.Clone(f.Unknown), func(field string) bool { return !slices.Contains(more.Unknown, field) })
	return f
}

func textOf(n *tree.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// methodsIn adds the methods that the matchers in n name: one that is written as it is, and each of
// several, as in GET|POST.
func (d *document) methodsIn(n *tree.Node, all []Method) []Method {
	if n == nil {
		return all
	}
	if n.Kind == tree.Text {
		words := strings.FieldsFunc(n.Text, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') })
		for _, name := range methodNames {
			if slices.Contains(words, name) && !slices.ContainsFunc(all, func(m Method) bool { return m.Name == name }) {
				all = append(all, Method{name, d.Place(n)})
			}
		}
		return all
	}
	for _, v := range n.Values() {
		all = d.methodsIn(v, all)
	}
	return all
}

var methodNames = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// serviceAt sets the service to that of a host of Kubernetes, such as stock or
// stock.shop.svc.cluster.local, which is in a file of that namespace. Other hosts are services by
// themselves.
func (f *Facts) serviceAt(host, namespace string) {
	f.Service, f.Namespace, f.host = host, "", host
	if parts := strings.SplitN(host, ".", 4); len(parts) == 1 {
		f.Namespace = namespace
	} else if len(parts) > 2 && parts[2] == "svc" {
		f.Service, f.Namespace = parts[0], parts[1]
	}
}

var grpcPath = regexp.MustCompile(`^/(\w+\.)+\w+/\w*$`)

// isGRPCPath reports whether a path, or an expression for one, is of gRPC: each such request is a POST, which
// states nothing about what it does.
func isGRPCPath(path string) bool { return grpcPath.MatchString(strings.ReplaceAll(path, `\`, "")) }
