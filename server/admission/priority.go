package admission

import (
	"fmt"
	"net/http"

	"github.com/lullgo/lull/internal/choice"
)

// Priority is how much it matters that a request is served: the four levels of
// criticality of the SRE book (chapter 21). More matters more. The zero value is
// Critical.
type Priority int8

const (
	// Sheddable: may often be refused, and sometimes for long.
	Sheddable Priority = iota - 2
	// SheddablePlus: may be refused now and then. Work that is repeated later
	// anyway, such as batches.
	SheddablePlus
	// Critical: users would notice. The default.
	Critical
	// CriticalPlus: users would be hurt. Use it seldom, or it means nothing.
	CriticalPlus
)

const priorities = int(CriticalPlus-Sheddable) + 1

var priorityNames = []string{"sheddable", "sheddable-plus", "critical", "critical-plus"}

// index returns the priority as a number from 0. A value out of range counts as the
// nearest priority.
func (p Priority) index() int { return int(min(max(p, Sheddable), CriticalPlus) - Sheddable) }

// String returns the priority as in a header, such as "sheddable-plus".
func (p Priority) String() string {
	if p < Sheddable || p > CriticalPlus {
		return fmt.Sprintf("priority(%d)", int8(p))
	}
	return priorityNames[p.index()]
}

// MarshalText returns String, or an error if there is no such priority.
func (p Priority) MarshalText() ([]byte, error) {
	return choice.Marshal("Priority", priorityNames, uint8(p-Sheddable))
}

// UnmarshalText reads what MarshalText writes, in any case.
func (p *Priority) UnmarshalText(text []byte) error {
	var i uint8
	if err := choice.Unmarshal("Priority", priorityNames, &i, text); err != nil {
		return err
	}
	*p = Sheddable + Priority(i)
	return nil
}

// AttemptKind is the kind of an attempt within its call. Of equal priority, first attempts go
// before retries, and retries before hedges.
type AttemptKind uint8

const (
	// First attempt of its call.
	First AttemptKind = iota
	// Retry: an attempt before it has failed.
	Retry
	// Hedge: an attempt before it is still under way.
	Hedge
)

const classes = int(Hedge) + 1

var classNames = [...]string{"first", "retry", "hedge"}

// String returns the class in lower case, such as "retry".
func (c AttemptKind) String() string { return choice.Name("class", classNames[:], c) }

// HeaderCriticality is the request header with the Priority as text, such as
// "sheddable". (The header Priority of RFC 9218 is another thing: browsers send it
// unasked, to order the responses on one connection.)
const HeaderCriticality = "Lull-Criticality"

// PriorityOf returns the Priority in the first HeaderCriticality, or Critical if that is
// missing or unknown.
//
// The client chose it. A Middleware reads it only from those that [WithTrust] names.
func PriorityOf(h http.Header) Priority {
	var p Priority
	if v := h[HeaderCriticality]; len(v) > 0 && p.UnmarshalText([]byte(v[0])) != nil {
		return Critical
	}
	return p
}
