package torture

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

// An Event is a line of the time line of a case.
type Event struct {
	At   time.Duration `json:"at"` // since the case began
	Call int           `json:"call"`
	Text string        `json:"text"`
}

// An Attempt is a request that has arrived.
type Attempt struct {
	Call    int // which call it belongs to
	Number  int // 1 is the first attempt of the call
	Conn    int // which connection it came on, in the order in which they were accepted
	Arrived time.Duration
	// Answered is when the answer began. Zero if there was none yet.
	Answered time.Duration
	// NotBefore is the earliest time for the next attempt that the server has asked for. Zero
	// if it has asked for none.
	NotBefore time.Duration
	// Gone is when the client left, if that was before the answer. Zero if it did not.
	Gone   time.Duration
	Method string
	Proto  string
	Header http.Header
	Status int    // of the answer; 0 if there was none
	Good   bool   // the answer was a 2xx without a fault
	Length int64  // bytes of the body that were read
	Sum    string // of those bytes
	Whole  bool   // the body was read to its end
}

func (a Attempt) open() bool { return a.Answered == 0 && a.Gone == 0 }

// A Finished is what the client reported about a call.
type Finished struct {
	Call       int
	Start, End time.Duration
	OK         bool
	Status     int    // if the client reported one
	Text       string // its error
	Ended      string // why torture ended the client; empty if the call ended by itself
}

// why is what the client reported of a call that failed.
func (f Finished) why() string {
	switch {
	case f.Ended != "":
		return f.Ended
	case f.Text == "" && f.Status > 0:
		return fmt.Sprintf("status %d", f.Status)
	}
	return words.Short(f.Text)
}

// traits are what a client claims to do. They are found out first: a client does not fail a case about what it does not claim.
type traits struct {
	retries bool // it repeats a GET that got 503
	hints   bool // it obeys a Retry-After in seconds
	atOnce  bool // its first retry follows at once
	hedges  bool // it sends a second request beside one that is slow
}

// traitCases show the traits. The verdicts of the cases that asked returns depend on the trait.
var traitCases = []struct {
	name  string
	trait func(*traits) *bool
	shows func(*Seen) bool
	asked func(Case) bool // nil: of all
}{
	{"status-503", func(t *traits) *bool { return &t.retries }, func(s *Seen) bool { return len(s.first()) > 1 }, nil},
	{"hint-seconds-503", func(t *traits) *bool { return &t.hints }, obeyed, func(c Case) bool { return c.Group == "hints" || c.Group == "deadlines" }},
	{"hedge-get", func(t *traits) *bool { return &t.hedges }, hedged, func(c Case) bool { return c.Group == "waits" || c.Group == "hedging" }},
	{"wait-first", func(t *traits) *bool { return &t.atOnce }, instantly, func(c Case) bool {
		return c.Group == "waits" || c.Group == "hedging" || c.Name == "hint-overflow"
	}},
}

// with returns t with the trait that the case of that name is for, unless the case was seen and does not show it.
func (t traits) with(name string, s *Seen) traits {
	for _, b := range traitCases {
		if b.name == name && (s == nil || b.shows(s)) {
			*b.trait(&t) = true
		}
	}
	return t
}

// Seen is all that was recorded in a case.
type Seen struct {
	Case     Case
	Attempts []Attempt
	Finished []Finished
	Accepted int // connections
	Flood    bool
	Took     time.Duration
	// Late shows how busy the machine was: nine of ten timers were less late than this.
	Late      time.Duration
	NoVerdict string // why there is no verdict; empty if there is one
	notGraded bool   // the reason is not the client
	died      string // how the client ended by itself in the midst of the case; empty if it did not
	traits
	Proto2 bool // a request came by HTTP/2
}

func (s *Seen) of(call int) (list []Attempt) {
	for _, a := range s.Attempts {
		if a.Call == call {
			list = append(list, a)
		}
	}
	return list
}

func (s *Seen) first() []Attempt { return s.of(0) }

type log struct {
	began time.Time

	mu             sync.Mutex
	events         []Event
	dropped        int
	attempts       []Attempt
	numbers        map[int]int
	carried        map[int]bool // connections that an attempt came on
	arrived        int
	accepted       int
	proto2         bool
	onFirstContact func() // called when the first connection or request comes; may be nil
	onFlood        func() // called once there are more than most attempts
	floodLimit     int
	flooded        bool
}

const (
	mostEvents   = 400    // of a time line
	mostAttempts = 20_000 // that are kept
)

func newLog(most int, flood func()) *log {
	return &log{began: time.Now(), numbers: map[int]int{}, carried: map[int]bool{}, floodLimit: most, onFlood: flood}
}

func (l *log) now() time.Duration { return time.Since(l.began) }

func (l *log) note(call int, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(call, format, args...)
}

func (l *log) noteLocked(call int, format string, args ...any) {
	if len(l.events) >= mostEvents {
		l.dropped++
		return
	}
	l.events = append(l.events, Event{l.now(), call, fmt.Sprintf(format, args...)})
}

// arrive records an attempt and returns its index, its number, and whether its connection had
// carried another. The index is -1 if there are too many to keep.
func (l *log) arrive(a Attempt) (index, number int, reused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.firstContact()
	l.arrived++
	if l.arrived > l.floodLimit && !l.flooded {
		l.flooded = true
		l.onFlood()
	}
	reused = l.carried[a.Conn]
	a.Number = l.numbers[a.Call] + 1
	if len(l.attempts) < mostAttempts { // the maps are bounded, too
		l.carried[a.Conn] = true
		l.numbers[a.Call] = a.Number
	}
	a.Arrived = l.now()
	if len(l.attempts) >= mostAttempts {
		return -1, a.Number, reused
	}
	l.attempts = append(l.attempts, a)
	l.noteLocked(a.Call, "attempt %d arrives: %s over %s on connection %d", a.Number, a.Method, a.Proto, a.Conn)
	return len(l.attempts) - 1, a.Number, reused
}

// firstContact is called with each connection and request, with l.mu held.
func (l *log) firstContact() {
	if l.onFirstContact != nil {
		l.onFirstContact()
		l.onFirstContact = nil
	}
}

func (l *log) update(index int, by func(*Attempt)) {
	if index < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	by(&l.attempts[index])
}

func (l *log) hasOpenAttempt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.attempts, Attempt.open)
}

func (l *log) seen(c Case) (*Seen, []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := slices.Clone(l.events)
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.At - b.At) })
	if l.dropped > 0 {
		events = append(events, Event{l.now(), 0, fmt.Sprintf("and %d more events", l.dropped)})
	}
	return &Seen{Case: c, Attempts: slices.Clone(l.attempts), Accepted: l.accepted, Flood: l.flooded, Proto2: l.proto2, Took: l.now()}, events
}
