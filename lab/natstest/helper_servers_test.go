//go:build servers

package natstest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

// patience is how long a test waits for something.
const patience = time.Minute

// bench is one queue, declared.
type bench struct {
	testing.TB
	r  *running
	js jetstream.JetStream
	c  lullnats.Config
	*lullnats.Broker
	sender *lullnats.Sender
}

// calm is a queue whose leases do not lapse here. short is one with the shortest leases that the
// server allows, for tests that wait for that and settle nothing.
var calm = lullnats.Config{Lease: patience, Policy: lull.Policy{Attempts: 1}, DeliveryLimit: 3}
var short = lullnats.Config{Lease: 100 * time.Millisecond, Policy: lull.Policy{Attempts: 1}, DeliveryLimit: 3}

func newBench(t testing.TB, r *running, c lullnats.Config) *bench {
	t.Helper()
	b := &bench{TB: t, r: r, js: r.js(t), c: fresh(c)}
	b.ok(lullnats.Declare(bg, b.js, b.c))
	b.open()
	return b
}

func (b *bench) open() {
	b.Helper()
	var err error
	b.Broker, err = lullnats.Open(bg, b.js, b.c)
	b.ok(err)
	b.sender, err = lullnats.NewSender(b.js, b.c.Stream, strings.NewReplacer("*", "x", ">", "x").Replace(b.c.Subject))
	b.ok(err)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) ok(err error) { b.Helper(); must(b, err) }

func (b *bench) send(bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		b.ok(b.sender.Send(bg, queue.Outgoing{Body: []byte(body), Headers: queue.Headers{"kind": "test"}}))
	}
}

// one waits for one message.
func (b *bench) one() *queue.Delivery {
	b.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		got, err := b.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
		b.ok(err)
		if len(got) > 0 {
			return got[0]
		}
	}
	b.Fatal("no message")
	return nil
}

// none checks that nothing comes within d.
func (b *bench) none(d time.Duration) {
	b.Helper()
	ctx, cancel := context.WithTimeout(bg, d)
	defer cancel()
	for ctx.Err() == nil {
		got, err := b.Receive(ctx, queue.Want{Max: 10, Lease: time.Second})
		if len(got) > 0 {
			b.Fatalf("%q came, at attempt %d", got[0].Body, got[0].Attempt)
		}
		if err != nil && ctx.Err() == nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) settle(d *queue.Delivery, s queue.Settlement) {
	b.Helper()
	b.ok(b.Settle(bg, d, s))
}

func (b *bench) stream(name string) jetstream.Stream {
	b.Helper()
	s, err := b.js.Stream(bg, name)
	b.ok(err)
	return s
}

// advisories is the stream of what the server reports.
func (b *bench) advisories() jetstream.Stream {
	b.Helper()
	return b.stream(b.c.WithDefaults().AdvisoryStream)
}

// msgs returns how many messages a stream has.
func (b *bench) msgs(name string) int { b.Helper(); return int(b.stream(name).CachedInfo().State.Msgs) }

// update changes a consumer on the server.
func (b *bench) update(stream, consumer string, change func(*jetstream.ConsumerConfig)) {
	b.Helper()
	c, err := b.js.Consumer(bg, stream, consumer)
	b.ok(err)
	config := c.CachedInfo().Config
	change(&config)
	_, err = b.js.UpdateConsumer(bg, stream, config)
	b.ok(err)
}

// reapers returns the names of the reapers' consumer, and of its stream.
func (b *bench) reapers() (stream, consumer string) {
	d := b.c.WithDefaults()
	return d.AdvisoryStream, "lull-reaper-" + d.Stream + "-" + d.Consumer
}

func (b *bench) letters() (all []*queue.Letter) {
	b.Helper()
	from, err := lullnats.Letters(bg, b.js, b.c)
	b.ok(err)
	for {
		got, err := from.Next(bg, 7)
		if err != nil {
			return all
		}
		all = append(all, got...)
	}
}

func (b *bench) until(what string, so func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waited for %v until %s", patience, what)
		}
	}
}

func (b *bench) equal(what string, got, want any) {
	b.Helper()
	check.Equal(b, got, want, "%s", what)
}

// givenUp waits until the server has given n messages up. The server finds that out when somebody
// asks for messages.
func (b *bench) givenUp(n int) {
	b.Helper()
	b.until("the server has given them up", func() bool {
		b.none(50 * time.Millisecond)
		return b.msgs(b.c.WithDefaults().AdvisoryStream) >= n
	})
}

// exhaust receives messages until the server gives them up.
func (b *bench) exhaust(n int) {
	b.Helper()
	before := b.msgs(b.c.WithDefaults().AdvisoryStream)
	for got := 0; got < n*b.c.DeliveryLimit; {
		d, err := b.Receive(bg, queue.Want{Max: 100, Lease: time.Second})
		b.ok(err)
		got += len(d)
	}
	b.givenUp(before + n)
}

func (b *bench) reaper() *lullnats.Reaper {
	b.Helper()
	r, err := lullnats.NewReaper(bg, b.js, b.c)
	b.ok(err)
	return r
}

func (b *bench) reap(want lullnats.Reaped) {
	b.Helper()
	b.reaped(b.reaper, want)
}

// reapRest reaps until no advisory is left.
func (b *bench) reapRest() {
	b.Helper()
	b.until("the rest is reaped", func() bool {
		_, err := b.reaper().Reap(bg)
		b.ok(err)
		return b.msgs(b.c.WithDefaults().AdvisoryStream) == 0
	})
}

// reaped checks what reapers do until they have done as much. One may find nothing, because the
// server hands an advisory out a moment after it has stored it. Each is a new one, which has not
// seen a message before, so that it writes letters only because of advisories.
func (b *bench) reaped(reaper func() *lullnats.Reaper, want lullnats.Reaped) {
	b.Helper()
	number := func(r lullnats.Reaped) int { return r.Letters + r.Gone + r.Failed }
	var all lullnats.Reaped
	b.until("as much is reaped", func() bool {
		got, err := reaper().Reap(bg)
		b.ok(err)
		all.Letters += got.Letters
		all.Gone += got.Gone
		all.Failed += got.Failed
		return number(all) >= number(want)
	})
	b.equal("reaped", all, want)
}
