package codec

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/tree"
)

// A Member is a field of a struct, with its name in files.
type Member struct {
	Key   string // in a file
	Name  string // in Go
	Index []int
	Form  Form
}

// A Form is a way to write a number or a duration, in addition to the plain one.
type Form uint8

const (
	Plain   Form = iota
	Share        // also as a percentage, and only so above 1
	Timeout      // also as "none"
	Delay        // also as "at-once"
)

// Word returns the text that stands for a negative duration in the form; empty if there is none.
func (f Form) Word() string { return words[f].text }

// words are texts that stand for negative durations in Go.
var words = map[Form]struct {
	text  string
	value time.Duration
}{
	Timeout: {"none", lull.NoTimeout},
	Delay:   {"at-once", hedge.AtOnce},
}

var forms = map[reflect.Type]map[string]Form{
	reflect.TypeFor[lull.Policy]():    {"AttemptTimeout": Timeout, "Deadline": Timeout},
	reflect.TypeFor[budget.Config]():  {"Ratio": Share},
	reflect.TypeFor[breaker.Config](): {"FailureRate": Share, "SlowRate": Share, "OpenJitter": Share},
	reflect.TypeFor[hedge.Config]():   {"Delay": Delay, "Percentile": Share, "Share": Share},
}

// Kinds are the facts about types that their fields do not show.
type Kinds struct {
	// Forms are the fields whose form is not Plain, by type.
	Forms map[reflect.Type]map[string]Form
	// Keyed are the types whose values have their name as the key in a file, so that Name is no field there.
	Keyed []reflect.Type
	// Custom are the types that are not read or written field by field.
	Custom map[reflect.Type]Custom
}

// A Custom is a type that has a way of its own to stand in a file. A nil function is none.
type Custom struct {
	// Read reads n, and reports whether it could: false is for the usual way.
	Read func(r *Reader, n *tree.Node, v reflect.Value, path string) bool
	// Write is the inverse of Read. Nil is for the usual way.
	Write func(w *Writer, v reflect.Value, path string) *tree.Node
	// Whole: assignments name the value as a whole, and not its fields.
	Whole bool
	// Words are the texts of the values of an unsigned type, from the one after zero; nothing is written for zero.
	Words []string
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	policyType   = reflect.TypeFor[lull.Policy]()

	keyed   = map[reflect.Type]bool{}
	customs = map[reflect.Type]Custom{}
)

// IsKeyed reports whether a value of type t has its name as the key in a file.
func IsKeyed(t reflect.Type) bool { return keyed[t] }

// Register adds k. It is called before anything is read, by the init functions of packages with files of their own.
func Register(k Kinds) {
	for t, f := range k.Forms {
		for name := range f {
			if _, ok := t.FieldByName(name); !ok {
				panic(fmt.Sprintf("codec: %v has no field %s", t, name))
			}
		}
		forms[t] = f
	}
	for _, t := range k.Keyed {
		keyed[t] = true
	}
	for t, c := range k.Custom {
		customs[t] = c
	}
}

// Members are the exported fields of the struct type t, in their order. The fields of a Policy are
// listed among those of the struct that has it.
func Members(t reflect.Type) []Member {
	if all, ok := membersOf.Load(t); ok {
		return all.([]Member)
	}
	var all []Member
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported() || f.Name == "Name" && keyed[t]:
		case f.Type == policyType:
			for _, m := range Members(f.Type) {
				all = append(all, Member{m.Key, m.Name, append([]int{i}, m.Index...), m.Form})
			}
		default:
			all = append(all, Member{Path(f.Name), f.Name, []int{i}, forms[t][f.Name]})
		}
	}
	membersOf.Store(t, all)
	return all
}

var membersOf sync.Map

// Find returns the member called key; if there is none, all the keys.
func Find(t reflect.Type, key string) (Member, bool, []string) {
	var keys []string
	for _, m := range Members(t) {
		if m.Key == key {
			return m, true, nil
		}
		keys = append(keys, m.Key)
	}
	return Member{}, false, keys
}
