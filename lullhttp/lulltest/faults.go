package lulltest

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Faults makes requests fail by its rules, and records all that it sees. The zero value lets
// everything pass. Its methods may be used concurrently; its fields must not be changed after
// the first request. It must not be copied.
type Faults struct {
	// Rules are asked in their order. The first whose condition holds is carried out.
	Rules []Rule
	// Seed is that of all draws (Rule.Chance). The same seed gives the same draws.
	Seed uint64
	// Call names the call that a request belongs to. Requests with the same name are its
	// attempts. If it is nil, the name is the method, the URL and the Idempotency-Key. It must not
	// read the body, and may be called by several goroutines.
	Call func(*http.Request) string

	once     sync.Once
	err      error            // of Validate
	patterns []*http.ServeMux // of the rules; nil for one without On

	mu       sync.Mutex // guards what follows
	attempts []Attempt
	numbers  map[string]int // how many attempts each call has had
	matched  []int          // for each rule, how many requests reached Every
}

// An Attempt is a request that arrived.
type Attempt struct {
	At     time.Time // when it arrived
	Method string
	URL    string // as the client has it; at a handler the path and the query
	Header http.Header
	Body   []byte // as far as it arrived
	Call   string // the name of its call: see Faults.Call
	Number int    // which attempt of its call it is; the first is 1
	Rule   int    // the index of the rule that was carried out, or -1
}

// Attempts returns what has arrived until now, in the order of arrival.
func (f *Faults) Attempts() []Attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.attempts)
}

// compile compiles the rules, once, and returns what is wrong with them.
func (f *Faults) compile() error {
	f.once.Do(func() {
		if f.err = f.Validate(); f.err != nil {
			return
		}
		for _, r := range f.Rules {
			m, _ := r.mux()
			f.patterns = append(f.patterns, m)
		}
		f.matched = make([]int, len(f.Rules))
		f.numbers = make(map[string]int)
	})
	return f.err
}

// recordAttempt records a request, and returns its place in the record and the rule for it.
func (f *Faults) recordAttempt(r *http.Request) (index int, rule *Rule) {
	now := time.Now()
	call := f.callOf(r)
	holds := make([]bool, len(f.Rules)) // the conditions that need no lock: When is the user's
	for i := range f.Rules {
		holds[i] = f.matches(i, r)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.numbers[call]++
	a := Attempt{At: now, Method: cmp.Or(r.Method, http.MethodGet), URL: r.URL.String(), Header: r.Header.Clone(), Call: call, Number: f.numbers[call], Rule: -1}
	rule = new(Rule)
	for i := range f.Rules {
		if holds[i] && f.applies(i, a) {
			a.Rule, rule = i, &f.Rules[i]
			break
		}
	}
	f.attempts = append(f.attempts, a)
	return len(f.attempts) - 1, rule
}

// readBody reads a body to its end, and records it.
func (f *Faults) readBody(index int, body io.Reader) ([]byte, error) {
	if body == nil || body == http.NoBody {
		return nil, nil
	}
	b, err := io.ReadAll(body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts[index].Body = slices.Clone(b)
	return b, err
}

func (f *Faults) callOf(r *http.Request) string {
	if f.Call != nil {
		return f.Call(r)
	}
	name := cmp.Or(r.Method, http.MethodGet) + " " + cmp.Or(r.Host, r.URL.Host) + r.URL.RequestURI()
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		name += " " + key
	}
	return name
}

// matches reports whether On and When hold.
func (f *Faults) matches(i int, r *http.Request) bool {
	if m := f.patterns[i]; m != nil {
		u := r.URL
		if u.Path == "" {
			u = &url.URL{Path: "/"}
		}
		_, pattern := m.Handler(&http.Request{Method: cmp.Or(r.Method, http.MethodGet), URL: u, Host: cmp.Or(r.Host, r.URL.Host)})
		if pattern == "" {
			return false
		}
	}
	when := f.Rules[i].When
	return when == nil || when(r)
}

// applies reports whether the rest of a rule's condition holds. Its callers hold the lock.
func (f *Faults) applies(i int, a Attempt) bool {
	r := &f.Rules[i]
	if r.First > 0 && a.Number > r.First {
		return false
	}
	if r.Every > 0 {
		f.matched[i]++
		if f.matched[i]%r.Every != 0 {
			return false
		}
	}
	return r.Chance == 0 || f.draw(i, a) < r.Chance
}

// draw returns a number from 0 to 1, without 1.
func (f *Faults) draw(i int, a Attempt) float64 {
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], f.Seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(i))
	binary.LittleEndian.PutUint64(b[16:], uint64(a.Number))
	h.Write(b[:])
	io.WriteString(h, a.Call)
	x := h.Sum64() // whose high bits a short text hardly reaches: mixed, as SplitMix64 does it
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
