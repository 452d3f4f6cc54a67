package lullotel

import (
	"cmp"
	"maps"
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

// table finds entries without a lock. New entries are found with one, until they have been looked
// up as often as there are entries in the table, or as many have been added. Then the map is
// replaced. So the cost of copying stays bounded for each lookup, however large the table is.
type table[K comparable, V any] struct {
	old    atomic.Pointer[map[K]*V] // never written to
	mu     sync.Mutex               // held by callers of the methods below find
	fresh  map[K]*V                 // the entries that old lacks
	misses int
}

func (t *table[K, V]) find(key K) *V {
	if m := t.old.Load(); m != nil {
		return (*m)[key]
	}
	return nil
}

func (t *table[K, V]) findNew(key K) *V {
	if v := t.find(key); v != nil {
		return v
	}
	v := t.fresh[key]
	if v != nil {
		t.countMiss()
	}
	return v
}

func (t *table[K, V]) add(key K, v *V) {
	if t.fresh == nil {
		t.fresh = make(map[K]*V)
	}
	t.fresh[key] = v
	t.countMiss()
}

func (t *table[K, V]) len() int {
	if m := t.old.Load(); m != nil {
		return len(*m) + len(t.fresh)
	}
	return len(t.fresh)
}

func (t *table[K, V]) countMiss() {
	if t.misses++; t.misses >= t.len() {
		t.settle()
	}
}

// settle moves all entries to old.
func (t *table[K, V]) settle() map[K]*V {
	m := t.old.Load()
	if m != nil && len(t.fresh) == 0 {
		return *m
	}
	all := make(map[K]*V, t.len())
	if m != nil {
		maps.Copy(all, *m)
	}
	maps.Copy(all, t.fresh)
	t.old.Store(&all)
	t.fresh, t.misses = nil, 0
	return all
}

// names is a bounded set of things with names.
type names[T any] struct {
	max   int
	make  func(label string) *T
	table table[string, T]
	full  atomic.Bool // all are found without a lock, and there will be no more
	other atomic.Pointer[T]
}

func newNames[T any](most int, make func(string) *T) *names[T] {
	return &names[T]{max: most, make: make}
}

// get returns the thing with the name. It makes it if there is room; else it returns the one for
// all others.
func (n *names[T]) get(name string) *T {
	if v := n.table.find(name); v != nil {
		return v
	}
	return n.add(name)
}

func (n *names[T]) add(name string) *T {
	fits := name != Other && len(name) <= longest && utf8.ValidString(name)
	t := &n.table
	if v := n.other.Load(); v != nil && (!fits || n.full.Load()) {
		if known := t.find(name); known != nil { // since
			return known
		}
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.findNew(name); v != nil {
		return v
	}
	if full := t.len() >= n.max; full || !fits {
		if n.other.Load() == nil {
			n.other.Store(n.make(Other))
		}
		if full {
			t.settle()
			n.full.Store(true)
		}
		return n.other.Load()
	}
	name = strings.Clone(name) // name may be a piece of something large
	v := n.make(name)
	t.add(name, v)
	return v
}

// all calls f with each, including the one for all others.
func (n *names[T]) all(f func(*T)) {
	n.table.mu.Lock()
	all := n.table.settle()
	n.table.mu.Unlock()
	for _, v := range all {
		f(v)
	}
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
	pairs        table[pair, operation]
	dependencies *names[dependency]
}

func newCalls(l Limits) *calls {
	return &calls{dependencies: newNames(l.Dependencies, func(label string) *dependency { return newDependency(label, l) })}
}

func (c *calls) get(dependency, op string) *operation {
	// Equal names are most often the same strings, whose comparison is fast.
	place := &c.near[place(dependency, op)]
	if o := place.Load(); o != nil && o.dependency.label == dependency && o.label == op {
		return o
	}
	if o := c.pairs.find(pair{dependency, op}); o != nil {
		return o
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
	c.pairs.mu.Lock()
	defer c.pairs.mu.Unlock()
	if key := (pair{d.label, o.label}); c.pairs.findNew(key) == nil {
		c.pairs.add(key, o)
	}
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

// with returns the operation's label set, and more.
func (o *operation) with(more ...attribute.KeyValue) attribute.Set {
	all := append(make([]attribute.KeyValue, 0, 5), attribute.String(keyDependency, o.dependency.label))
	if o.label != "" {
		all = append(all, attribute.String(keyOperation, o.label))
	}
	return attribute.NewSet(append(all, more...)...)
}

// index returns r as an index into counters by reason.
func index[R ~uint8](r R) int { return min(int(r), maxReasons-1) }
