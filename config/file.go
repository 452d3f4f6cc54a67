// Package config reads and writes policies ([lull.Policy]) in files in YAML; [Live] reloads them in a running program, and
// [PolicySchema] is their JSON Schema for editors. A key that is misspelt and silently ignored leaves the default in force, and
// nobody notices before the outage. So nothing is ignored here: all [Mistakes] of a file are reported together, each with its
// place, what was found and what is allowed. Those that may only be a consequence of another one are left out.
//
// Keys are the names of the Go fields in snake case: AttemptTimeout is attempt_timeout. A field that a file does not have is
// zero, with the meaning that the field gives to zero. docs/files.md has the format. [PolicyFile] knows where each value comes
// from ([PolicyFile.Position], [PolicyFile.Origin]). The module needs go.yaml.in/yaml/v4, which has the place of every node and
// needs no other module. Only Live keeps state. Everything may be called concurrently, on values that are not shared.
package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
)

// A PolicyFile is the content of a policy file, with the places of its values. A PolicyFile that was made in code has no
// places; otherwise it is plain data. Its methods that read may be called concurrently.
type PolicyFile struct {
	// Version is the version of the format: 1, or 0 if the file has none.
	Version int
	// Defaults is the policy of every dependency, except for the fields that it sets itself.
	Defaults Defaults
	// Dependencies are in the order of the file.
	Dependencies []Dependency
	// Services are the call graph, in the order of the file; nil if there is none.
	Services []Service

	places *filePlaces // nil: made in code
}

// Defaults is the policy of every dependency, except for the fields that it sets itself, and of the
// dependencies that the file does not name.
type Defaults struct {
	// Preset is the preset that Policy begins with (see [Presets]). Empty: the zero [lull.Policy],
	// which is the recommended one.
	Preset string
	Policy lull.Policy // the preset's fields included
}

// A Dependency is something that is called, with its policy and what is known of it.
type Dependency struct {
	// Name is the name of the lull.Dependency: 1 to 100 printable characters.
	Name string
	// Preset is the preset that the dependency names itself. Empty: it has that of the defaults.
	Preset string
	// Policy is complete: it has the fields of the defaults, of the preset and of the dependency itself.
	Policy lull.Policy

	// The fields that follow are facts. They change no policy; the linter uses them, and readers.

	// Operations are the operations that it offers; nil: the file names none.
	Operations []Operation
	// P99 is the 99th percentile of the time that one attempt takes in normal operation. Zero: not known.
	P99 time.Duration
	// Rate is the number of calls a second that one process makes. Zero: not known.
	Rate float64
}

// An Operation is an operation of a dependency. All fields are facts.
type Operation struct {
	Name string
	// Idempotent: carrying it out twice is the same as once.
	Idempotent YesNo
	// Keyed: each call carries an idempotency key that the server heeds, so that the operation may
	// be repeated even if it is not idempotent.
	Keyed bool
	// P99 is the 99th percentile of one attempt of this operation. Zero: that of the dependency.
	P99 time.Duration
}

// A Service is a node of the call graph. All fields are facts.
type Service struct {
	Name string
	// SLO is the time within which the service must answer. Zero: none is known.
	SLO time.Duration
	// Calls are the calls that it makes for each request, one after another unless they are marked as parallel.
	Calls []Edge
	// Provides are the dependencies that this service answers. They connect one layer with the
	// next. Nil: the dependency with the name of the service, if there is one.
	Provides []string
	// Server is the kind of server that the service has: lull's server half (lullhttp.NewHandler, the interceptors of
	// lullgrpc, a queue.Consumer), or any other. With lull's, the retries of several layers add up; with others they
	// multiply (see engine.NestedRetries). Zero: OtherServer.
	Server ServerKind

	// Handler is the longest time that the handling of one message may take, in a consumer of a
	// queue. Zero: it is no consumer, or the time is not known.
	Handler time.Duration
	// Visibility is how long a message that was delivered is hidden from other consumers
	// (visibility timeout, lease, ack wait). Zero: not known.
	Visibility time.Duration
	// Deliveries is how often the queue delivers one message before it gives up, including the first time. Zero: not known.
	Deliveries int
}

// An Edge is a call that a service makes. In a file it may be written as the name of the dependency alone.
type Edge struct {
	// Dependency is the name of the dependency that is called.
	Dependency string
	// Operation is the operation of the dependency that is called. Empty: any.
	Operation string
	// Times is the number of calls for each request, one after another. Zero means one.
	Times int
	// Parallel marks calls of one service that are made at the same time: those with the same text.
	// Empty: the call waits for those before it.
	Parallel string
}

// Limits of a call graph.
const (
	maxTimes      = 10_000
	maxDeliveries = 1000
)

// Validate reports what is wrong with the facts of d and with its policy; nil if nothing is. Each
// problem names its field as in Go.
func (d Dependency) Validate() error {
	l := problemsOf(d.Policy.Validate())
	l.Check(d.P99 >= 0, "P99", d.P99, "a positive duration, or 0 for unknown")
	l.Check(d.Rate >= 0 && !math.IsInf(d.Rate, 0), "Rate", d.Rate, "a positive number of calls a second, or 0 for unknown")
	return l.Err()
}

func problemsOf(err error) problem.List {
	l, _ := err.(problem.List)
	return l
}

// Validate reports what is wrong with o; nil if nothing is.
func (o Operation) Validate() error {
	var l problem.List
	l.Check(o.P99 >= 0, "P99", o.P99, "a positive duration, or 0 for that of the dependency")
	return l.Err()
}

// Validate reports what is wrong with s, taken alone; nil if nothing is.
func (s Service) Validate() error {
	var l problem.List
	unknown := "a positive duration, or 0 for unknown"
	l.Check(s.SLO >= 0, "SLO", s.SLO, unknown)
	for i, name := range s.Provides {
		l.Check(name != "", fmt.Sprintf("Provides[%d]", i), name, "the name of a dependency")
	}
	for i, e := range s.Calls {
		at := fmt.Sprintf("Calls[%d]", i)
		l.Check(e.Dependency != "", at+".Dependency", e.Dependency, "the name of a dependency")
		l.Check(e.Times >= 0 && e.Times <= maxTimes, at+".Times", e.Times, "1 to 10000 calls for each request, or 0 for one")
	}
	l.Check(s.Server < servers, "Server", s.Server, choice.List(serverNames[:]))
	l.Check(s.Handler >= 0, "Handler", s.Handler, unknown)
	l.Check(s.Visibility >= 0, "Visibility", s.Visibility, unknown)
	l.Check(s.Deliveries >= 0 && s.Deliveries <= maxDeliveries, "Deliveries", s.Deliveries, "1 to 1000 deliveries of one message, or 0 for unknown")
	return l.Err()
}

// Dependency returns the dependency of that name.
func (f *PolicyFile) Dependency(name string) (Dependency, bool) { return find(f.Dependencies, name) }

func find[T interface{ name() string }](all []T, name string) (found T, ok bool) {
	for i := range all {
		if all[i].name() == name {
			return all[i], true
		}
	}
	return found, false
}

// Policy returns the policy for calls to the dependency of that name. If the file does not name it,
// that is the policy of the defaults.
func (f *PolicyFile) Policy(name string) lull.Policy {
	if d, ok := f.Dependency(name); ok {
		return d.Policy
	}
	return f.Defaults.Policy
}

// Service returns the service of that name.
func (f *PolicyFile) Service(name string) (Service, bool) { return find(f.Services, name) }

// A YesNo is yes, no, or not given.
type YesNo uint8

// The answers. The zero value is Unsaid.
const (
	Unsaid YesNo = iota
	No
	Yes
)

var answerNames = [...]string{"unsaid", "false", "true"}

// String returns the answer as in a file: "true" or "false". "unsaid" cannot be written.
func (a YesNo) String() string { return choice.Name("answer", answerNames[:], a) }

// ServerKind is the kind of server that a service has.
type ServerKind uint8

const (
	// OtherServer: any server that does not understand the headers of lull's clients.
	OtherServer ServerKind = iota
	// LullServer: it knows which attempt of its caller a request is, and its own calls take that
	// into account. When one of those has failed for good it answers with its own failure and
	// "don't retry". Its handlers pass on the context of their request.
	LullServer
	servers
)

var serverNames = [servers]string{"other", "lull"}

// String returns the server as in a file: "other" or "lull".
func (s ServerKind) String() string { return choice.Name("server", serverNames[:], s) }

const allowedName = "names of 1 to 100 printable characters, none of them a space at an end"

// An Origin is where the value of a field comes from.
type Origin uint8

const (
	// Unset: nothing sets the field. It is zero, with the meaning that the field gives to zero.
	Unset Origin = iota
	// Written: the field itself is in the file.
	Written
	// FromPreset: from the preset that the dependency names or, for a path below "defaults", that the defaults name.
	FromPreset
	// FromDefaults: from a field of the defaults.
	FromDefaults
	// FromDefaultsPreset: from the preset that the defaults name.
	FromDefaultsPreset
)

var originNames = [...]string{"unset", "written", "from the preset", "from defaults", "from the preset of defaults"}

// String returns the origin in words: "from defaults".
func (o Origin) String() string { return choice.Name("origin", originNames[:], o) }

type filePlaces struct {
	file string
	// at is by path: "dependencies.api.budget.ratio".
	at map[string]Position
	// bases are by dependency; that of the defaults has the name "".
	bases map[string]origins
}

// origins are where a dependency has the fields from that it does not set itself.
type origins struct {
	base   base
	preset Position // of the base's preset, or of the defaults'
	named  bool     // there is such a preset
}

// Position returns the place of the field at path: "dependencies.api.deadline", "defaults.budget.ratio",
// "services.shop.calls.0". If the file does not have the field, it is the place where its value comes from: the field of the
// defaults, the line that names the preset, or else the nearest thing that the field belongs to. For a mapping or a list it
// is the place of its key. The dependency of a file that holds nothing else has paths below "dependencies", too. Elements of
// lists have numbers, from 0.
func (f *PolicyFile) Position(path string) Position {
	p, _ := f.find(path)
	return p
}

// Origin returns where the value of the policy field at path comes from.
func (f *PolicyFile) Origin(path string) Origin { _, o := f.find(path); return o }

func (f *PolicyFile) find(path string) (Position, Origin) {
	if f.places == nil {
		return Position{}, Unset
	}
	if at, ok := f.places.at[path]; ok {
		return at, Written
	}
	if name, rest, ok := f.owner(path); ok {
		if at, o, ok := f.places.origin(name, rest); ok {
			return at, o
		}
	}
	for path != "" {
		path = codec.Parent(path)
		if at, ok := f.places.at[path]; ok {
			return at, Unset
		}
	}
	return Position{File: f.places.file, Line: 1, Column: 1}, Unset
}

// owner returns the dependency of the policy field at path, "" for the defaults, and the rest of the path. Names may have dots.
func (f *PolicyFile) owner(path string) (name, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(path, "defaults."); ok {
		return "", rest, true
	}
	after, ok := strings.CutPrefix(path, "dependencies.")
	if !ok {
		return "", "", false
	}
	for i := len(after) - 1; i > 0; i-- {
		if after[i] != '.' {
			continue
		}
		if _, ok := f.places.bases[after[:i]]; ok {
			return after[:i], after[i+1:], true
		}
	}
	return "", "", false
}

// origin returns where a field that the file does not have gets its value from: the first origin of its own fields.
func (p *filePlaces) origin(name, rest string) (Position, Origin, bool) {
	o := p.bases[name]
	for _, l := range policyLeaves() {
		if !codec.Within(l.path, rest) {
			continue
		}
		at, written := p.at["defaults."+l.path]
		set := !l.of(&o.base.policy).IsZero()
		switch {
		case name != "" && written && o.base.fromDefaults(l):
			return at, FromDefaults, true
		case o.named && set && (o.base.preset || name == ""):
			return o.preset, FromPreset, true
		case o.named && set:
			return o.preset, FromDefaultsPreset, true
		}
	}
	return Position{}, Unset, false
}

func presetOf(name string) *template { return templates()[name] }

// A Position is a place in a file, with the fields File, Line and Column. Lines and columns count from 1, columns in
// characters. The zero Position is none: of a PolicyFile that was made in code. Its String is "file:3:15", and "-" for none.
type Position = tree.Position

// A Mistake is one thing that is wrong in a file or in an assignment (see [SetPolicy]). It has a [Position], which is none in an
// assignment. Its Path is the field, such as "services.0.queue.limit", and empty if the text is no YAML. Found is what the file has,
// as a phrase that follows "is": "unknown", "a list", or the value in quotes. Allowed is what the file may have, a noun phrase, and
// Suggestion what was probably meant, if anything is similar. Its Error has all of it, in the form that editors turn into a link:
//
//	retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
type Mistake = tree.Mistake

// Mistakes is a list of everything that is wrong with a file, in the order of its lines. It is an
// error, with a line for each; errors.As finds it, and each [Mistake] in it.
type Mistakes = tree.Mistakes
