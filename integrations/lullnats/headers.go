package lullnats

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// Headers of this package. Names that begin with Nats- are the server's. Some of them would make it
// discard a message, or a whole stream, so they are neither shown to handlers nor copied.
const (
	groupHeader   = "Lull-Group"   // Outgoing.Group
	encodedHeader = "Lull-Headers" // headers whose values NATS would change, as JSON
	movedHeader   = "Lull-Moved"   // the record of a message that was put off
	subjectHeader = "Lull-Subject" // of a dead letter: the message's subject
	reserved      = "Nats-"
)

func ours(name string) bool {
	return name == groupHeader || name == encodedHeader || name == movedHeader || name == subjectHeader
}

// sentAs returns the id of a message: the one that its sender gave it (Nats-Msg-Id), unchanged,
// else origin, the stream's.
func sentAs(h nats.Header, origin string) string {
	if id := h.Get(jetstream.MsgIDHeader); id != "" && len(id) <= 512 {
		return id
	}
	return origin
}

// plainName reports whether queue.Headers allows name.
func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != ""
}

// plainValue reports whether NATS carries value unchanged: it cuts off spaces at the ends, and a
// line break ends the value.
func plainValue(value string) bool {
	return !strings.ContainsAny(value, "\r\n\x00") && strings.TrimSpace(value) == value
}

// toHeader returns h and group in the form that NATS carries.
func toHeader(h queue.Headers, group string) (nats.Header, error) {
	out := make(nats.Header, len(h)+4)
	odd := map[string]string{}
	for name, value := range h {
		switch {
		case !plainName(name):
			return nil, lull.Permanent(fmt.Errorf("lullnats: the name of the header %q: want letters, digits and hyphens", name))
		case strings.HasPrefix(name, reserved) || ours(name):
			return nil, lull.Permanent(fmt.Errorf("lullnats: the header %s cannot be sent: names that begin with Nats- are the server's, and those that begin with Lull- this package's", name))
		case !utf8.ValidString(value):
			return nil, lull.Permanent(fmt.Errorf("lullnats: the header %s is not UTF-8", name))
		case plainValue(value):
			out[name] = []string{value}
		default:
			odd[name] = value
		}
	}
	switch {
	case !utf8.ValidString(group):
		return nil, lull.Permanent(errors.New("lullnats: the group is not UTF-8"))
	case group == "":
	case plainValue(group):
		out[groupHeader] = []string{group}
	default:
		odd[groupHeader] = group
	}
	if len(odd) > 0 {
		text, err := json.Marshal(odd)
		if err != nil {
			return nil, err // impossible with text
		}
		out[encodedHeader] = []string{string(text)}
	}
	return out, nil
}

// fromHeader reverses toHeader. It also returns headers of other senders if queue.Headers allows
// their names.
func fromHeader(h nats.Header) (out queue.Headers, group string) {
	out = make(queue.Headers, len(h))
	for name, values := range h {
		if plainName(name) && len(values) > 0 && !strings.HasPrefix(name, reserved) && !ours(name) {
			out[name] = values[0]
		}
	}
	group = h.Get(groupHeader)
	if text := h.Get(encodedHeader); text != "" {
		var odd map[string]string
		if json.Unmarshal([]byte(text), &odd) == nil {
			for name, value := range odd {
				switch {
				case name == groupHeader:
					group = value
				case plainName(name) && !strings.HasPrefix(name, reserved) && !ours(name):
					out[name] = value
				}
			}
		}
	}
	return out, group
}

// copied returns the headers that a message keeps when it is stored elsewhere: all but the server's
// and those of an earlier move.
func copied(h nats.Header) nats.Header {
	out := make(nats.Header, len(h)+4)
	for name, values := range h {
		if !strings.HasPrefix(name, reserved) && name != movedHeader && name != subjectHeader {
			out[name] = values
		}
	}
	return out
}

// ttl returns the time to live that the header of a message asks for. ok is false if it asks for
// none. Zero: it never ends.
func ttl(h nats.Header) (d time.Duration, ok bool) {
	text := h.Get(jetstream.MsgTTLHeader)
	if strings.EqualFold(text, "never") {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	if n, failed := strconv.ParseInt(text, 10, 32); failed == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	d = d.Truncate(time.Second) // like the server
	return d, err == nil && d > 0
}

// toLive returns d as the value of such a header, which has whole seconds.
func toLive(d time.Duration) string {
	return strconv.FormatInt(int64(max((d+time.Second-1)/time.Second, 1)), 10)
}

// moved is the record of a message that was put off and stored anew.
type moved struct {
	ID       string // of the message when it was sent
	Origin   string // the stream's name for it then: see Broker.delivery
	Attempts int    // those made before, if they count
	Crashes  int    // Delivery.Crashes
	Enqueued time.Time
	Seen     time.Time // zero: not known
	Ends     time.Time // of its own time, by the server's clock; zero: never
	Failed   time.Time // likewise
}

type movedWire struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`
	Origin   string `json:"origin,omitempty"`
	Attempts int    `json:"attempts"`
	Crashes  int    `json:"crashes,omitempty"`
	Enqueued int64  `json:"sent"` // nanoseconds of Unix time
	Seen     int64  `json:"seen,omitempty"`
	Failed   int64  `json:"failed,omitempty"`
	Ends     int64  `json:"ends,omitempty"`
}

func (m moved) encode() string {
	w := movedWire{Version: 1, ID: m.ID, Origin: m.Origin, Attempts: m.Attempts, Crashes: m.Crashes, Enqueued: nanos(m.Enqueued), Seen: nanos(m.Seen), Failed: nanos(m.Failed), Ends: nanos(m.Ends)}
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // text and numbers
	}
	return string(text)
}

// movedOf reads that record. A message without one, or with one that this package would not have
// written, was not moved.
func movedOf(h nats.Header) (m moved, ok bool) {
	text := h.Get(movedHeader)
	if text == "" || len(text) > 2048 {
		return moved{}, false
	}
	var w movedWire
	if json.Unmarshal([]byte(text), &w) != nil || w.Version != 1 || w.ID == "" || len(w.ID) > 512 || w.Attempts < 0 || w.Attempts > 1<<30 || w.Crashes < 0 || w.Crashes > 1<<30 ||
		w.Enqueued < 0 || w.Seen < 0 || w.Failed < 0 || w.Ends < 0 {
		return moved{}, false
	}
	if w.Origin == "" || len(w.Origin) > 512 {
		w.Origin = w.ID
	}
	return moved{ID: w.ID, Origin: w.Origin, Attempts: w.Attempts, Crashes: w.Crashes, Enqueued: unnanos(w.Enqueued), Seen: unnanos(w.Seen), Failed: unnanos(w.Failed), Ends: unnanos(w.Ends)}, true
}

func nanos(t time.Time) int64 {
	if t.IsZero() || t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return t.UnixNano()
}

func unnanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
