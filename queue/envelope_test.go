package queue_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

func full() *queue.Envelope {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC)
	return &queue.Envelope{
		Reason: "attempts_exhausted", Code: "connection_refused", Errors: []string{`dial "x": refused`, "ünïcödé ☃ 𝄞", "tab\tand\x7f\x00"},
		Attempts: 10, FirstFailure: at, LastFailure: at.Add(time.Hour), Source: "orders", OriginalID: "a-1", Redrives: 2,
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceState: "a=1,b=2",
	}
}

// What Encode writes is the header that the README shows: others read it too.
func TestEnvelopeOnTheWire(t *testing.T) {
	e := full()
	e.Errors = []string{`a "b" <c>`}
	const want = `{"v":1,"reason":"attempts_exhausted","code":"connection_refused","attempts":10,"first":"2026-03-04T05:06:07.890Z","last":"2026-03-04T06:06:07.890Z",` +
		`"source":"orders","id":"a-1","redrives":2,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1,b=2","errors":["a \"b\" \u003cc\u003e"]}`
	check.Equal(t, e.Encode(), want, "encoded")
	check.Equal(t, (&queue.Envelope{}).Encode(), `{"v":1}`, "an empty one")
}

func TestEnvelopeComesBack(t *testing.T) {
	for _, e := range []*queue.Envelope{{}, full(), {Reason: "x", FirstFailure: time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)}} {
		got, err := queue.DecodeEnvelope(e.Encode())
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v came back as %+v, %v", e, got, err)
		}
		check.Equal(t, got.Encode(), e.Encode(), "encoded again")
	}
}

// However long its texts are, an envelope is short and printable ASCII, and can be read. The
// fields that identify it are kept.
func TestEnvelopeIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abc \"\\<\x00\x7fü☃𝄞\ufffd")
	text := func() string {
		var b strings.Builder
		for range r.IntN(1 << r.IntN(13)) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		if r.IntN(4) == 0 {
			b.WriteString("\xff\xc0 not UTF-8")
		}
		return b.String()
	}
	seen := map[string]string{}
	for range 500 {
		e := &queue.Envelope{Reason: text(), Code: text(), Attempts: r.IntN(100) - 10, Source: text(), OriginalID: text(), Redrives: r.IntN(10) - 1,
			TraceParent: text(), TraceState: text(), FirstFailure: time.Unix(r.Int64N(1e13)-5e12, 0), LastFailure: time.Unix(r.Int64(), 0)}
		for range r.IntN(20) {
			e.Errors = append(e.Errors, text())
		}
		s := e.Encode()
		if len(s) > queue.MaxEnvelope {
			t.Fatalf("%d bytes", len(s))
		}
		for i := range len(s) {
			if s[i] < ' ' || s[i] > '~' {
				t.Fatalf("a byte %#x in %q", s[i], s)
			}
		}
		got, err := queue.DecodeEnvelope(s)
		if err != nil {
			t.Fatalf("%v: %s", err, s)
		}
		if again := got.Encode(); again != s {
			t.Fatalf("encoded again it is\n%s\nwas\n%s", again, s)
		}
		if e.TraceState != got.TraceState && got.TraceState != "" {
			t.Fatalf("half a trace state: %q of %q", got.TraceState, e.TraceState)
		}
		if other, there := seen[got.OriginalID]; there && utf8.ValidString(e.OriginalID) && utf8.ValidString(other) && other != e.OriginalID {
			t.Fatalf("two ids became one: %q and %q", other, e.OriginalID)
		}
		seen[got.OriginalID] = e.OriginalID
		if id := queue.DeadLetterID(got.Source, got.OriginalID); len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Fatalf("ID %q", id)
		}
	}
}

// Where all texts are as long as can be, each error still has a quarter of its room.
func TestEnvelopeOfLongTexts(t *testing.T) {
	long := strings.Repeat("\x00", 4096)
	e := &queue.Envelope{Reason: long, Code: long, Attempts: math.MaxInt, Source: long, OriginalID: long, Redrives: math.MaxInt,
		TraceParent: long, TraceState: strings.Repeat("x", 512), FirstFailure: time.Unix(1, 0), LastFailure: time.Unix(1, 0)}
	for range 20 {
		e.Errors = append(e.Errors, strings.Repeat("x", 4096))
	}
	got := must.Have(queue.DecodeEnvelope(e.Encode()))
	check.Equal(t, len(got.Errors), 8, "errors")
	for _, text := range got.Errors {
		if len(text) < 256 {
			t.Errorf("%d bytes of an error, want 256 at least: %q", len(text), text)
		}
	}
}

// Long ids that begin alike are not alike.
func TestEnvelopeOfALongID(t *testing.T) {
	long := strings.Repeat("x", 600)
	a, b := &queue.Envelope{OriginalID: long + "a"}, &queue.Envelope{OriginalID: long + "b"}
	a, _ = queue.DecodeEnvelope(a.Encode())
	b, _ = queue.DecodeEnvelope(b.Encode())
	if a.OriginalID == b.OriginalID || queue.DeadLetterID(a.OriginalID) == queue.DeadLetterID(b.OriginalID) {
		t.Errorf("%s and %s", a.OriginalID, b.OriginalID)
	}
}

func TestDeadLetterID(t *testing.T) {
	check.Equal(t, queue.DeadLetterID("ORDERS", "billing", "17"), "dead-ORDERS/billing/17", "id")
	seen := map[string][]string{}
	long := strings.Repeat("x", 120)
	for _, parts := range [][]string{{"a", "b"}, {"a/b"}, {"a", "b", ""}, {"a", "", "b"}, {"a b"}, {"a", " b"}, {"ä"}, {long}, {long, "a"}, {long + "a"}, {long + "/a"}} {
		id := queue.DeadLetterID(parts...)
		if other, there := seen[id]; there || len(id) > 128 {
			t.Errorf("%q and %q have the id %q", parts, other, id)
		}
		seen[id] = parts
	}
}

func TestDecodeEnvelopeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "not JSON",
		"hello":                          "not JSON",
		`[]`:                             "not JSON",
		`{"v":"1"}`:                      "not JSON",
		`{}`:                             "no version",
		`{"v":0}`:                        "no version",
		`{"v":1,"attempts":-1}`:          "negative",
		`{"v":1,"redrives":-1}`:          "negative",
		`{"v":1,"first":"yesterday"}`:    "a time that is none",
		`{"v":1,"last":"2026-02-30"}`:    "a time that is none",
		`{"v":1,"errors":[1]}`:           "not JSON",
		`{"v":1} {"v":1}`:                "not JSON",
		`{"v":1,"errors":` + eight + `}`: "9 errors",
		`{"v":1,"reason":"` + strings.Repeat("x", queue.MaxEnvelope) + `"}`: "bytes, 4096 are allowed",
	} {
		if e, err := queue.DecodeEnvelope(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %+v, %v; want %q", text, e, err, want)
		}
	}
	if e, err := queue.DecodeEnvelope(`{"v":2,"reason":"x","later":{"y":1}}`); err != nil || e.Reason != "x" {
		t.Errorf("one of a later version: %+v, %v", e, err)
	}
}

const eight = `["1","2","3","4","5","6","7","8","9"]`

func TestEnvelopeOf(t *testing.T) {
	h := queue.Headers{"a": "1"}
	if _, ok := queue.EnvelopeOf(h); ok {
		t.Error("an envelope where there is none")
	}
	letter := queue.LetterHeaders(h, full())
	check.Equal(t, fmt.Sprint(h), "map[a:1]", "headers of the message")
	if e, ok := queue.EnvelopeOf(letter); !ok || !reflect.DeepEqual(e, full()) || letter["a"] != "1" || len(letter) != 2 {
		t.Errorf("%v, %v", letter, e)
	}
	letter[queue.EnvelopeHeader] = "{"
	l := queue.LetterOf(&queue.Delivery{ID: "7", Headers: letter, Enqueued: time.Unix(5, 0)})
	if l.Reason != queue.ReasonBroker || l.OriginalID != "7" || len(l.Headers) != 1 || !l.Died().Equal(time.Unix(5, 0)) {
		t.Errorf("a letter with an envelope that cannot be read: %+v", l)
	}
}

// The envelope of a letter has the chain of its error, from the outermost in.
func TestErrorsInTheEnvelope(t *testing.T) {
	inner := errors.New("connection refused")
	for _, c := range []struct {
		err  error
		want string
	}{
		{lull.Permanent(fmt.Errorf("order 7: %w", inner)), `["order 7: connection refused" "connection refused"]`},
		{lull.Permanent(errors.Join(inner, errors.New("and another"))), `["connection refused\nand another" "connection refused" "and another"]`},
		{queue.DeadLetterAs("schema", nil), `["schema"]`},
		{lull.Permanent(panicky{}), `["(*lull.marked, whose Error method panics)" "(queue_test.panicky, whose Error method panics)"]`},
	} {
		bubble(t, func(t *testing.T) {
			got := dead(t, c.err)
			check.Equal(t, fmt.Sprintf("%q", got.Errors), c.want, "errors")
		})
	}
	bubble(t, func(t *testing.T) {
		err := inner
		for i := range 50 {
			err = fmt.Errorf("%s %d: %w", strings.Repeat("☃", 300), i, err)
		}
		got := dead(t, lull.Permanent(err))
		if len(got.Errors) == 0 || len(got.Errors) > 8 || !strings.HasSuffix(got.Errors[0], "...") {
			t.Errorf("%d errors, %q", len(got.Errors), got.Errors)
		}
	})
}

type panicky struct{}

func (panicky) Error() string { panic("no text") }

func FuzzDecodeEnvelope(f *testing.F) {
	for _, s := range []string{"", "{}", `{"v":1}`, full().Encode(), `{"v":1,"errors":["\ud834\udd1e","\ud834"]}`, `{"v":1,"id":"\u0000","reason":null}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := queue.DecodeEnvelope(s)
		if err != nil {
			return
		}
		once := e.Encode()
		if len(once) > queue.MaxEnvelope {
			t.Fatalf("%d bytes", len(once))
		}
		back, err := queue.DecodeEnvelope(once)
		if err != nil {
			t.Fatalf("what was encoded cannot be read: %v: %s", err, once)
		}
		if again := back.Encode(); again != once {
			t.Fatalf("encoded again\n%s\nwas\n%s", again, once)
		}
		if id := queue.DeadLetterID(e.Source, e.OriginalID); len(id) > 128 {
			t.Fatalf("ID %q", id)
		}
	})
}

// An envelope of exactly MaxEnvelope bytes is as long as is allowed: nothing of it is cut, and
// it is read. With a byte more, an error is cut.
func TestEnvelopeOfTheLargestSize(t *testing.T) {
	e := &queue.Envelope{Reason: "permanent", Source: "orders", OriginalID: "17"}
	for range 4 {
		e.Errors = append(e.Errors, strings.Repeat("x", 1000))
	}
	last := &e.Errors[3]
	room := queue.MaxEnvelope - len(e.Encode())
	*last += strings.Repeat("y", room)
	s := e.Encode()
	check.Equal(t, len(s), queue.MaxEnvelope, "bytes")
	got := must.Have(queue.DecodeEnvelope(s))
	check.Equal(t, got.Errors[3] == *last, true, "the last error is whole")

	*last += "y"
	if s = e.Encode(); len(s) >= queue.MaxEnvelope {
		t.Errorf("%d bytes with one more in an error", len(s))
	}
}

// A label takes no more than 64 bytes of the envelope as it is sent, whatever it is made of.
func TestEnvelopeOfCharactersThatGrow(t *testing.T) {
	empty := len((&queue.Envelope{Reason: "x"}).Encode()) - 1
	for _, c := range []string{"x", "\x7f", "\x1f", `"`, `\`, "<", "é", "☃", "𝄞"} {
		if n := len((&queue.Envelope{Reason: strings.Repeat(c, 64)}).Encode()) - empty; n > 64+len("...") {
			t.Errorf("64 times %q take %d bytes", c, n)
		}
	}
	for c, most := range map[string]int{"x": 64, "☃": 10, "𝄞": 5} { // of 1, 6 and 12 bytes
		label := strings.Repeat(c, most)
		if got, err := queue.DecodeEnvelope((&queue.Envelope{Reason: label}).Encode()); err != nil || got.Reason != label {
			t.Errorf("%q, which fits, is read as %+v, %v", label, got, err)
		}
	}
}
