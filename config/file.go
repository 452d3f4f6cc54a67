package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
)

// A PolicyFile is what a policy file says, and where it says it. It is plain data
// but for the positions; whoever makes one in code has none of those. Its methods
// that read may be called concurrently.
type PolicyFile struct {
	// Version is that of the format: 1, or 0 where the file does not say.
	Version int
	// Defaults is what every dependency has unless it says otherwise.
	Defaults Defaults
	// Dependencies are in the order of the file.
	Dependencies []Dependency
	// Services are the call graph, in the order of the file; nil if it has none.
	Services []Service

	places *filePlaces // nil: made in code
}

// Defaults is the policy of every dependency, as far as that does not say otherwise,
// and of those that the file does not name.
type Defaults struct {
	// Preset is what Policy begins with (see [Presets]). Empty: the zero
	// [lull.Policy], the recommended one.
	Preset string
	Policy lull.Policy // the preset's fields included
}

// A Dependency is something that is called, with all that holds for it.
type Dependency struct {
	// Name is that of the lull.Dependency: 1 to 100 printable characters.
	Name string
	// Preset is the one that the dependency itself names. Empty: that of the
	// defaults counts.
	Preset string
	// Policy is complete: the defaults', the preset's and its own fields.
	Policy lull.Policy

	// What follows are facts: nothing is done by them, and they change no policy. They
	// are there for a linter and for readers.

	// Operations that it offers; nil: the file names none.
	Operations []Operation
	// P99 is the 99th percentile of the time that one attempt takes when all is
	// well. Zero: not known.
	P99 time.Duration
	// Rate is the calls a second that one process makes. Zero: not known.
	Rate float64
}

// An Operation is one of those that a dependency offers. All fields are facts.
type Operation struct {
	Name string
	// Idempotent: carrying it out twice is the same as once.
	Idempotent Answer
	// Keyed: each call carries an idempotency key that the server heeds, so that an
	// operation that is not idempotent may be repeated all the same.
	Keyed bool
	// P99 is that of one attempt. Zero: the dependency's.
	P99 time.Duration
}

// A Service is a node of the call graph. All fields are facts.
type Service struct {
	Name string
	// SLO is the time within which it must answer. Zero: none is known.
	SLO time.Duration
	// Calls are what it calls for each request, one after another unless they say
	// otherwise.
	Calls []Edge
	// Provides are the dependencies that this service answers, which is how layers are
	// followed from one to the next. Nil: the one that has its name, if there is one.
	Provides []string
	// Server says what it answers with: lull's server half (lullhttp.NewHandler, the
	// interceptors of lullgrpc, a queue.Consumer), or anything else. The former makes
	// retries of several layers add up where they would multiply (see
	// [lull.NestedRetries]). Zero: OtherServer.
	Server Server

	// Handler is, of a consumer of a queue, the longest that the handling of one message
	// may take. Zero: it is no consumer, or that is not known.
	Handler time.Duration
	// Visibility is for how long a message that was handed out is hidden from other
	// consumers (visibility timeout, lease, ack wait). Zero: not known.
	Visibility time.Duration
	// Deliveries is how often the queue delivers one message before it gives up, the first
	// one included. Zero: not known.
	Deliveries int
}

// An Edge is a call that a service makes. In a file it may be the name of the dependency
// alone.
type Edge struct {
	// Dependency is its name.
	Dependency string
	// Operation is one of the dependency's. Empty: any.
	Operation string
	// Times is how often it is called for each request, one after another. Zero means
	// once.
	Times int
	// Parallel marks calls of one service that run side by side: those that have the same
	// text. Empty: the call waits for those before it.
	Parallel string
}

// Limits of what a call graph can say.
const (
	maxTimes      = 10_000
	maxDeliveries = 1000
)

// Validate reports what is wrong with the facts of d and with its policy, each problem
// naming its field as in a file, from Go; nil if nothing is.
func (d Dependency) Validate() error {
	var l problem.List
	if err := d.Policy.Validate(); err != nil {
		l = append(l, problemsOf(err)...)
	}
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

// Dependency is the one of that name.
func (f *PolicyFile) Dependency(name string) (Dependency, bool) {
	for i := range f.Dependencies {
		if f.Dependencies[i].Name == name {
			return f.Dependencies[i], true
		}
	}
	return Dependency{}, false
}

// Policy is what holds for calls to the dependency of that name: the defaults, if the
// file does not name it.
func (f *PolicyFile) Policy(name string) lull.Policy {
	if d, ok := f.Dependency(name); ok {
		return d.Policy
	}
	return f.Defaults.Policy
}

// Service is the one of that name.
func (f *PolicyFile) Service(name string) (Service, bool) {
	for i := range f.Services {
		if f.Services[i].Name == name {
			return f.Services[i], true
		}
	}
	return Service{}, false
}

// Provider is the service that answers calls to the dependency of that name.
func (f *PolicyFile) Provider(dependency string) (Service, bool) {
	for _, s := range f.Services {
		if slices.Contains(s.Provides, dependency) {
			return s, true
		}
	}
	if s, ok := f.Service(dependency); ok && s.Provides == nil {
		return s, true
	}
	return Service{}, false
}

// Operation is the one of that name.
func (d Dependency) Operation(name string) (Operation, bool) {
	i := slices.IndexFunc(d.Operations, func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return Operation{}, false
	}
	return d.Operations[i], true
}

// An Answer is that to a question which a file may leave open.
type Answer uint8

// The answers. The zero value is Unsaid.
const (
	Unsaid Answer = iota
	No
	Yes
)

var answerNames = [...]string{"unsaid", "false", "true"}

// String is the answer as in a file: "true" or "false"; "unsaid" cannot be written.
func (a Answer) String() string {
	if int(a) < len(answerNames) {
		return answerNames[a]
	}
	return fmt.Sprintf("answer(%d)", uint8(a))
}

// Server is what a service answers with.
type Server uint8

const (
	// OtherServer: any that does not know what lull's clients tell it.
	OtherServer Server = iota
	// LullServer: it knows which attempt of its caller a request is, for the calls that it
	// makes meanwhile; and when one of those has failed for good it says "don't retry" with
	// its own failure. Its handlers hand on the context of their request.
	LullServer
	servers
)

var serverNames = [servers]string{"other", "lull"}

// String is the server as in a file: "other" or "lull".
func (s Server) String() string {
	if s < servers {
		return serverNames[s]
	}
	return fmt.Sprintf("server(%d)", uint8(s))
}

// named says that name is one which can be printed in a table and typed on a command line.
func (r *reader) named(m tree.Member, path string) bool {
	if properName(m.Key) {
		return true
	}
	r.Note(r.KeyPlace(m), path, tree.Quote(m.Key), allowedName, "")
	return false
}

const allowedName = "names of 1 to 100 printable characters, none of them a space at an end"

// under is path and name as one path that is shown.
func under(path string, names ...string) string {
	return strings.Trim(path+"."+strings.Join(names, "."), ".")
}
