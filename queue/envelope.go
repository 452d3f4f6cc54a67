package queue

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/ascii"
	"github.com/lullgo/lull/internal/must"
)

// EnvelopeHeader is the name of the header in which a dead letter carries its
// [Envelope], on every broker. One header, because SQS takes no more than ten.
const EnvelopeHeader = "Lull-Dead-Letter"

// Limits of an encoded envelope, in bytes of its text. All that is longer is cut.
const (
	MaxEnvelope = 4096 // the whole

	maxLabel      = 64  // reason, code
	maxName       = 512 // source, original id
	maxTraceState = 512
	maxErrorText  = 1024
	maxErrors     = 8
)

// An Envelope holds why a message was dead-lettered, and what is known of it. It is the
// same on every broker.
type Envelope struct {
	// Reason is a label: a lull.Reason ("permanent", "attempts_exhausted", "deadline",
	// "hint_too_long"), ReasonCrashed, ReasonPanicked, or the handler's own
	// (DeadLetterAs). Never empty in a letter that a Consumer wrote.
	Reason string
	// Code is the classifier's name for the last failure, such as "connection_refused".
	Code string
	// Errors is the chain of the last error, from the outermost in. A text that
	// equals the one before is left out.
	Errors []string
	// Attempts is how many deliveries there were, except those that were lost while their
	// worker lived.
	Attempts int
	// FirstFailure and LastFailure are when the message failed. If the broker does not keep
	// the first, it is when the message was first handed out; zero if that is not known either.
	FirstFailure time.Time
	LastFailure  time.Time
	// Source is the name of the queue from which it comes.
	Source string
	// OriginalID is the id of the message when it was sent first. It stays the same
	// when it is redriven and fails again.
	OriginalID string
	// Redrives is how often it has been put back into its queue.
	Redrives int
	// TraceParent and TraceState are its trace context (W3C), from its headers.
	TraceParent string
	TraceState  string
}

// Reasons of dead letters beside those of lull.
const (
	// ReasonCrashed: its workers ended without a result, again and again, at last when they had no
	// other message in hand. Most likely it killed them.
	ReasonCrashed = "crashed"
	// ReasonPanicked: the handler panicked at the last attempt.
	ReasonPanicked = "panicked"
	// ReasonBroker: the broker dead-lettered it by itself. Adapters use it where they
	// find a dead letter without an envelope.
	ReasonBroker = "broker"
	// ReasonExpired: its own time is over (Delivery.Expires), or is over before it could come again.
	ReasonExpired = "expired"
	// ReasonTooLarge: the broker has no room for what a retry adds to the message (ErrTooLarge).
	ReasonTooLarge = "too_large"
)

// DeadLetterID is the id of a dead letter where the broker deduplicates. Its parts
// identify the message uniquely, and who gave it up if several consumers can: on NATS the
// stream, the consumer and the sequence. So a letter that is discarded as a duplicate was
// written before, by a call that was cut short. The same parts give the same id, others
// another. At most 128 printable ASCII characters.
func DeadLetterID(parts ...string) string { return uniqueID("dead", parts...) }

// uniqueID is short enough for every broker whatever the parts are: SQS takes 128
// characters.
func uniqueID(kind string, parts ...string) string {
	id := strings.Join(parts, "/")
	plain := len(id) <= 110 && strings.Count(id, "/") == len(parts)-1
	for i := 0; i < len(id) && plain; i++ {
		plain = id[i] > ' ' && id[i] <= '~'
	}
	if !plain {
		h := sha256.New()
		for _, p := range parts {
			fmt.Fprintf(h, "%d %s", len(p), p)
		}
		id = "sha256-" + hex.EncodeToString(h.Sum(nil))
	}
	return kind + "-" + id
}

type envelopeJSON struct {
	Version      int      `json:"v"`
	Reason       string   `json:"reason,omitempty"`
	Code         string   `json:"code,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	FirstFailure string   `json:"first,omitempty"`
	LastFailure  string   `json:"last,omitempty"`
	Source       string   `json:"source,omitempty"`
	OriginalID   string   `json:"id,omitempty"`
	Redrives     int      `json:"redrives,omitempty"`
	TraceParent  string   `json:"traceparent,omitempty"`
	TraceState   string   `json:"tracestate,omitempty"`
	Errors       []string `json:"errors,omitempty"`
}

// Encode is the envelope as the value of a header: JSON in printable ASCII, so that
// every broker takes it, of at most MaxEnvelope bytes. Texts that are too long are
// cut, errors first; an OriginalID that is too long ends in a hash, so that it is still
// no other's. Times are to the millisecond.
func (e *Envelope) Encode() string {
	w := envelopeJSON{
		Version: 1, Reason: clip(e.Reason, maxLabel), Code: clip(e.Code, maxLabel),
		Attempts: max(e.Attempts, 0), FirstFailure: stamp(e.FirstFailure), LastFailure: stamp(e.LastFailure),
		Source: clip(e.Source, maxName), OriginalID: clipID(e.OriginalID), Redrives: max(e.Redrives, 0),
		TraceParent: clip(e.TraceParent, maxLabel), TraceState: orEmpty(e.TraceState, maxTraceState),
	}
	for _, text := range e.Errors {
		if len(w.Errors) < maxErrors && text != "" {
			w.Errors = append(w.Errors, clip(text, maxErrorText))
		}
	}
	// All else takes less than half of MaxEnvelope, so errors cut to a quarter of their longest fit.
	for longest := maxErrorText; ; longest /= 2 {
		for i, text := range w.Errors {
			w.Errors[i] = clip(text, longest)
		}
		if s := ascii.JSON(string(must.Have(json.Marshal(w)))); len(s) <= MaxEnvelope { // w is of strings and numbers
			return s
		}
	}
}

// DecodeEnvelope reads what Encode returns. What Encode would not write is an error: a
// text longer than MaxEnvelope, one that is not JSON, or negative numbers. Unknown fields
// are ignored: a later version may have written them.
func DecodeEnvelope(text string) (*Envelope, error) {
	if len(text) > MaxEnvelope {
		return nil, fmt.Errorf("queue: the envelope has %d bytes, %d are allowed", len(text), MaxEnvelope)
	}
	var w envelopeJSON
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return nil, fmt.Errorf("queue: the envelope is not JSON as it should be: %w", err)
	}
	if w.Version < 1 {
		return nil, errors.New(`queue: the envelope has no version ("v")`)
	}
	if w.Attempts < 0 || w.Redrives < 0 {
		return nil, errors.New("queue: the envelope has a negative number")
	}
	if len(w.Errors) > maxErrors {
		return nil, fmt.Errorf("queue: the envelope has %d errors, %d are allowed", len(w.Errors), maxErrors)
	}
	first, err := parseStamp(w.FirstFailure)
	if err != nil {
		return nil, err
	}
	last, err := parseStamp(w.LastFailure)
	if err != nil {
		return nil, err
	}
	return &Envelope{
		Reason: w.Reason, Code: w.Code, Errors: w.Errors, Attempts: w.Attempts,
		FirstFailure: first, LastFailure: last,
		Source: w.Source, OriginalID: w.OriginalID, Redrives: w.Redrives,
		TraceParent: w.TraceParent, TraceState: w.TraceState,
	}, nil
}

// EnvelopeOf is the envelope in headers: of a dead letter, or of a message that has
// been redriven. ok is false if there is no envelope that can be read.
func EnvelopeOf(h Headers) (e *Envelope, ok bool) {
	text, there := h[EnvelopeHeader]
	if !there {
		return nil, false
	}
	e, err := DecodeEnvelope(text)
	return e, err == nil
}

// LetterHeaders are the headers of a dead letter: those of the message, and the
// envelope. Adapters send these.
func LetterHeaders(h Headers, e *Envelope) Headers {
	out := make(Headers, len(h)+1)
	maps.Copy(out, h)
	out[EnvelopeHeader] = e.Encode()
	return out
}

// Shortened makes room in a dead letter that is too large with its envelope e: at least free bytes,
// if the headers have as many. sizes is how many bytes each header takes. It returns the new length
// of each header to shorten: the longest ones, cut to one length. The returned envelope names them in
// its first error.
func (e *Envelope) Shortened(sizes map[string]int, free int) (*Envelope, map[string]int) {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	rest, n, length := free, 0, 0 // the first n headers get that length
	for n < len(names) && rest > 0 {
		n++
		length = 0
		if n < len(names) {
			length = sizes[names[n]]
		}
		sum := 0
		for _, name := range names[:n] {
			sum += sizes[name]
		}
		rest = free - (sum - n*length)
	}
	if rest < 0 {
		length += -rest / n
	}
	keep := make(map[string]int, n)
	text := "headers are shortened, for want of room:"
	for _, name := range names[:n] {
		keep[name] = length
		text += fmt.Sprintf(" %s (it had %d bytes)", clip(name, maxLabel), sizes[name])
	}
	short := *e
	if n == 0 {
		return &short, keep
	}
	short.Errors = append([]string{text}, e.Errors...)
	return &short, keep
}

const stampFormat = "2006-01-02T15:04:05.000Z"

// stamp returns t as text for people and machines; empty for a time that has none.
func stamp(t time.Time) string {
	t = t.UTC()
	if t.Year() <= 1 || t.Year() > 9999 { // zero is in the year 1
		return ""
	}
	return t.Format(stampFormat)
}

func parseStamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("queue: the envelope has a time that is none: %w", err)
	}
	return t.UTC(), nil
}

// encodedSize is how many bytes r takes once encoded, at most.
func encodedSize(r rune) int {
	switch {
	case r >= 0x10000:
		return 12
	case r >= ' ' && r < 0x7f && r != '"' && r != '\\' && r != '<' && r != '>' && r != '&':
		return 1
	}
	return 6
}

// clip is the start of s that takes no more than limit bytes when encoded, with an
// ellipsis if that is not all of it. The limit has room for a character and the ellipsis.
func clip(s string, limit int) string {
	const ellipsis = "..."
	s = strings.ToValidUTF8(s, "\ufffd")
	var used, keep int
	for i, r := range s {
		if used += encodedSize(r); used > limit {
			return s[:keep] + ellipsis
		}
		if used <= limit-len(ellipsis) {
			keep = i + utf8.RuneLen(r)
		}
	}
	return s
}

// orEmpty is s if it fits; half of it would mean something else.
func orEmpty(s string, limit int) string {
	if c := clip(s, limit); c == s {
		return s
	}
	return ""
}

func clipID(id string) string {
	if clip(id, maxName) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clip(id, maxName-70) + "#" + hex.EncodeToString(sum[:])
}

// errorTexts is the text of err and of what it wraps, for Envelope.Errors.
func errorTexts(err error) []string {
	var out []string
	var walk func(err error, depth int)
	walk = func(err error, depth int) {
		if err == nil || len(out) == maxErrors || depth > 32 {
			return
		}
		text := clip(errorText(err), maxErrorText)
		if n := len(out); text != "" && (n == 0 || out[n-1] != text) {
			out = append(out, text)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			walk(e.Unwrap(), depth+1)
		case interface{ Unwrap() []error }:
			for _, each := range e.Unwrap() {
				walk(each, depth+1)
			}
		}
	}
	walk(err, 0)
	return out
}

// errorText is err's text, even if its Error method panics: a handler's error must not
// stop the consumer.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("(%T, whose Error method panics)", err)
		}
	}()
	return err.Error()
}
