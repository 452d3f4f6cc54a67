package convert

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// A Set is the policies that were read, and what else is known about them.
type Set struct {
	// File has the dependencies.
	File *config.PolicyFile

	policyFiles map[string]*config.PolicyFile // by dependency, of those from policy files
	services    map[string]*config.PolicyFile // by service, of those that are not in the first file
	known       map[string]known              // by dependency, of those from other formats

	skipped  []Skip
	index    map[string]int       // of the dependencies in File, by name
	variants map[variant][]string // their names
	numbers  map[string]int       // the last number that was added to a name
}

// A known is what a format says of a dependency beside its policy. Routes with the same policy and the same foreign are one dependency.
type known struct {
	foreign
	facts   Facts
	places  map[string]config.Position // of fields; a reader gives those that are elsewhere than the rest
	origin  config.Position
	sources []source // all parts that it came from
}

func (f Format) known() known {
	return known{foreign: foreign{of: f}, places: map[string]config.Position{}}
}

// A foreign holds the settings of a format for a dependency that no policy can hold. Other formats may be able to.
type foreign struct {
	of           Format
	retried      *failures    // nil: those of lull
	codes        []code       // of gRPC
	ejection     *ejection    // nil: none
	budget       *proxyBudget // nil: retries counts
	retries      int64        // at a time, if there is no budget
	ignoresHints bool         // it ignores Retry-After
	safe         bool         // only what is safe to repeat is repeated
	hosts        hosts        // where retries go
	rebased      bool         // there is a base, so that the policy decides where nothing is set
}

type hosts struct {
	others     bool  // to none that was tried before
	more       int64 // searches for such a host, in addition to Envoy's one
	priorities int64 // retries until the priorities change; zero: they do not
}

func newSet() *Set {
	return &Set{
		File:        &config.PolicyFile{},
		policyFiles: map[string]*config.PolicyFile{},
		services:    map[string]*config.PolicyFile{},
		known:       map[string]known{},
		index:       map[string]int{},
		variants:    map[variant][]string{},
		numbers:     map[string]int{},
	}
}

func (s *Set) proxied(name string) (foreign, bool) {
	f, ok := s.known[name]
	return f.foreign, ok && !f.rebased && (f.of == Envoy || f.of == Istio || f.of == EnvoyGateway)
}

func (s *Set) position(name, field string) config.Position {
	path := "dependencies." + name
	if k, ok := s.known[name]; ok {
		return k.origin
	}
	if field != "" {
		path += "." + field
	}
	return cmp.Or(s.policyFiles[name], s.File).Position(path)
}

type source struct {
	file, path string
	in         *document // in which the path begins after its prefix; nil: only the names are compared
}

func (s source) bare() source { return source{file: s.file, path: s.path} }

// A variant is a name and a policy. Routes with the same variant are one dependency.
type variant struct {
	name   string
	policy lull.Policy
}

// add adds a dependency, unless the same one is there, and returns its name. fields are places in the part that it came from.
func (s *Set) add(d config.Dependency, others []string, fields map[string]config.Position, k known) (name string) {
	same := variant{d.Name, d.Policy}
	for _, name := range append(s.variants[same], proper(d.Name)) {
		if there, ok := s.find(name); ok && there.Policy == d.Policy && reflect.DeepEqual(s.known[name].foreign, k.foreign) {
			all := s.known[name]
			all.sources, all.facts = append(all.sources, k.sources...), all.facts.with(k.facts)
			maps.Copy(all.places, k.places)
			s.known[name] = all
			return d.Name
		}
	}
	d.Name = s.free(d.Name, others)
	s.File.Dependencies = append(s.File.Dependencies, d)
	s.variants[same] = append(s.variants[same], d.Name)
	maps.Copy(fields, k.places)
	k.places = fields
	s.known[d.Name] = k
	return d.Name
}

func (s *Set) free(own string, others []string) string {
	for _, name := range append([]string{own}, others...) {
		if _, taken := s.find(proper(name)); !taken {
			return proper(name)
		}
	}
	for {
		s.numbers[own] = max(s.numbers[own], 1) + 1
		number := fmt.Sprintf(" (%d)", s.numbers[own])
		name := cut(proper(own), maxName-len(number)) + number
		if _, taken := s.find(name); !taken {
			return name
		}
	}
}

// find is like File.Dependency, but fast for files of a hundred thousand routes.
func (s *Set) find(name string) (config.Dependency, bool) {
	for i := len(s.index); i < len(s.File.Dependencies); i++ {
		s.index[s.File.Dependencies[i].Name] = i
	}
	i, ok := s.index[name]
	if !ok {
		return config.Dependency{}, false
	}
	return s.File.Dependencies[i], true
}

func proper(name string) string {
	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '-'
		}
		return c
	}, strings.TrimSpace(name))
	if name == "" {
		return "unnamed"
	}
	return cut(name, maxName)
}

func cut(name string, most int) string {
	if utf8.RuneCountInString(name) > most {
		name = strings.TrimSpace(string([]rune(name)[:most]))
	}
	return name
}

const maxName = 100

func stem(file string) string {
	if name := codec.Stem(file); name != "" && name != "-" {
		return name
	}
	return "dependency"
}

// Facts are what files of other systems say of the calls to a dependency, beside its policy.
type Facts struct {
	// Service is the service that is called, and Namespace that of Kubernetes, if it is given. Settings of several systems for one service
	// are layers. Empty: the system names no services.
	Service, Namespace string
	// Methods are those of HTTP that routes with this policy name, each once. Nil: no route names one.
	Methods []Method
	// Unknown are the fields of the policy that something decides which is in none of the files: the
	// breaker of a cluster that is not there. What the policy has in them is the default of the system.
	Unknown []string
	// LongAttempt is a time for each attempt, at LongAttemptAt, that is no shorter than the call's. Zero: there is none.
	LongAttempt   time.Duration
	LongAttemptAt config.Position
	// Ejected is the largest share of the endpoints that the system ejects, in per cent. Zero: it ejects none.
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

// Says reports whether a file of another system has the field of the policy, such as "attempt_timeout": a default does not count.
func (s *Set) Says(dependency, field string) bool {
	_, ok := s.known[dependency].places[field]
	return ok
}

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

// methodsIn adds the methods that the matchers in n name: one that is written as it is, and each of several, as in GET|POST.
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

// serviceAt sets the service to that of a host of Kubernetes, such as stock or stock.shop.svc.cluster.local, or to the host itself.
func (f *Facts) serviceAt(host, namespace string) {
	f.Service, f.Namespace, f.host = host, "", host
	if parts := strings.SplitN(host, ".", 4); len(parts) == 1 {
		f.Namespace = namespace
	} else if len(parts) > 2 && parts[2] == "svc" {
		f.Service, f.Namespace = parts[0], parts[1]
	}
}

var grpcPath = regexp.MustCompile(`^/(\w+\.)+\w+/\w*$`)

// isGRPCPath reports whether a path, or an expression for one, is of gRPC: all its requests are POSTs, whatever they do.
func isGRPCPath(path string) bool { return grpcPath.MatchString(strings.ReplaceAll(path, `\`, "")) }
