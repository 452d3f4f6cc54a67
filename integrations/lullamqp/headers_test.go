package lullamqp

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

func TestRecordsSurviveTheirHeaders(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, r := range []record{
		{id: "a"},
		{id: "a", attempts: 7, enqueued: at, firstSeen: at.Add(time.Second), firstFailed: at.Add(time.Minute), group: "g"},
	} {
		h := amqp.Table{}
		r.write(h)
		check.Equal(t, h.Validate(), nil, "h.Validate()")
		if got := recordOf(h); !reflect.DeepEqual(got, r) {
			t.Errorf("%+v is read as %+v", r, got)
		}
	}
}

func TestHeadersThatNobodyShouldWrite(t *testing.T) {
	for _, v := range []any{int64(-1), int64(math.MinInt64), "x", "-3", nil, 1.5, true, []byte("1"), amqp.Table{}} {
		if r := recordOf(amqp.Table{headerAttempts: v, headerEnqueued: v, headerFirstSeen: v, headerFirstFailed: v}); r != (record{}) {
			t.Errorf("%v: %+v", v, r)
		}
	}
	check.Equal(t, recordOf(amqp.Table{headerAttempts: int64(math.MaxInt64)}).attempts, maxAttempts, "attempts")
	if r := recordOf(amqp.Table{headerID: strings.Repeat("x", 513)}); r.id != "" {
		t.Errorf("an id of %d bytes", len(r.id))
	}
}

func TestRedeliveries(t *testing.T) {
	for _, c := range []struct {
		name        string
		headers     amqp.Table
		redelivered bool
		want        int
	}{
		{"the first", nil, false, 0},
		{"counts that came with the message", amqp.Table{"x-delivery-count": int64(5)}, false, 0},
		{"3.10", amqp.Table{"x-delivery-count": int64(2)}, true, 2},
		{"4.3, rejected", amqp.Table{"x-delivery-count": int64(2), "x-acquired-count": int64(2)}, true, 2},
		{"4.3, kept for too long", amqp.Table{"x-acquired-count": int64(3)}, true, 3},
		{"4.3, both", amqp.Table{"x-delivery-count": int64(1), "x-acquired-count": int64(4)}, true, 4},
		{"a classic queue", nil, true, 1},
		{"nonsense", amqp.Table{"x-delivery-count": "many"}, true, 1},
		{"too many", amqp.Table{"x-delivery-count": int64(math.MaxInt64)}, true, maxAttempts},
	} {
		check.Equal(t, redeliveries(&amqp.Delivery{Headers: c.headers, Redelivered: c.redelivered}), c.want, "%s", c.name)
	}
}

// A moved message keeps what its sender has set, and nothing that the broker has written or would
// act on.
func TestWhatIsMoved(t *testing.T) {
	d := amqp.Delivery{
		Headers: amqp.Table{
			"kind": "order", "n": int32(5), "x-request-id": "r", "x-death": []any{}, "x-first-death-queue": "q", "x-last-death-reason": "expired",
			"x-delivery-count": int64(1), "x-acquired-count": int64(1), "CC": []any{"elsewhere"}, "BCC": []any{"elsewhere"}, headerAttempts: int64(1),
		},
		ContentType: "text/plain", ContentEncoding: "gzip", Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "1000",
		MessageId: "m", Type: "t", UserId: "u", AppId: "a", Body: []byte("body"),
	}
	want := amqp.Publishing{
		Headers:     amqp.Table{"kind": "order", "n": int32(5), "x-request-id": "r"},
		ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: 3, CorrelationId: "c", ReplyTo: "r",
		MessageId: "m", Type: "t", AppId: "a", Body: []byte("body"),
	}
	if got := republished(&d, keptHeaders(d.Headers)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := headersOf(d.Headers); !reflect.DeepEqual(got, queue.Headers{"kind": "order", "x-request-id": "r"}) {
		t.Errorf("the consumer sees %v", got)
	}
}

// A message of another publisher has the same id each time. Different messages have different ids.
func TestIdentify(t *testing.T) {
	a := amqp.Delivery{Body: []byte("a"), AppId: "app"}
	again := a
	again.Redelivered, again.DeliveryTag = true, 7
	again.Headers = amqp.Table{"x-delivery-count": int64(1)}
	check.Equal(t, identify(&a), identify(&again), "ids of one message")
	for _, other := range []amqp.Delivery{
		{Body: []byte("b"), AppId: "app"}, {Body: []byte("app"), AppId: "a"}, {Body: []byte("a")},
		{Body: []byte("a"), AppId: "app", Headers: amqp.Table{"user": "u1"}}, {Body: []byte("a"), AppId: "app", RoutingKey: "user.1.deleted"},
		{Body: []byte("a"), AppId: "app", Headers: amqp.Table{"n": amqp.Table{"a": int64(1)}}}, {Body: []byte("a"), AppId: "app", ContentEncoding: "1"},
	} {
		if identify(&other) == identify(&a) {
			t.Errorf("%+v has the id of another", other)
		}
	}
	check.Equal(t, identify(&amqp.Delivery{MessageId: "mine"}), "mine", "the id")
	if id := identify(&amqp.Delivery{MessageId: strings.Repeat("m", 600)}); len(id) > maxID {
		t.Errorf("an id of %d bytes", len(id))
	}
}

// Whatever the headers are, the values that are read are within bounds, and can be written.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte(`{"Lull-Amqp-Attempts": 3, "Lull-Amqp-Id": "x", "Lull-Amqp-Enqueued": 1700000000000, "x-delivery-count": 2}`), true)
	f.Add([]byte(`{"Lull-Amqp-Attempts": "9223372036854775807", "x-acquired-count": "9223372036854775807"}`), true)
	f.Add([]byte(`{"x-death": [{"queue": "lull.delay-03", "reason": "expired"}, {"queue": "q", "reason": "delivery_limit"}, 5]}`), false)
	f.Add([]byte(`{"Lull-Amqp-First-Seen": 1e300, "Lull-Dead-Letter": "{}"}`), false)
	f.Fuzz(func(t *testing.T, text []byte, redelivered bool) {
		var raw map[string]any
		if json.Unmarshal(text, &raw) != nil {
			return
		}
		h := table(raw)
		d := amqp.Delivery{Headers: h, Redelivered: redelivered}
		r := recordOf(h)
		if r.attempts < 0 || r.attempts > maxAttempts || len(r.id) > maxID {
			t.Fatalf("%+v", r)
		}
		for _, at := range []time.Time{r.enqueued, r.firstSeen, r.firstFailed} {
			if !at.IsZero() && (at.Year() < 1969 || at.Year() > 10000) {
				t.Fatalf("%v", at)
			}
		}
		q := &Broker{config: Config{Queue: "q"}.WithDefaults()}
		got := q.delivery(&session{}, d)
		if got.Attempt < 1 || got.Attempt > maxAttempts || got.ID == "" || len(got.ID) > maxID {
			t.Fatalf("attempt %d, id %q", got.Attempt, got.ID)
		}
		for _, s := range []queue.Settlement{{Outcome: queue.Retry}, {Outcome: queue.Defer}, {Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "r"}}} {
			_, _, m := q.successor(got.Receipt.(*receipt), s)
			if m.MessageId == "" {
				t.Fatal("no message-id")
			}
			if s.Outcome == queue.DeadLetter {
				if _, ok := queue.EnvelopeOf(headersOf(m.Headers)); !ok {
					t.Fatal("no envelope")
				}
				continue
			}
			next := recordOf(m.Headers)
			want := got.Attempt
			if s.Outcome == queue.Defer {
				want--
			}
			if next.id != got.ID || next.attempts != want {
				t.Fatalf("%v: %+v after attempt %d of %q", s.Outcome, next, got.Attempt, got.ID)
			}
			for name := range m.Headers {
				if brokerHeader(name) {
					t.Fatalf("the header %s goes along", name)
				}
			}
		}
		if death, ok := deathOf(h); ok && death.deliveries < 0 {
			t.Fatalf("%+v", death)
		}
	})
}

// table returns JSON with the types that come over AMQP.
func table(raw map[string]any) amqp.Table {
	out := amqp.Table{}
	for name, v := range raw {
		out[name] = field(v)
	}
	return out
}

func field(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return table(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = field(v[i])
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

func TestInequivalent(t *testing.T) {
	for reason, want := range map[string]Mismatch{
		"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'lull.delay-00' in vhost '/': received '20' but current is '100'":                                                              {"queue", "q", "x-message-ttl", "'20'", "'100'"},
		"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received 'quorum' but current is 'classic'":                                                                   {"queue", "q", "x-queue-type", "'quorum'", "'classic'"},
		"PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/': received the value '100' of type 'signedint' but current is none":                                         {"queue", "q", "x-delivery-limit", "'100'", "none"},
		"PRECONDITION_FAILED - inequivalent arg 'x-dead-letter-exchange' for queue 'q' in vhost '/': received the value '' of type 'longstr' but current is the value 'it's of type ' of type 'longstr'": {"queue", "q", "x-dead-letter-exchange", "''", "'it's of type '"},
		"something new": {"queue", "q", "something new", "", ""},
	} {
		got, has := inequivalent("queue", "q", reason)
		check.Equal(t, got, want, "%s", reason)
		check.Equal(t, has, choice.Either(want.What == "x-dead-letter-exchange", "longstr", ""), "the type of %s", reason)
	}
}

// The end of a message's own time, from its properties.
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, x := range map[string]struct {
		expiration string
		sent       time.Time
		left       time.Duration // 0: no end
	}{
		"none":                           {"", now, 0},
		"no number":                      {"soon", now, 0},
		"negative":                       {"-1", now, 0},
		"more than the server takes":     {"99999999999", now, 0},
		"since when is not known":        {"4000", time.Time{}, 4 * time.Second},
		"sent a second ago":              {"4000", now.Add(-time.Second), 3 * time.Second},
		"sent by a clock that is behind": {"4000", now.Add(-time.Hour), 4 * time.Second},
		"sent by a clock that is ahead":  {"4000", now.Add(time.Hour), 4 * time.Second},
		"it was to be delivered at once": {"0", time.Time{}, 1},
	} {
		got := expiry(&amqp.Delivery{Expiration: x.expiration, Timestamp: x.sent}, now)
		if want := now.Add(x.left.Truncate(time.Millisecond)); x.left == 0 && !got.IsZero() || x.left != 0 && !got.Equal(want) {
			t.Errorf("%s: %v left, want %v", name, got.Sub(now), x.left)
		}
	}
}

// The sizes are those that the client sends.
func TestFieldSize(t *testing.T) {
	t.Parallel()
	for n, v := range map[int]any{
		1: nil, 2: true, 3: int16(1), 5: int32(1), 9: time.Time{}, 6: amqp.Decimal{}, 8: "abc", 7: []byte("ab"), 10: []any{"", nil}[:1], 13: amqp.Table{"ab": 1},
	} {
		if n == 10 {
			n = 5 + 5
		}
		check.Equal(t, fieldSize(v), n, "%T: bytes", v)
	}
}
