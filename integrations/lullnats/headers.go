package lullnats

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
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

func ownHeader(name string) bool {
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

var plainName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

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
		case !plainName.MatchString(name):
			return nil, lull.Permanent(fmt.Errorf("lullnats: the name of the header %q: want letters, digits and hyphens", name))
		case strings.HasPrefix(name, reserved) || ownHeader(name):
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
		out[encodedHeader] = []string{string(must.Have(json.Marshal(odd)))}
	}
	return out, nil
}

// fromHeader reverses toHeader. It also returns headers of other senders if queue.Headers allows
// their names.
func fromHeader(h nats.Header) (out queue.Headers, group string) {
	out = make(queue.Headers, len(h))
	for name, values := range h {
		if plainName.MatchString(name) && len(values) > 0 && !strings.HasPrefix(name, reserved) && !ownHeader(name) {
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
				case plainName.MatchString(name) && !strings.HasPrefix(name, reserved) && !ownHeader(name):
					out[name] = value
				}
			}
		}
	}
	return out, group
}

// keptHeaders returns the headers that a message keeps when it is stored elsewhere: all but the server's
// and those of an earlier move.
func keptHeaders(h nats.Header) nats.Header {
	out := make(nats.Header, len(h)+4)
	for name, values := range h {
		if !strings.HasPrefix(name, reserved) && name != movedHeader && name != subjectHeader {
			out[name] = values
		}
	}
	return out
}

// ttl returns the time to live that the header of a message asks for. ok is false if the header
// asks for none. Zero: the message never ends.
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

// moved is the record of a message that was put off and stored anew.
type moved struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`               // of the message when it was sent
	Origin   string `json:"origin,omitempty"` // the stream's name for it then: see Broker.delivery
	Attempts int    `json:"attempts"`         // those made before, if they count
	Crashes  int    `json:"crashes,omitempty"`
	Enqueued stamp  `json:"sent"`
	Seen     stamp  `json:"seen,omitzero"`
	Failed   stamp  `json:"failed,omitzero"`
	Ends     stamp  `json:"ends,omitzero"` // of its own time, by the server's clock; zero: never
}

func (m moved) encode() string {
	m.Version = 1
	return string(must.Have(json.Marshal(m)))
}

// movedOf reads that record. A message without one, or with one that this package would not have
// written, was not moved.
func movedOf(h nats.Header) (m moved, ok bool) {
	text := h.Get(movedHeader)
	if text == "" || len(text) > 2048 {
		return moved{}, false
	}
	if json.Unmarshal([]byte(text), &m) != nil || m.Version != 1 || m.ID == "" || len(m.ID) > 512 || m.Attempts < 0 || m.Attempts > 1<<30 || m.Crashes < 0 || m.Crashes > 1<<30 ||
		min(m.Enqueued, m.Seen, m.Failed, m.Ends) < 0 {
		return moved{}, false
	}
	if m.Origin == "" || len(m.Origin) > 512 {
		m.Origin = m.ID
	}
	return m, true
}

// stamp is nanoseconds of Unix time. Zero: not known.
type stamp int64

// stampOf returns zero for a time before 1970 or after 2200, and so for the zero time.
func stampOf(t time.Time) stamp {
	if t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return stamp(t.UnixNano())
}

func (s stamp) time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s)).UTC()
}
