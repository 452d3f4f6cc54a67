package lulltest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Rule is a condition and a fault. All parts of the condition must hold; what is zero
// always holds. The zero Rule holds for every request and does nothing to it: put before
// others, with a condition, it is an exception from them.
type Rule struct {
	// On is a pattern of [http.ServeMux]: "POST /payments", "/orders/{id}", "api.example.com/".
	On string
	// When reports whether the rule holds for a request. Its body must not be read. It may be
	// called by several goroutines.
	When func(*http.Request) bool
	// First is how many attempts of each call the rule holds for. Of two rules with First 1
	// and First 2, the second gets the second attempt.
	First int
	// Every n holds for every nth request of those for which the conditions above hold: for
	// the nth, the 2nth and so on.
	Every int
	// Chance is the probability that the rule holds, if all else does: above 0 and at most 1.
	Chance float64

	// Delay is waited for before anything else happens, also before the request is passed on.
	Delay time.Duration
	// Status is the status of an answer, 200 to 999, that takes the place of the transport or
	// handler behind this one, which does not see the request.
	Status int
	// Body is the body of the answer that Status makes.
	Body string
	// Header is set on the answer. A field without values is removed from it.
	Header http.Header
	// PerByte is how long each byte of the answer's body takes.
	PerByte time.Duration
	// End is how the exchange ends.
	End End
	// Where is the place at which a Reset, a Close or a Hang ends the answer.
	Where Where
	// Bytes is how much of the body arrives before the end, if Where is InBody. Of a shorter
	// body all arrives, and its end does not.
	Bytes int
}

// An End is how an exchange ends.
type End uint8

const (
	// Answer: with the whole answer.
	Answer End = iota
	// Refuse: no connection is made. A handler resets it before the header.
	Refuse
	// Reset: the connection is reset.
	Reset
	// Close: the connection is closed in good order, but too early.
	Close
	// Hang: nothing more arrives until the caller gives up (its context ends, or it closes the body).
	Hang
)

func (e End) String() string { return nameOf(int(e), "Answer", "Refuse", "Reset", "Close", "Hang") }

// A Where is a place in an answer.
type Where uint8

const (
	// BeforeHeader: nothing of the answer arrives.
	BeforeHeader Where = iota
	// InHeader: a part of its header arrives. Over HTTP/2 it is the same as BeforeHeader.
	InHeader
	// InBody: its header and Rule.Bytes of the body arrive. An answer that has no body (to
	// HEAD, and with the status 204 or 304) ends with its header, and arrives whole.
	InBody
)

func (w Where) String() string { return nameOf(int(w), "BeforeHeader", "InHeader", "InBody") }

func nameOf(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%d (want %s)", i, strings.Join(names, ", "))
}

// Validate reports every mistake in the rules. A Faults with one carries no request: its
// transport returns this error, and its handler answers 500 with it.
func (f *Faults) Validate() error {
	var problems []error
	for i, r := range f.Rules {
		for _, p := range r.problems() {
			problems = append(problems, fmt.Errorf("lulltest: Rules[%d].%s", i, p))
		}
	}
	return errors.Join(problems...)
}

func (r *Rule) problems() (found []string) {
	bad := func(is bool, format string, args ...any) {
		if is {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	if _, err := r.mux(); err != nil {
		bad(true, "On: %v", err)
	}
	bad(r.First < 0, "First: %d: want 0 (all attempts) or more", r.First)
	bad(r.Every < 0, "Every: %d: want 0 (all requests) or more", r.Every)
	bad(!(r.Chance >= 0 && r.Chance <= 1), "Chance: %v: want a probability from 0 (always) to 1", r.Chance)
	bad(r.Delay < 0, "Delay: %v: want 0 or more", r.Delay)
	bad(r.PerByte < 0, "PerByte: %v: want 0 or more", r.PerByte)
	bad(r.Status != 0 && (r.Status < 200 || r.Status > 999), "Status: %d: want 0 (pass the request on), or 200 to 999", r.Status)
	bad(r.Body != "" && r.Status == 0, "Body: %q: want it together with Status", r.Body)
	bad(r.End > Hang, "End: %v", r.End)
	bad(r.Where > InBody, "Where: %v", r.Where)
	bad(r.Where != BeforeHeader && (r.End == Answer || r.End == Refuse), "Where: %v: want it together with End Reset, Close or Hang; End is %v", r.Where, r.End)
	bad(r.Bytes < 0, "Bytes: %d: want 0 or more", r.Bytes)
	bad(r.Bytes > 0 && r.Where != InBody, "Bytes: %d: want it together with Where InBody", r.Bytes)
	answers := r.End == Answer || r.Where == InBody
	bad(r.Header != nil && !answers, "Header: want it together with an answer that has one; End is %v, and Where is %v", r.End, r.Where)
	bad(r.PerByte > 0 && !answers, "PerByte: %v: want it together with an answer that has a body; End is %v, and Where is %v", r.PerByte, r.End, r.Where)
	bad(r.End == Refuse && r.Status != 0, "Status: %d: a refused connection has none", r.Status)
	return found
}

// mux returns a ServeMux that knows the pattern alone, or nil if there is none.
func (r *Rule) mux() (m *http.ServeMux, err error) {
	if r.On == "" {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v: want a pattern of http.ServeMux, such as GET /orders/{id}", p)
		}
	}()
	m = http.NewServeMux()
	m.Handle(r.On, http.NotFoundHandler()) // panics at a pattern that it does not take
	return m, nil
}

// changesBody reports whether the body of the answer is not passed on as it is.
func (r *Rule) changesBody() bool { return r.PerByte > 0 || r.Where == InBody }

// hasBody reports whether an answer has a body.
func hasBody(method string, status int) bool {
	return method != http.MethodHead && status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// setHeader sets the header of the rule on that of an answer.
func (r *Rule) setHeader(h http.Header) {
	for k, v := range r.Header {
		if k = http.CanonicalHeaderKey(k); len(v) == 0 {
			h.Del(k)
		} else {
			h[k] = append([]string(nil), v...)
		}
	}
}
