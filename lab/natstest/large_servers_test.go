//go:build servers

package natstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// A message for which there is no room with what a retry or a dead letter adds, as other publishers
// send them, is retried where that adds nothing to it, and becomes a dead letter that has its body,
// and as much else as fits.
func TestRule21MessagesThatFillTheirRoom(t *testing.T) {
	t.Parallel()
	const payload = 1 << 20
	long := []string{strings.Repeat("cause ", 600)}
	for name, x := range map[string]struct {
		header nats.Header
		body   int
		reason string
		said   bool // that headers are shortened
		kept   bool // the other header
	}{
		"a long header":          {nats.Header{"stack": {strings.Repeat("s", 65_400)}, "kind": {"order"}}, 10, "schema", true, true},
		"a long body":            {nats.Header{"kind": {"order"}}, payload - 2000, "schema", false, true},
		"a body that fills it":   {nats.Header{"kind": {"order"}, "x": {strings.Repeat("x", 180)}}, payload - 310, "schema", false, false},
		"nothing else fits":      {nil, payload, queue.ReasonBroker, false, false},
		"the envelope does not":  {nats.Header{"kind": {"order"}}, payload - 30, queue.ReasonBroker, false, true},
		"many headers":           {headers(1558), 10, "schema", true, false},
		"a long header and body": {nats.Header{"stack": {strings.Repeat("s", 30_000)}, "kind": {"order"}}, payload - 30_100, "schema", true, true},
	} {
		for _, schedules := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", schedules), func(t *testing.T) {
				b := newBench(t, shared(t), lullnats.Config{Lease: patience, Schedules: schedules})
				body := strings.Repeat("b", x.body)
				_, err := b.js.PublishMsg(bg, &nats.Msg{Subject: b.c.Subject, Header: x.header, Data: []byte(body)})
				b.ok(err)
				d, tooLarge := b.one(), false
				for _, s := range []queue.Settlement{{Outcome: queue.Retry, After: 10 * time.Millisecond}, {Outcome: queue.Defer}} {
					err := b.Settle(bg, d, s)
					if tooLarge = errors.Is(err, queue.ErrTooLarge) && schedules; tooLarge {
						break
					}
					b.ok(err)
					d = b.one()
				}
				if d.Attempt < 2 && !tooLarge || string(d.Body) != body {
					t.Errorf("attempt %d with %d bytes", d.Attempt, len(d.Body))
				}
				b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "schema", Errors: long, OriginalID: d.ID}})
				b.equal("messages", b.msgs(b.c.Stream), 0)
				all := b.letters()
				if len(all) != 1 {
					t.Fatalf("%d letters", len(all))
				}
				l := all[0]
				said := len(l.Errors) > 0 && strings.Contains(l.Errors[0], "shortened")
				if l.Reason != x.reason || string(l.Body) != body || said != x.said || (l.Headers["kind"] == "order") != x.kept {
					t.Errorf("reason %s, %d bytes, kind %q, errors %.200q", l.Reason, len(l.Body), l.Headers["kind"], l.Errors)
				}
				if text := x.header.Get("stack"); text != "" && (len(l.Headers["stack"]) < len(text)-6000 || !strings.HasPrefix(text, l.Headers["stack"])) {
					t.Errorf("%d of %d bytes are left", len(l.Headers["stack"]), len(text))
				}
			})
		}
	}
}

// headers returns n headers of 42 bytes.
func headers(n int) nats.Header {
	h := nats.Header{}
	for i := range n {
		h[fmt.Sprintf("h-%08d", i)] = []string{strings.Repeat("v", 28)}
	}
	return h
}
