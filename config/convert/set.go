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
	"github.com/lullgo/lull/config/convert/internal/tree"
)

// A Set is the policies that were read, and what is known of them besides.
type Set struct {
	// File has the dependencies.
	File *config.PolicyFile

	homes    map[string]*config.PolicyFile // by dependency, of those that were policies
	services map[string]*config.PolicyFile // by service, of those that are not in the first file
	origins  map[string]config.Position    // by dependency, of those that were no policies
	foreign  map[string]foreign            // by dependency, of the same
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
	rebased  bool         // what it does not say is somebody else's, so that the policy counts
}

func newSet() *Set {
	return &Set{&config.PolicyFile{}, map[string]*config.PolicyFile{}, map[string]*config.PolicyFile{}, map[string]config.Position{}, map[string]foreign{}}
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
	path    string // of what it was made of
	foreign foreign
}

// add adds a dependency, and returns the name that it has there. Another name than that
// which it would have by itself is noted.
func (s *Set) add(d read, note func(Kind, string, string)) {
	names := append([]string{d.name}, d.others...)
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s (%d)", d.name, i-len(names)+2)
		if i < len(names) {
			name = names[i]
		}
		name = proper(name)
		if known, ok := s.File.Dependency(name); ok {
			if known.Policy == d.policy && reflect.DeepEqual(s.foreign[name], d.foreign) {
				return
			}
			continue
		}
		if name != d.name {
			note(Assumed, d.path, "it is the dependency "+tree.Quote(name)+" here, since names are taken or have characters that none can have")
		}
		s.File.Dependencies = append(s.File.Dependencies, config.Dependency{Name: name, Preset: d.preset, Policy: d.policy})
		s.origins[name] = d.at
		s.foreign[name] = d.foreign
		return
	}
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
	if utf8.RuneCountInString(name) > maxName {
		name = strings.TrimSpace(string([]rune(name)[:maxName]))
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
