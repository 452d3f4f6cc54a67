package lullnats

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

func TestParseReply(t *testing.T) {
	at := time.Unix(0, 1_700_000_000_123_456_789).UTC()
	want := meta{stream: "ORDERS", consumer: "billing", delivered: 3, seq: 17, stored: at}
	for _, s := range []string{
		"$JS.ACK.ORDERS.billing.3.17.99.1700000000123456789.5",
		"$JS.ACK._.hash.ORDERS.billing.3.17.99.1700000000123456789.5",
		"$JS.ACK.hub.hash.ORDERS.billing.3.17.99.1700000000123456789.5.random",
	} {
		got, err := parseReply(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "_INBOX.x", "$JS.ACK", "$JS.ACK.S.c.1.2.3.4", "$JS.ACK.S.c.1.2.3.4.5.6", "$JS.FC.S.c.1.2.3.4.5",
		"$JS.ACK.S.c.0.2.3.4.5", "$JS.ACK.S.c.1.0.3.4.5", "$JS.ACK.S.c.x.2.3.4.5", "$JS.ACK.S.c.1.-2.3.4.5", "$JS.ACK.S.c.1.2.3.x.5",
		"$JS.ACK.S.c.99999999999.2.3.4.5", "$JS.ACK..c.1.2.3.4.5",
	} {
		if got, err := parseReply(s); !errors.Is(err, errReply) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	check.Equal(t, id("ORDERS", 17, at), "ORDERS:17:"+strconv.FormatInt(1_700_000_000_123_456_789, 36), "id")
	if id("S", 1, at) == id("S", 1, at.Add(1)) || id("S", 1, at) == id("S", 2, at) || id("S", 1, at) == id("T", 1, at) {
		t.Error("ids of different messages are the same")
	}
}

// Every reply subject of the server is read without a panic, and the values are sensible.
func FuzzParseReply(f *testing.F) {
	f.Add("$JS.ACK.ORDERS.billing.3.17.99.1700000000123456789.5")
	f.Add("$JS.ACK._.hash.ORDERS.billing.3.17.99.1700000000123456789.5.x")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parseReply(s)
		if err != nil {
			return
		}
		if m.delivered < 1 || m.seq < 1 || m.stream == "" || m.consumer == "" {
			t.Errorf("%q: %+v", s, m)
		}
		if text := id(m.stream, m.seq, m.stored); text == "" {
			t.Error("no id")
		}
	})
}

// Headers arrive as they were sent, through all changes that NATS makes on the way.
func FuzzHeaders(f *testing.F) {
	f.Add("kind", "test", "group")
	f.Add("a", " x\r\ny ", "\n")
	f.Add("Nats-Rollup", "all", "")
	f.Fuzz(func(t *testing.T, name, value, group string) {
		h := queue.Headers{"other": "x", name: value}
		out, err := toHeader(h, group)
		if err != nil {
			if v := lull.Classify(err); v.Kind != lull.KindPermanent || v.Code == engine.CodeUnclassified {
				t.Errorf("%v (%+v)", err, v)
			}
			return
		}
		m := &nats.Msg{Subject: "x", Header: out}
		got, g := fromHeader(onTheWire(t, m))
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", h) || g != group {
			t.Errorf("%q of %q came as %q of %q", h, group, got, g)
		}
		for name := range out {
			if strings.HasPrefix(name, "Nats-") {
				t.Errorf("an order to the server: %s", name)
			}
		}
	})
}

// onTheWire returns the header of m as its receiver reads it.
func onTheWire(t *testing.T, m *nats.Msg) nats.Header {
	t.Helper()
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	for name, values := range m.Header {
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n") {
				t.Errorf("header %s: %q would end it", name, v)
			}
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	h, err := nats.DecodeHeadersMsg([]byte(b.String()))
	if err != nil {
		t.Fatalf("%q: %v", b.String(), err)
	}
	return h
}

func TestMoved(t *testing.T) {
	at := stampOf(time.Unix(1_700_000_000, 123_456_789))
	for _, want := range []moved{
		{Version: 1, ID: "order-17", Origin: "S:1:x", Attempts: 3, Enqueued: at, Seen: at + 1e9, Failed: at + 60e9},
		{Version: 1, ID: strings.Repeat("ü", 200), Origin: "S:2:x", Enqueued: at},
	} {
		got, ok := movedOf(nats.Header{movedHeader: {want.encode()}})
		if !ok || got != want {
			t.Errorf("%+v came as %+v, %v", want, got, ok)
		}
	}
	for _, text := range []string{"", "x", "{}", `{"v":1}`, `{"v":2,"id":"x"}`, `{"v":1,"id":"x","attempts":-1}`, `{"v":1,"id":"x","sent":-1}`, `{"v":1,"id":"` + strings.Repeat("x", 513) + `"}`, strings.Repeat(" ", 3000) + `{"v":1,"id":"x"}`} {
		if m, ok := movedOf(nats.Header{movedHeader: {text}}); ok {
			t.Errorf("%.40q: %+v", text, m)
		}
	}
}

// Whatever a header contains, a message has a sensible number, and the record that is read can be
// written and read again unchanged.
func FuzzMoved(f *testing.F) {
	f.Add(moved{ID: "order-17", Origin: "S:1:x", Attempts: 3, Enqueued: 1e9}.encode())
	f.Add(`{"v":1,"id":"x","attempts":1e3}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := movedOf(nats.Header{movedHeader: {text}})
		if !ok {
			return
		}
		if m.ID == "" || len(m.ID) > 512 || m.Attempts < 0 {
			t.Errorf("%q: %+v", text, m)
		}
		if again, ok := movedOf(nats.Header{movedHeader: {m.encode()}}); !ok || again != m {
			t.Errorf("%+v again is %+v, %v", m, again, ok)
		}
	})
}

func FuzzParseAdvisory(f *testing.F) {
	f.Add([]byte(`{"type":"io.nats.jetstream.advisory.v1.max_deliver","id":"x","timestamp":"2026-01-02T03:04:05.678Z","stream":"S","consumer":"c","stream_seq":7,"deliveries":3}`))
	f.Add([]byte(`{"type":"io.nats.jetstream.advisory.v1.terminated","stream_seq":7,"deliveries":3,"reason":"lull: x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := parseAdvisory(text)
		if err == nil && (a.Seq == 0 || a.Deliveries < 0 || a.Type != typeExceeded && a.Type != typeTerminated) {
			t.Errorf("%s: %+v", text, a)
		}
	})
}

// A message waits at least as long as it should by the server's clock, whatever that clock shows.
func TestClock(t *testing.T) {
	b := &Broker{}
	sent := time.Unix(1_800_000_000, 0)
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		for _, took := range []time.Duration{0, time.Second} { // until the server had looked at its clock
			server := sent.Add(took + ahead)
			if got := b.recordClock(sent, server); got < ahead || got > ahead+took {
				t.Errorf("a clock that is %v ahead, seen after %v: %v", ahead, took, got)
			}
		}
	}
	check.Equal(t, b.recordClock(sent, time.Time{}), 0, "a server that does not say its time")
}
