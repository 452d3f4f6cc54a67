package status

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
)

const (
	slotWidth = 5 * time.Second
	slots     = int64(time.Minute / slotWidth)
	maxErrors = 8               // of a dependency; each has another code or operation
	maxText   = 300             // bytes of an error's text
	textEvery = time.Second / 2 // the text of such an error is made so often at most
)

// A tally has what happened to a dependency lately, in constant memory.
type tally struct {
	mu        sync.Mutex
	counts    *[slots]slot // nil: nothing has failed
	errors    []failure
	change    breaker.Change // the latest of the circuit
	changedAt time.Duration  // zero: never
}

// A slot has the counts of a part of the last minute, by reason.
type slot struct {
	tick                       int64
	calls, unattempted, hedges [engine.Reasons]uint32
}

// A failure is the latest failed attempt of an operation with a code. Its text may be that of an earlier one, by textEvery.
type failure struct {
	Code      string  `json:"code"`
	Kind      string  `json:"kind"`
	Operation string  `json:"operation,omitempty"`
	Attempt   int     `json:"attempt"`
	Text      string  `json:"text"`
	Ago       float64 `json:"ago"` // set when it is read
	Times     int64   `json:"times"`

	at, textAt time.Duration
}

// Observe implements event.Observer.
func (p *Page) Observe(_ context.Context, e lull.Event) {
	p.init()
	name := key(e.Dependency)
	if e.Kind == event.CallEnded && e.Reason == engine.Success && e.Attempt == 1 {
		if p.tallies.Len() < maxTallies { // else it would take the place of one that has failed
			p.tallies.Get(name)
		}
		return
	}
	t := p.tallies.Get(name)
	now := max(time.Since(p.began), 1)
	t.mu.Lock()
	switch {
	case e.Kind == event.CircuitChanged && e.Circuit != nil:
		t.change, t.changedAt = *e.Circuit, now
	case e.Kind == event.HedgeRefused:
		t.slot(now).hedges[e.Reason]++
	case e.Kind == event.CallEnded && e.Reason != engine.Success:
		s := t.slot(now)
		s.calls[e.Reason]++
		if e.Attempt == 0 {
			s.unattempted[e.Reason]++
		}
	}
	failed := e.EndedAttempt > 0 && e.Verdict.Kind != lull.KindSuccess && e.Reason != engine.Canceled
	fresh := failed && t.again(key(e.Verdict.Code), key(e.Operation), now)
	t.mu.Unlock()
	if failed && !fresh {
		t.failed(now, &e)
	}
}

// key returns the name under which something is counted and shown: valid UTF-8, since JSON has no other and a browser
// sends no other. What is too long ends with a hash, so that two names have two keys.
func key(name string) string {
	if len(name) > maxName {
		sum := fnv.New32a()
		io.WriteString(sum, name)
		return fmt.Sprintf("%s%08x", clip(name, maxName-8), sum.Sum32())
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// slot returns the slot of the time. The lock is held.
func (t *tally) slot(now time.Duration) *slot {
	if t.counts == nil {
		t.counts = new([slots]slot)
	}
	tick := int64(now / slotWidth)
	s := &t.counts[tick%slots]
	if s.tick < tick {
		*s = slot{tick: tick}
	}
	return s
}

// again counts a failure of which a text was made just now, and reports that. The lock is held.
func (t *tally) again(code, operation string, now time.Duration) bool {
	i := t.find(code, operation)
	if i < 0 || now-t.errors[i].textAt >= textEvery {
		return false
	}
	t.errors[i].at = now
	t.errors[i].Times++
	return true
}

// failed records a failed attempt. It makes the text without the lock, since that is the code of others.
func (t *tally) failed(now time.Duration, e *lull.Event) {
	f := failure{Code: strings.Clone(key(e.Verdict.Code)), Kind: e.Verdict.Kind.String(), Operation: strings.Clone(key(e.Operation)), Attempt: e.EndedAttempt, Times: 1, at: now, textAt: now}
	if e.Err != nil {
		f.Text = clip(e.Err.Error(), maxText)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(f.Code, f.Operation)
	switch {
	case i >= 0:
		f.Times += t.errors[i].Times
	case len(t.errors) < maxErrors:
		t.errors = append(t.errors, failure{})
		i = len(t.errors) - 1
	default:
		oldest := slices.MinFunc(t.errors, func(a, b failure) int { return int(a.at - b.at) })
		i = t.find(oldest.Code, oldest.Operation)
	}
	t.errors[i] = f
}

// find returns a place in errors, or -1.
func (t *tally) find(code, operation string) int {
	return slices.IndexFunc(t.errors, func(f failure) bool { return f.Code == code && f.Operation == operation })
}

// clip returns a copy of a text that is valid UTF-8, with an ellipsis for what is longer than max bytes.
func clip(text string, max int) string {
	if len(text) <= max {
		return strings.ToValidUTF8(strings.Clone(text), "?")
	}
	return strings.ToValidUTF8(strings.Clone(text[:max]), "") + "…"
}
