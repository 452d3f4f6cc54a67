package lullamqp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/queue"
)

// Headers in which the adapter keeps its record of a message. They do not begin with "x-": RabbitMQ
// 4 drops or rewrites some of those.
const (
	ownHeaders = "Lull-Amqp-"

	headerID          = ownHeaders + "Id"           // text: Delivery.ID
	headerAttempts    = ownHeaders + "Attempts"     // number: attempts before this copy was sent
	headerCrashes     = ownHeaders + "Crashes"      // number: Delivery.Crashes
	headerEnqueued    = ownHeaders + "Enqueued"     // numbers: milliseconds since 1970
	headerFirstSeen   = ownHeaders + "First-Seen"   //
	headerFirstFailed = ownHeaders + "First-Failed" //
	headerExpires     = ownHeaders + "Expires"      //
	headerGroup       = ownHeaders + "Group"        // text: Delivery.Group
)

// brokerHeader reports whether RabbitMQ writes a header, or acts on it: CC and BCC send a message to
// further queues, each time it is published.
func brokerHeader(name string) bool {
	switch name {
	case "x-delivery-count", "x-acquired-count", "x-death", "CC", "BCC":
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

type record struct {
	id          string
	attempts    int // before this copy was sent
	crashes     int
	enqueued    time.Time
	firstSeen   time.Time
	firstFailed time.Time
	expires     time.Time
	group       string
}

// Bounds of values that are believed.
const (
	maxAttempts = math.MaxInt32
	maxID       = 512
)

// recordOf reads the headers of a delivery. Malformed headers are ignored: anybody may write them.
func recordOf(h amqp.Table) record {
	r := record{
		enqueued: moment(h[headerEnqueued]), firstSeen: moment(h[headerFirstSeen]),
		firstFailed: moment(h[headerFirstFailed]), expires: moment(h[headerExpires]),
	}
	r.attempts, r.crashes = number(h[headerAttempts]), number(h[headerCrashes])
	if id, ok := h[headerID].(string); ok && id != "" && len(id) <= maxID {
		r.id = id
	}
	r.group, _ = h[headerGroup].(string)
	return r
}

// number returns v as a number of attempts. Zero: v is not a number.
func number(v any) int {
	n, _ := integer(v)
	return int(min(max(n, 0), maxAttempts))
}

func (r *record) write(h amqp.Table) {
	h[headerID] = r.id
	h[headerAttempts] = int64(r.attempts)
	if r.crashes > 0 {
		h[headerCrashes] = int64(r.crashes)
	}
	put := func(name string, t time.Time) {
		if !t.IsZero() {
			h[name] = t.UnixMilli()
		}
	}
	put(headerEnqueued, r.enqueued)
	put(headerFirstSeen, r.firstSeen)
	put(headerFirstFailed, r.firstFailed)
	put(headerExpires, r.expires)
	if r.group != "" {
		h[headerGroup] = r.group
	}
}

// redeliveries returns how often the broker has handed out this copy before.
//
// x-delivery-count counts messages that were rejected, or came back because a channel ended; before
// 4.3 it counts all that came back. x-acquired-count, from 4.3 on, counts all that were handed out,
// also those that a consumer kept for longer than consumer_timeout, which x-delivery-count no
// longer counts. The adapter gives nothing back with basic.nack. So the larger is the number of
// attempts that nobody settled. A queue that counts nothing (a classic one) shows at least whether
// there was one.
func redeliveries(d *amqp.Delivery) int {
	if !d.Redelivered {
		// The broker did not write this count: it came with the message.
		return 0
	}
	return max(counted(d.Headers), 1)
}

func counted(h amqp.Table) int {
	return max(number(h["x-delivery-count"]), number(h["x-acquired-count"]))
}

// integer returns the value of any of AMQP's types of whole numbers, or of a text.
func integer(v any) (int64, bool) {
	if text, ok := v.(string); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return n.Int(), true
	case n.CanUint():
		return int64(n.Uint()), n.Uint() <= math.MaxInt64
	}
	return 0, false
}

// lastMoment is the end of the year 9999.
const lastMoment = 253402300799999

func moment(v any) time.Time {
	ms, ok := integer(v)
	if !ok || ms <= 0 || ms > lastMoment {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// headersOf returns the headers that the consumer sees: text only, without those of the adapter and
// the broker.
func headersOf(t amqp.Table) queue.Headers {
	h := make(queue.Headers, len(t))
	for name, v := range t {
		if text, ok := v.(string); ok && !reserved(name) {
			h[name] = text
		}
	}
	return h
}

// keptHeaders returns the headers that a moved message keeps: the sender's, of all types.
func keptHeaders(t amqp.Table) amqp.Table {
	h := make(amqp.Table, len(t)+6)
	for name, v := range t {
		if !reserved(name) {
			h[name] = v
		}
	}
	return h
}

// identify returns the id of a message that another package sent: its message-id, or a hash of the
// whole message.
func identify(d *amqp.Delivery) string {
	if d.MessageId != "" && len(d.MessageId) <= maxID {
		return d.MessageId
	}
	return "sha256-" + digest(d, false)
}

// digest returns a hash of a whole message: its properties and headers, where it was published to,
// and its body. It includes this package's headers if own is set. It leaves out what the server
// adds at delivery. Two different messages may have the same digest.
func digest(d *amqp.Delivery, own bool) string {
	h := sha256.New()
	part := func(s string) {
		h.Write(strconv.AppendInt(nil, int64(len(s)), 10))
		h.Write([]byte{' '})
		h.Write([]byte(s))
	}
	for _, s := range []string{
		d.MessageId, d.AppId, d.Type, d.CorrelationId, d.ReplyTo, d.ContentType, d.ContentEncoding, d.Expiration, d.UserId,
		d.Exchange, d.RoutingKey, strconv.Itoa(int(d.Priority)), strconv.Itoa(int(d.DeliveryMode)), string(d.Body),
	} {
		part(s)
	}
	if !d.Timestamp.IsZero() {
		part(d.Timestamp.UTC().Format(time.RFC3339))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if !brokerHeader(name) && (own || !strings.HasPrefix(name, ownHeaders)) {
			part(name)
			part(fmt.Sprintf("%#v", d.Headers[name])) // the keys of tables are in order
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// expiry returns when a message that its sender gave an expiration ends. The time begins at the
// message's timestamp. It begins at received if there is no timestamp, or if the timestamp is not
// plausible: in the future, or so old that the server would have dropped the message.
func expiry(d *amqp.Delivery, received time.Time) time.Time {
	ms, err := strconv.ParseInt(d.Expiration, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxUint32 {
		return time.Time{}
	}
	live := time.Duration(ms) * time.Millisecond
	if end := d.Timestamp.Add(live); end.After(received) && end.Before(received.Add(live)) {
		return end
	}
	return received.Add(live)
}

// republished returns the message of a delivery for publishing it again, without Expiration, which would
// end its wait early (headerExpires has it), and without UserId, which others must not set.
func republished(d *amqp.Delivery, headers amqp.Table) amqp.Publishing {
	return amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: amqp.Persistent, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId,
		Body: d.Body,
	}
}

// reserved reports whether senders must not write a header.
func reserved(name string) bool { return strings.HasPrefix(name, ownHeaders) || brokerHeader(name) }

// death is RabbitMQ's record of a dead-lettered message.
type death struct {
	queue      string
	reason     string // such as "delivery_limit"
	at         time.Time
	deliveries int
}

// deathOf returns the latest entry of x-death that is not from a delay level.
func deathOf(h amqp.Table) (death, bool) {
	entries, _ := h["x-death"].([]any)
	for _, e := range entries {
		t, ok := e.(amqp.Table)
		if !ok {
			continue
		}
		d := death{}
		d.queue, _ = t["queue"].(string)
		d.at, _ = t["time"].(time.Time)
		if d.reason, _ = t["reason"].(string); d.reason == "expired" && strings.Contains(d.queue, ".delay-") {
			continue
		}
		d.deliveries = counted(h)
		return d, true
	}
	return death{}, false
}
