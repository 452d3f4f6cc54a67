package config

import (
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/admission"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/sim"
)

// A member is a field of a struct as files name it.
type member struct {
	key   string // in a file
	name  string // in Go
	index []int
	form  form
}

// A form is how a number or a duration may be written besides plainly.
type form uint8

const (
	plain   form = iota
	share        // also as a percentage, and only so above 1
	timeout      // also as "none"
	delay        // also as "at-once"
)

// words are what a duration of some form can be besides one, for values that are negative
// in Go.
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

// keyed are the types whose values are under their names in a file: the name is no field
// there.
var keyed = map[reflect.Type]bool{
	reflect.TypeFor[Dependency](): true,
	reflect.TypeFor[Operation]():  true,
	reflect.TypeFor[Service]():    true,
}

// members are the exported fields of the struct type t, in their order. The fields of a
// Policy stand among those of what has one.
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
			all = append(all, member{snake(f.Name), f.Name, []int{i}, forms[t][f.Name]})
		}
	}
	membersOf.Store(t, all)
	return all
}

// membersOf are the members of the types that were asked for.
var membersOf sync.Map

// find is the member called key, and all the keys there are.
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

// snake is a Go name as files write it: AttemptTimeout is attempt_timeout.
func snake(name string) string {
	var b strings.Builder
	upper := true // the character before was an upper-case one
	for _, c := range name {
		if unicode.IsUpper(c) {
			if !upper {
				b.WriteByte('_')
			}
			c, upper = unicode.ToLower(c), true
		} else {
			upper = false
		}
		b.WriteRune(c)
	}
	return b.String()
}
