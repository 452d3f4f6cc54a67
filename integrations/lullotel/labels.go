package lullotel

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull/internal/problem"
)

// Other is the label of everything beyond a bound of [Limits], and of names that no label can have
// (longer than 128 bytes, or not UTF-8). Semantic conventions use it for an unknown error.type.
const Other = "_OTHER"

// longest is the greatest length of a name, in bytes.
const longest = 128

// Limits bound the label sets, whatever names come in. The first names get labels of their own, up
// to the limit. All others are counted under [Other]. It is plain data; zero fields mean the
// defaults.
type Limits struct {
	// Dependencies is how many dependencies have labels of their own (and so many consumers of
	// queues and admission controllers). Default 64.
	Dependencies int
	// Operations is how many operations have, for each dependency. Default 16.
	Operations int
	// Codes is how many kinds of failure (error.type) have, for each dependency, and how many
	// reasons of dead letters for each queue. Default 32.
	Codes int
}

// Validate reports every problem at once.
func (l Limits) Validate() error {
	var all problem.List
	check := func(name string, n int) { all.Check(n >= 0 && n <= 1e5, name, n, "0 (the default) to 100000") }
	check("Dependencies", l.Dependencies)
	check("Operations", l.Operations)
	check("Codes", l.Codes)
	return all.Err()
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Dependencies, 64), cmp.Or(l.Operations, 16), cmp.Or(l.Codes, 32)}
}

// names is a bounded set of things with names.
type names[T any] struct {
	max   int
	make  func(label string) *T
	known sync.Map // name to *T
	mu    sync.Mutex
	len   int         // of known; guarded by mu
	full  atomic.Bool // there will be no more
	other atomic.Pointer[T]
}

func newNames[T any](max int, make func(string) *T) *names[T] { return &names[T]{max: max, make: make} }

// get returns the thing with the name. It makes it if there is room; else it returns the one for
// all others.
func (n *names[T]) get(name string) *T {
	full := n.full.Load() // before the lookup: nobody adds the name after that
	if v, ok := n.known.Load(name); ok {
		return v.(*T)
	}
	fits := name != Other && len(name) <= longest && utf8.ValidString(name)
	if v := n.other.Load(); v != nil && (full || !fits) {
		return v
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, ok := n.known.Load(name); ok {
		return v.(*T)
	}
	if full = n.len >= n.max; full || !fits {
		if n.other.Load() == nil {
			n.other.Store(n.make(Other))
		}
		n.full.Store(full)
		return n.other.Load()
	}
	name = strings.Clone(name) // name may be a piece of something large
	v := n.make(name)
	n.known.Store(name, v)
	n.len++
	return v
}

// all calls f with each, including the one for all others.
func (n *names[T]) all(f func(*T)) {
	n.known.Range(func(_, v any) bool { f(v.(*T)); return true })
	if v := n.other.Load(); v != nil {
		f(v)
	}
}

// pair is the key of a call's counters.
type pair struct{ dependency, operation string }

// calls finds the counters of a dependency and an operation in one lookup.
type calls struct {
	// near has some of pairs. They are found by the first and last bytes of the names instead of a
	// hash of all bytes. The first pair at a place keeps it.
	near         [64]atomic.Pointer[operation]
	pairs        sync.Map // pair to *operation
	dependencies *names[dependency]
}

func (c *calls) get(dependency, op string) *operation {
	// Equal names are most often the same strings, whose comparison is fast.
	place := &c.near[place(dependency, op)]
	if o := place.Load(); o != nil && o.dependency.label == dependency && o.label == op {
		return o
	}
	if o, ok := c.pairs.Load(pair{dependency, op}); ok {
		return o.(*operation)
	}
	o := c.add(dependency, op)
	if o.dependency.label == dependency && o.label == op {
		place.CompareAndSwap(nil, o)
	}
	return o
}

func place(dependency, op string) uint8 {
	h := uint8(len(dependency)) + 7*uint8(len(op))
	if n := len(dependency); n > 0 {
		h += 31 * dependency[n-1]
	}
	if n := len(op); n > 0 {
		h += 5*op[0] + 13*op[n-1]
	}
	return h % 64
}

func (c *calls) add(dependency, op string) *operation {
	d := c.dependencies.get(dependency)
	o := d.operations.get(op)
	if d.label != dependency || o.label != op {
		return o // the one for all others: it may have any number of names
	}
	c.pairs.Store(pair{d.label, o.label}, o)
	return o
}

// dependency has the counters of one dependency, over all its operations.
type dependency struct {
	label         string
	operations    *names[operation]
	failures      *names[tally] // of attempts, by code
	hints         [hints]atomic.Int64
	reasons       [maxReasons]atomic.Int64 // of calls that failed
	denied        atomic.Int64             // retries and hedges that the budget did not pay for
	hedges        atomic.Int64             // started
	hedgesRefused [maxReasons]atomic.Int64
	changes       *names[change] // of the breaker, by their text
	hintUntil     atomic.Int64   // the latest time until which the server asked to wait, since Telemetry.began; zero: it never did
	span          string         // the name of one
	observe       []metric.ObserveOption
	record        []metric.RecordOption
}

// maxReasons is more than lull's number of reasons.
const maxReasons = 32

// A tally counts by one more label.
type tally struct {
	atomic.Int64
	label string
}

func newTally(label string) *tally { return &tally{label: label} }

func newDependency(label string, l Limits) *dependency {
	d := &dependency{label: label, span: spanName(label)}
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String(keyDependency, label)))
	d.operations = newNames(l.Operations, func(op string) *operation { return newOperation(d, op) })
	d.failures = newNames(l.Codes, newTally)
	d.changes = newNames(maxChanges, newChange)
	d.observe, d.record = []metric.ObserveOption{set}, []metric.RecordOption{set}
	return d
}

// operation has the counters of one operation of a dependency. They are this package's own, and are
// read when metrics are collected: adding to an instrument of the SDK takes 120 ns, to one of these
// 5.
type operation struct {
	held    [2]atomic.Int64        // nanoseconds of calls that ended, in attempts and in waits
	ended   [outcomes]atomic.Int64 // calls that made attempts
	refused [outcomes]atomic.Int64 // calls that made none
	resends atomic.Int64           // attempts beyond the first

	label      string
	span       string // the name of one
	dependency *dependency
	took       [outcomes][]metric.RecordOption
	attempt    [2][]metric.RecordOption // first, resent
}

func newOperation(d *dependency, label string) *operation {
	o := &operation{label: label, dependency: d, span: spanName(d.label, label)}
	for i := range o.took {
		o.took[i] = []metric.RecordOption{metric.WithAttributeSet(o.with(attribute.String(keyOutcome, Outcome(i).String())))}
	}
	for i := range o.attempt {
		o.attempt[i] = []metric.RecordOption{metric.WithAttributeSet(o.with(attribute.Bool(keyResend, i > 0)))}
	}
	return o
}

func (o *operation) with(more ...attribute.KeyValue) attribute.Set {
	all := append(make([]attribute.KeyValue, 0, 5), attribute.String(keyDependency, o.dependency.label))
	if o.label != "" {
		all = append(all, attribute.String(keyOperation, o.label))
	}
	return attribute.NewSet(append(all, more...)...)
}

// index returns r as an index into counters by reason.
func index[R ~uint8](r R) int { return min(int(r), maxReasons-1) }
