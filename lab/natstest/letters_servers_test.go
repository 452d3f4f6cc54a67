//go:build servers

package natstest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// Two consumers of one stream, each of which gets all messages, put their dead letters into one
// stream. A message that both give up is two letters.
func TestRule21ConsumersShareAStreamOfDeadLetters(t *testing.T) {
	t.Parallel()
	js := shared(t).js(t)
	name := fresh(lullnats.Config{}).Stream
	_, err := js.CreateStream(bg, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Retention: jetstream.InterestPolicy})
	must(t, err)
	_, err = js.CreateStream(bg, jetstream.StreamConfig{Name: name + "_DEAD", Subjects: []string{"dead." + name + ".>"}})
	must(t, err)
	var both []lullnats.Config
	for _, consumer := range []string{"billing", "shipping"} {
		c := lullnats.Config{Stream: name, Consumer: consumer, Subject: name + ".>"}
		must(t, lullnats.Declare(bg, js, c))
		both = append(both, c)
	}
	sender, err := lullnats.NewSender(js, name, name+".new")
	must(t, err)
	const n = 50
	for i := range n {
		must(t, sender.Send(bg, queue.Outgoing{ID: fmt.Sprint("order-", i), Body: fmt.Append(nil, i)}))
	}
	for _, c := range both {
		b, err := lullnats.Open(bg, js, c)
		must(t, err)
		d, err := lull.NewDependency("ledger", queue.Policy(), lull.WithRand(seed.Source(t)))
		must(t, err)
		// Both have one name, as in the package comment.
		q, err := queue.New(name, b, d, func(_ context.Context, m *queue.Message) error { return lull.Permanent(errors.New("no")) }, queue.Config{}, quiet)
		must(t, err)
		ctx, cancel := context.WithTimeout(bg, patience)
		go func() {
			for q.Counts().DeadLettered < n && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			cancel()
		}()
		must(t, q.Run(ctx))
	}
	for _, c := range both {
		from, err := lullnats.Letters(bg, js, c)
		must(t, err)
		seen := map[string]bool{}
		_, err = queue.Inspect(bg, from, queue.Filter{}, func(l *queue.Letter) (bool, error) {
			seen[string(l.Body)] = true
			check.Equal(t, l.OriginalID, "order-"+string(l.Body), "the id of the letter")
			return true, nil
		})
		must(t, err)
		if len(seen) != n {
			t.Errorf("%s gave %d messages up, and has %d letters", c.Consumer, n, len(seen))
		}
	}
}

// quiet is for consumers whose losses nobody needs to read.
var quiet = queue.WithObserver(func(context.Context, queue.Event) {})

// A redrive keeps everything that a retry keeps: headers with names and several values that
// queue.Headers does not allow, and the subject, if the redrive may choose it.
func TestRedriveKeepsWhatOthersSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ under, want string }{{"%s.new", "%s.new"}, {"%s.>", "%s.eu.placed"}} {
		config := fresh(calm)
		config.Subject = config.Stream + ".>"
		b := &bench{TB: t, r: shared(t), js: shared(t).js(t), c: config}
		b.ok(lullnats.Declare(bg, b.js, b.c))
		b.open()
		sent := nats.Header{"tenant_id": {"t1"}, "Accept": {"a", "b"}, "X-Plain": {"1"}}
		m := &nats.Msg{Subject: b.c.Stream + ".eu.placed", Header: nats.Header{}, Data: []byte("{}")}
		for name, values := range sent {
			m.Header[name] = values
		}
		_, err := b.js.PublishMsg(bg, m)
		b.ok(err)
		d := b.one()
		b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: d.ID}})
		from, err := lullnats.Letters(bg, b.js, b.c)
		b.ok(err)
		to, err := lullnats.NewSender(b.js, b.c.Stream, fmt.Sprintf(c.under, b.c.Stream))
		b.ok(err)
		p, err := queue.Redrive(bg, from, to, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
		b.ok(err)
		b.equal("Redrive", p.String(), "moved 1 of 1 (1 seen)")
		got, err := b.stream(b.c.Stream).GetLastMsgForSubject(bg, b.c.Stream+".>")
		b.ok(err)
		b.equal("subject", got.Subject, fmt.Sprintf(c.want, b.c.Stream))
		for name, values := range sent {
			check.Slices(t, got.Header[name], values, "header %s", name)
		}
		for name := range got.Header {
			if _, there := sent[name]; !there && name != queue.EnvelopeHeader && !strings.HasPrefix(name, "Nats-") {
				t.Errorf("header %s was added: %q", name, got.Header[name])
			}
		}
		again := b.one()
		if e, ok := queue.EnvelopeOf(again.Headers); !ok || e.OriginalID != d.ID || e.Redrives != 1 {
			t.Errorf("envelope %+v", e)
		}
	}
}

// With wildcards a letter goes back under its old subject, or is refused.
func TestRedriveUnderSubjectsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), calm)
	b.send("x")
	d := b.one()
	b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: d.ID}})
	to, err := lullnats.NewSender(b.js, b.c.Stream, "elsewhere.>")
	b.ok(err)
	from, err := lullnats.Letters(bg, b.js, b.c)
	b.ok(err)
	said := ""
	p, err := queue.Redrive(bg, from, to, queue.RedriveConfig{}, func(s queue.LetterResult) { said = s.Err.Error() })
	b.ok(err)
	b.equal("Redrive", p.String(), "moved 0 of 1 (1 seen), 1 failed")
	if !strings.Contains(said, "which is none of elsewhere.>: name one") {
		t.Error(said)
	}
	if err := to.Send(bg, queue.Outgoing{}); err == nil || !strings.Contains(err.Error(), "name one in place of elsewhere.>") {
		t.Errorf("Send: %v", err)
	}
	b.equal("letters that are left", len(b.letters()), 1)
}
