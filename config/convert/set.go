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

// A Set is the policies that were read, and what is known of them besides.
type Set struct {
	// File has the dependencies.
	File *config.PolicyFile

	homes    map[string]*config.PolicyFile // by dependency, of those that were policies
	services map[string]*config.PolicyFile // by service, of those that are not in the first file
	origins  map[string]config.Position    // by dependency, of those that were no policies
	foreign  map[string]foreign            // by dependency, of the same

	sources  map[string][]source  // by dependency, of the same
	index    map[string]int       // of the dependencies in File, by name
	variants map[variant][]string // the names of those that came of the same name and policy
	numbers  map[string]int       // the last one that was given to a name
}

// A foreign is what a form says of a dependency that no policy can hold. It is here for
// forms that can.
type foreign struct {
	of       Format
	retried  *failures    // nil: as lull does
	codes    []code       // of gRPC
	ejection *ejection    // nil: none
	budget   *proxyBudget // nil: what retries says
	retries  int64        // under way at a time, where there is no budget
	deaf     bool         // to Retry-After
	safe     bool         // what is not safe to repeat is not repeated
	hosts    hosts        // where retries go
	rebased  bool         // what it does not say is somebody else's, so that the policy counts
}

// hosts says which host a proxy sends a retry to.
type hosts struct {
	others     bool  // to none that was tried before
	more       int64 // searches for such a one than Envoy's own, which is one
	priorities int64 // so many retries for each set of priorities; zero: the priorities do not change
}

func newSet() *Set {
	return &Set{
		File:     &config.PolicyFile{},
		homes:    map[string]*config.PolicyFile{},
		services: map[string]*config.PolicyFile{},
		origins:  map[string]config.Position{},
		foreign:  map[string]foreign{},
		sources:  map[string][]source{},
		index:    map[string]int{},
		variants: map[variant][]string{},
		numbers:  map[string]int{},
	}
}

// proxied is what a proxy said of the dependency.
func (s *Set) proxied(name string) (foreign, bool) {
	f, ok := s.foreign[name]
	return f, ok && !f.rebased && (f.of == Envoy || f.of == Istio)
}

// position is where a field of a dependency stands, or what it came from.
func (s *Set) position(name, field string) config.Position {
	path := "dependencies." + name
	if at, ok := s.origins[name]; ok {
		return at
	}
	if field != "" {
		path += "." + field
	}
	if home, ok := s.homes[name]; ok {
		return home.Position(path)
	}
	return s.File.Position(path)
}

// A read is a dependency that a reader has found.
type read struct {
	name    string
	others  []string // names to take if that one has another policy already
	preset  string
	policy  lull.Policy
	at      config.Position
	path    string   // of what it was made of
	sources []source // that, and what else says something of it
	foreign foreign
}

// A source is a part of a file that is about a dependency: a route, or a cluster.
type source struct{ file, path string }

// A variant is what several routes may say of the same: it is one dependency then.
type variant struct {
	name   string
	policy lull.Policy
}

// add adds a dependency, unless there is one of that name which says the same. Another name
// than that which it would have by itself is noted.
func (s *Set) add(d read, note func(Kind, string, string)) {
	same := variant{d.name, d.policy}
	for _, name := range append(s.variants[same], proper(d.name)) {
		if known, ok := s.find(name); ok && known.Policy == d.policy && reflect.DeepEqual(s.foreign[name], d.foreign) {
			s.sources[name] = append(s.sources[name], d.sources...)
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
	s.foreign[name] = d.foreign
	s.sources[name] = d.sources
}

// free is the first of the names that is not taken; with a number, if all are.
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

// find is File.Dependency for files of a hundred thousand routes.
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

// proper is name as one that a dependency can have.
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
