package convert

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/tree"
)

// A Set is the policies that were read, and what else is known about them.
type Set struct {
	// File has the dependencies.
	File *config.PolicyFile

	policyFiles map[string]*config.PolicyFile // by dependency, of those from policy files
	services    map[string]*config.PolicyFile // by service, of those that are not in the first file
	origins     map[string]config.Position    // by dependency, of those from other formats
	foreign     map[string]foreign            // by dependency, of the same
	facts       map[string]Facts              // by dependency, of the same

	places   map[string]map[string]config.Position // of fields, by dependency, of the same
	sources  map[string][]source                   // by dependency, of the same
	skipped  []Skip
	index    map[string]int       // of the dependencies in File, by name
	variants map[variant][]string // their names
	numbers  map[string]int       // the last number that was added to a name
}

// A foreign holds the settings of a format for a dependency that no policy can hold. Other formats
// may be able to.
type foreign struct {
	of           Format
	retried      *failures                  // nil: those of lull
	codes        []code                     // of gRPC
	ejection     *ejection                  // nil: none
	budget       *proxyBudget               // nil: retries counts
	retries      int64                      // at a time, if there is no budget
	ignoresHints bool                       // it ignores Retry-After
	safe         bool                       // only what is safe to repeat is repeated
	hosts        hosts                      // where retries go
	rebased      bool                       // there is a base, so that the policy decides where nothing is set
	facts        Facts                      // which routes with the same policy may have each their own of
	fields       map[string]config.Position // the places of fields that are elsewhere than the rest
}

// at returns f with the places of fields that are in another part of the files than the rest.
func (f foreign) at(fields map[string]config.Position) foreign {
	f.fields = fields
	return f
}

// hosts is the choice of the host for a retry.
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
		origins:     map[string]config.Position{},
		foreign:     map[string]foreign{},
		facts:       map[string]Facts{},
		places:      map[string]map[string]config.Position{},
		sources:     map[string][]source{},
		index:       map[string]int{},
		variants:    map[variant][]string{},
		numbers:     map[string]int{},
	}
}

// proxied returns the settings of a proxy for the dependency.
func (s *Set) proxied(name string) (foreign, bool) {
	f, ok := s.foreign[name]
	return f, ok && !f.rebased && (f.of == Envoy || f.of == Istio || f.of == EnvoyGateway)
}

// position is the place of a field of a dependency, or of what it came from.
func (s *Set) position(name, field string) config.Position {
	path := "dependencies." + name
	if at, ok := s.origins[name]; ok {
		return at
	}
	if field != "" {
		path += "." + field
	}
	if home, ok := s.policyFiles[name]; ok {
		return home.Position(path)
	}
	return s.File.Position(path)
}

// A read is a dependency that a reader has found.
type read struct {
	name    string
	others  []string // further names, if a dependency of that name has another policy
	preset  string
	policy  lull.Policy
	at      config.Position
	path    string   // of what it came from
	sources []source // all parts that it came from
	fields  map[string]config.Position
	foreign foreign
}

// A source is a part of a file that is about a dependency: a route, or a cluster.
type source struct {
	file, path string
	in         *document // in which the path begins after its prefix; nil: only the names are compared
}

// bare returns s without its document, to compare.
func (s source) bare() source { return source{file: s.file, path: s.path} }

// A variant is a name and a policy. Routes with the same variant are one dependency.
type variant struct {
	name   string
	policy lull.Policy
}

// add adds a dependency, unless one of that name with the same content is there. It records a name
// that differs from its own.
func (s *Set) add(d read, note func(Kind, string, string)) {
	same, facts := variant{d.name, d.policy}, d.foreign.facts
	fields := d.foreign.fields
	d.foreign.facts, d.foreign.fields = Facts{}, nil
	for _, name := range append(s.variants[same], proper(d.name)) {
		if known, ok := s.find(name); ok && known.Policy == d.policy && reflect.DeepEqual(s.foreign[name], d.foreign) {
			s.sources[name] = append(s.sources[name], d.sources...)
			s.facts[name] = s.facts[name].with(facts)
			s.locate(name, fields)
			return
		}
	}
	name := s.free(d.name, d.others)
	if name != d.name {
		note(Assumed, d.path, "it is the dependency "+tree.Quote(name)+" here, since names are taken or have characters that none can have")
	}
	s.File.Dependencies = append(s.File.Dependencies, config.Dependency{Name: name, Preset: d.preset, Policy: d.policy})
	s.variants[same] = append(s.variants[same], name)
	s.origins[name] = d.at
	s.foreign[name], s.facts[name] = d.foreign, facts
	s.places[name] = d.fields
	s.sources[name] = d.sources
	s.locate(name, fields)
}

// free returns the first of the names that is not taken, or own with a number.
func (s *Set) free(own string, others []string) string {
	for _, name := range append([]string{own}, others...) {
		if name = proper(name); !s.taken(name) {
			return name
		}
	}
	for {
		s.numbers[own] = max(s.numbers[own], 1) + 1
		number := fmt.Sprintf(" (%d)", s.numbers[own])
		if name := cut(proper(own), maxName-len(number)) + number; !s.taken(name) {
			return name
		}
	}
}

func (s *Set) taken(name string) bool {
	_, ok := s.find(name)
	return ok
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

// proper makes name one that a dependency can have.
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

// cut is name with at most that many characters.
func cut(name string, most int) string {
	if utf8.RuneCountInString(name) > most {
		name = strings.TrimSpace(string([]rune(name)[:most]))
	}
	return name
}

const maxName = 100

// stem is the name of a file without its folder and its ending.
func stem(file string) string {
	base := filepath.Base(file)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" && name != "-" {
		return name
	}
	return "dependency"
}

// locate adds places of fields of the dependency of that name.
func (s *Set) locate(name string, fields map[string]config.Position) {
	if len(fields) == 0 {
		return
	}
	if s.places[name] == nil {
		s.places[name] = map[string]config.Position{}
	}
	for field, at := range fields {
		s.places[name][field] = at
	}
}
