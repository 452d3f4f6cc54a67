package config

import (
	"reflect"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/admission"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config/internal/syntax"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/sim"
)

// A member is a field of a struct, with its name in files.
type member struct {
	key   string // in a file
	name  string // in Go
	index []int
	form  form
}

// A form is a way to write a number or a duration, in addition to the plain one.
type form uint8

const (
	plain   form = iota
	share        // also as a percentage, and only so above 1
	timeout      // also as "none"
	delay        // also as "at-once"
)

// words are texts that stand for negative durations in Go.
var words = map[form]struct {
	text  string
	value time.Duration
}{
	timeout: {"none", lull.NoTimeout},
	delay:   {"at-once", hedge.AtOnce},
}

// forms are the fields whose form is not plain.
var forms = map[reflect.Type]map[string]form{
	reflect.TypeFor[lull.Policy]():      {"AttemptTimeout": timeout, "Deadline": timeout},
	reflect.TypeFor[admission.Config](): {"MaxWait": timeout, "RetryRatio": share},
	reflect.TypeFor[budget.Config]():    {"Ratio": share},
	reflect.TypeFor[breaker.Config]():   {"FailureRate": share, "SlowRate": share, "OpenJitter": share},
	reflect.TypeFor[hedge.Config]():     {"Delay": delay, "Percentile": share, "Share": share},
	reflect.TypeFor[sim.Reload]():       {"Share": share},
	reflect.TypeFor[sim.Network]():      {"Loss": share, "LossBack": share},
	reflect.TypeFor[sim.Poison]():       {"Share": share},
	reflect.TypeFor[sim.Service]():      {"Errors": share},
	reflect.TypeFor[sim.Fault]():        {"Share": share},
	reflect.TypeFor[sim.Distribution](): {"Slow": share},
}

var (
	durationType     = reflect.TypeFor[time.Duration]()
	distributionType = reflect.TypeFor[sim.Distribution]()
	policyType       = reflect.TypeFor[lull.Policy]()
	edgeType         = reflect.TypeFor[Edge]()
	answerType       = reflect.TypeFor[Answer]()
)

// keyed are the types whose values have their name as the key in a file, so that Name is no field
// there.
var keyed = map[reflect.Type]bool{
	reflect.TypeFor[Dependency](): true,
	reflect.TypeFor[Operation]():  true,
	reflect.TypeFor[Service]():    true,
}

// members are the exported fields of the struct type t, in their order. The fields of a Policy are
// listed among those of the struct that has it.
func members(t reflect.Type) []member {
	if all, ok := membersOf.Load(t); ok {
		return all.([]member)
	}
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported() || f.Name == "Name" && keyed[t]:
		case f.Type == policyType:
			for _, m := range members(f.Type) {
				all = append(all, member{m.key, m.name, append([]int{i}, m.index...), m.form})
			}
		default:
			all = append(all, member{syntax.Path(f.Name), f.Name, []int{i}, forms[t][f.Name]})
		}
	}
	membersOf.Store(t, all)
	return all
}

// membersOf caches members by type.
var membersOf sync.Map

// find returns the member called key; if there is none, all the keys.
func find(t reflect.Type, key string) (member, bool, []string) {
	var keys []string
	for _, m := range members(t) {
		if m.key == key {
			return m, true, nil
		}
		keys = append(keys, m.key)
	}
	return member{}, false, keys
}
