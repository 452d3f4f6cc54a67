package config

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// A PolicyFile is the content of a policy file, with the places of its values. A PolicyFile that
// was made in code has no places; otherwise it is plain data. Its methods that read may be called
// concurrently.
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
	// Policy is complete: it has the fields of the defaults, of the preset and of the dependency
	// itself.
	Policy lull.Policy

	// The fields that follow are facts. They change no policy; the linter uses them, and readers.

	// Operations are the operations that it offers; nil: the file names none.
	Operations []Operation
	// P99 is the 99th percentile of the time that one attempt takes in normal operation. Zero: not
	// known.
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
	// Calls are the calls that it makes for each request, one after another unless they are marked
	// as parallel.
	Calls []Edge
	// Provides are the dependencies that this service answers. They connect one layer with the
	// next. Nil: the dependency with the name of the service, if there is one.
	Provides []string
	// Server is the kind of server that the service has: lull's server half (lullhttp.NewHandler,
	// the interceptors of lullgrpc, a queue.Consumer), or any other. With lull's, the retries of
	// several layers add up; with others they multiply (see engine.NestedRetries). Zero:
	// OtherServer.
	Server ServerKind

	// Handler is the longest time that the handling of one message may take, in a consumer of a
	// queue. Zero: it is no consumer, or the time is not known.
	Handler time.Duration
	// Visibility is how long a message that was delivered is hidden from other consumers
	// (visibility timeout, lease, ack wait). Zero: not known.
	Visibility time.Duration
	// Deliveries is how often the queue delivers one message before it gives up, including the
	// first time. Zero: not known.
	Deliveries int
}

// An Edge is a call that a service makes. In a file it may be written as the name of the dependency
// alone.
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
func (f *PolicyFile) Dependency(name string) (Dependency, bool) {
	for i := range f.Dependencies {
		if f.Dependencies[i].Name == name {
			return f.Dependencies[i], true
		}
	}
	return Dependency{}, false
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
func (f *PolicyFile) Service(name string) (Service, bool) {
	for i := range f.Services {
		if f.Services[i].Name == name {
			return f.Services[i], true
		}
	}
	return Service{}, false
}

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
