//go:build servers

package natstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// A message that the server has given up stays in a work queue for good, and is delivered to
// nobody. The reaper makes a dead letter of it, with all that is known.
func TestReaperBuriesWhatTheServerGaveUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), short)
	b.send("poison")
	b.exhaust(1)
	b.none(2 * time.Second)
	b.equal("messages that are stranded", b.msgs(b.c.Stream), 1)
	b.reap(lullnats.Reaped{Letters: 1})
	b.equal("messages", b.msgs(b.c.Stream), 0)
	b.equal("advisories", b.msgs(b.c.WithDefaults().AdvisoryStream), 0)
	all := b.letters()
	if len(all) != 1 {
		t.Fatalf("%d letters", len(all))
	}
	l := all[0]
	if l.Reason != queue.ReasonCrashed || l.Attempts != 3 || l.Source != b.c.Stream || !strings.HasPrefix(l.OriginalID, b.c.Stream+":1:") || l.Redrives != 0 ||
		string(l.Body) != "poison" || l.Headers["kind"] != "test" {
		t.Errorf("letter %+v", *l)
	}
	b.reap(lullnats.Reaped{})
	b.equal("letters", len(b.letters()), 1)
}

// The advisory is kept until somebody reads it, also when the server is restarted.
func TestReaperComesLater(t *testing.T) {
	t.Parallel()
	r := own(t)
	b := newBench(t, r, short)
	b.send("poison")
	b.exhaust(1)
	r.restart(t)
	b.js = r.js(t)
	b.reap(lullnats.Reaped{Letters: 1})
	b.equal("letters", len(b.letters()), 1)
	b.equal("messages", b.msgs(b.c.Stream), 0)
}

// The reaper recognises a letter that a consumer had written before it was killed, and a message
// that was redriven.
func TestReaperWritesNoLetterTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), short)
	former := &queue.Envelope{Reason: "x", Source: b.c.Stream, OriginalID: "the-first", Redrives: 2}
	b.ok(b.sender.Send(bg, queue.Outgoing{Body: []byte("again"), Headers: queue.LetterHeaders(nil, former)}))
	d := b.one()
	// Settle does this before it is killed.
	e := &queue.Envelope{Reason: "schema", OriginalID: "the-first", Redrives: 2, Source: b.c.Stream, Attempts: 1}
	m := &nats.Msg{Subject: b.c.WithDefaults().DeadLetterSubject, Header: nats.Header{}, Data: d.Body}
	m.Header.Set(queue.EnvelopeHeader, e.Encode())
	if _, err := b.js.PublishMsg(bg, m, jetstream.WithMsgID(queue.DeadLetterID(b.c.Stream, b.c.Consumer, d.ID))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.one()
	}
	b.givenUp(1)
	b.reap(lullnats.Reaped{Letters: 1})
	all := b.letters()
	if len(all) != 1 || all[0].Reason != "schema" || all[0].Redrives != 2 {
		t.Errorf("%d letters, the first %+v", len(all), *all[0])
	}
	b.equal("messages", b.msgs(b.c.Stream), 0)
}

// Terminated messages: by a dead letter of ours, which exists, or by another program, which may
// have left the message in a stream that is not a work queue.
func TestReaperAndTerminated(t *testing.T) {
	t.Parallel()
	terminated := func(b *bench, want lullnats.Reaped) (all []*queue.Letter) {
		b.send("ours", "theirs")
		d := b.one()
		b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "schema", OriginalID: d.ID}})
		c, err := b.js.Consumer(bg, b.c.Stream, b.c.Consumer)
		b.ok(err)
		m, err := c.Next(jetstream.FetchMaxWait(patience / 2))
		b.ok(err)
		b.ok(m.TermWithReason("no good"))
		b.until("there are two advisories", func() bool { return b.msgs(b.c.WithDefaults().AdvisoryStream) == 2 })
		b.reap(want)
		return b.letters()
	}
	b := newBench(t, shared(t), calm)
	b.equal("letters", len(terminated(b, lullnats.Reaped{Gone: 2})), 1)

	limits := kept(t, calm, jetstream.LimitsPolicy)
	all := terminated(limits, lullnats.Reaped{Gone: 1, Letters: 1})
	if len(all) != 2 || all[1].Reason != queue.ReasonBroker || len(all[1].Errors) != 1 || all[1].Errors[0] != "no good" || string(all[1].Body) != "theirs" {
		t.Errorf("letters %d, the last %+v", len(all), *all[len(all)-1])
	}
	limits.equal("messages in a stream that keeps all", limits.msgs(limits.c.Stream), 2)
}

// kept is a queue in a stream that existed before, with that retention.
func kept(t *testing.T, c lullnats.Config, p jetstream.RetentionPolicy) *bench {
	t.Helper()
	r := shared(t)
	b := &bench{TB: t, r: r, js: r.js(t), c: fresh(c)}
	_, err := b.js.CreateStream(bg, jetstream.StreamConfig{Name: b.c.Stream, Subjects: []string{b.c.Subject}, Retention: p})
	b.ok(err)
	b.ok(lullnats.Declare(bg, b.js, b.c))
	b.open()
	return b
}

// Other consumers of the stream keep their messages.
func TestReaperTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	for _, p := range []jetstream.RetentionPolicy{jetstream.InterestPolicy, jetstream.LimitsPolicy} {
		b := kept(t, short, p)
		other, err := b.js.CreateConsumer(bg, b.c.Stream, jetstream.ConsumerConfig{Durable: "other", AckPolicy: jetstream.AckExplicitPolicy})
		b.ok(err)
		b.send("poison")
		b.exhaust(1)
		b.reap(lullnats.Reaped{Letters: 1})
		b.equal("letters", len(b.letters()), 1)
		m, err := other.Next(jetstream.FetchMaxWait(patience / 2))
		b.ok(err)
		b.equal("what the other has got", string(m.Data()), "poison")
		b.ok(m.DoubleAck(bg))
		if p == jetstream.InterestPolicy {
			b.until("the message is gone when both are done with it", func() bool { return b.msgs(b.c.Stream) == 0 })
		} else {
			b.equal("messages in a stream that keeps all", b.msgs(b.c.Stream), 1)
		}
		b.none(2 * time.Second)
	}
}

// A message whose advisory was lost is found in the stream itself. Messages that are out, waiting
// or still to come are not touched.
func TestReaperFindsWhatWasNeverReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), short)
	b.send("poison", "poison")
	b.exhaust(2)
	b.c.Lease = pace.Stretch(2 * time.Second) // from here on it is extended all the time
	b.ackWait(b.c.Lease + time.Second)
	b.open()
	b.ok(b.advisories().Purge(bg))
	b.send("fine")
	b.settle(b.one(), queue.Settlement{Outcome: queue.Ack}) // nothing is out then, and the server updates its mark
	b.send("out", "waits", "new")
	out, waits := b.one(), b.one()
	b.settle(waits, queue.Settlement{Outcome: queue.Retry, After: time.Hour})
	r := b.reaper()
	if got, err := r.Reap(bg); err != nil || got != (lullnats.Reaped{}) {
		t.Errorf("at first sight: %+v, %v; it may have been acknowledged just now", got, err)
	}
	written := 0
	b.until("both are found", func() bool {
		_, err := b.Extend(bg, out, time.Second)
		b.ok(err)
		got, err := r.Reap(bg)
		b.ok(err)
		written += got.Letters
		return written >= 2
	})
	for range 3 {
		got, err := r.Reap(bg)
		b.ok(err)
		written += got.Letters
	}
	b.equal("letters written", written, 2)
	for _, l := range b.letters() {
		b.equal("letter", string(l.Body), "poison")
	}
	b.equal("messages that are left", b.msgs(b.c.Stream), 3)
	b.settle(out, queue.Settlement{Outcome: queue.Ack})
}

// A message whose advisory was lost is found although nothing is acknowledged afterwards. One that
// still waits is not taken for one.
func TestReaperFindsWhatIsAlone(t *testing.T) {
	t.Parallel()
	for _, waiting := range []bool{false, true} {
		t.Run(fmt.Sprint("another waits: ", waiting), func(t *testing.T) {
			t.Parallel()
			c := short
			c.Lease = pace.Stretch(time.Second) // two settlements are made within it
			b := newBench(t, shared(t), c)
			b.send("poison")
			b.exhaust(1)
			if waiting {
				b.send("waits")
				b.settle(b.one(), queue.Settlement{Outcome: queue.Retry, After: time.Second})
			}
			b.ok(b.advisories().Purge(bg))
			r := b.reaper()
			if waiting {
				if got, err := r.Reap(bg); err != nil || got != (lullnats.Reaped{}) {
					t.Errorf("while another waits: %+v, %v", got, err)
				}
				b.settle(b.one(), queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "x"}})
			}
			b.until("it is found", func() bool {
				got, err := r.Reap(bg)
				b.ok(err)
				return got.Letters == 1
			})
			b.equal("messages", b.msgs(b.c.Stream), 0)
		})
	}
}

// A reaper that gets no advisory although there is one returns an error, until it gets it.
func TestReaperIsCutShort(t *testing.T) {
	t.Parallel()
	limits := func(change func(*jetstream.ConsumerConfig)) func(*bench) {
		return func(b *bench) {
			stream, consumer := b.reapers()
			b.update(stream, consumer, change)
		}
	}
	for name, x := range map[string]struct {
		change func(*bench)
		fails  bool
		user   string
	}{
		"the batch is limited to 1":   {change: limits(func(c *jetstream.ConsumerConfig) { c.MaxRequestBatch = 1 })},
		"the wait is limited to 1 ms": {change: limits(func(c *jetstream.ConsumerConfig) { c.MaxRequestExpires = time.Millisecond }), fails: true},
		"the consumer is paused": {change: func(b *bench) {
			stream, consumer := b.reapers()
			_, err := b.js.PauseConsumer(bg, stream, consumer, time.Now().Add(time.Hour))
			b.ok(err)
		}, fails: true},
		"it may not fetch":               {change: func(*bench) {}, user: "fetch", fails: true},
		"it may not read the queue":      {change: func(*bench) {}, user: "read", fails: true},
		"it may not write dead letters":  {change: func(*bench) {}, user: "bury", fails: true},
		"it may do all, and has nothing": {change: func(b *bench) { b.reap(lullnats.Reaped{Letters: 1}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := own(t)
			c := short
			c.Stream = "S"
			b := newBench(t, r, c)
			b.send("poison")
			b.exhaust(1)
			x.change(b)
			js := b.js
			if x.user != "" {
				d := b.c.WithDefaults()
				r.deny = map[string]string{
					"fetch": "$JS.API.CONSUMER.MSG.NEXT." + d.AdvisoryStream + ".>", "read": "$JS.API.STREAM.MSG.GET." + d.Stream, "bury": d.DeadLetterSubject,
				}[x.user]
				r.restart(t)
				js = r.js(t)
			}
			reaper, err := lullnats.NewReaper(bg, js, b.c)
			b.ok(err)
			got, err := reaper.Reap(bg)
			switch {
			case x.fails && (err == nil || got.Letters > 0):
				t.Errorf("%+v, %v: want an error", got, err)
			case !x.fails && (err != nil || b.msgs(b.c.Stream) > 0):
				t.Errorf("%+v, %v, and %d messages are left", got, err, b.msgs(b.c.Stream))
			}
			if x.user != "" && (err == nil || !strings.Contains(err.Error(), "ermissions")) {
				t.Errorf("%v: want the permission in it", err)
			}
			t.Log(err)
		})
	}
}

func TestReapersTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), short)
	const n = 40
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	b.exhaust(n)
	var work sync.WaitGroup
	for range 4 {
		r := b.reaper()
		work.Go(func() {
			if _, err := r.Reap(bg); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	b.reapRest()
	whole(b, n)
}

// whole checks that n messages are dead letters, each once, and nothing else is left.
func whole(b *bench, n int) {
	b.Helper()
	seen := map[string]int{}
	for _, l := range b.letters() {
		seen[string(l.Body)]++
	}
	b.equal("letters", len(seen), n)
	for body, times := range seen {
		check.Equal(b, times, 1, "letters of %s", body)
	}
	b.equal("messages", b.msgs(b.c.Stream), 0)
	b.equal("advisories", b.msgs(b.c.WithDefaults().AdvisoryStream), 0)
}

// reapHere makes a process a reaper: the server's address and the stream's name.
const reapHere = "LULLNATS_TEST_REAPER"

// Reapers that are killed at any moment lose nothing, and write nothing twice.
func TestReapersKilled(t *testing.T) {
	if at, stream, ok := strings.Cut(os.Getenv(reapHere), " "); ok {
		victim(t, at, stream)
		return
	}
	if testing.Short() {
		t.Skip("it is not short to kill processes")
	}
	t.Parallel()
	r := own(t)
	c := short
	c.Lease = time.Second // AckWait of 2 s: all of them are delivered within it
	b := newBench(t, r, c)
	stream, consumer := b.reapers()
	b.update(stream, consumer, func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second }) // for what a reaper had that was killed
	const n = 150
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	b.exhaust(n)
	self, err := os.Executable()
	b.ok(err)
	kills := 0
	draw := seed.Rand(t)
	letters := func() int { return b.msgs(b.c.WithDefaults().DeadLetters) }
	for deadline := time.Now().Add(patience); letters() < n*9/10 && time.Now().Before(deadline); kills++ {
		p := exec.Command(self, "-test.run=^TestReapersKilled$")
		p.Env = append(os.Environ(), reapHere+"="+r.url()+" "+b.c.Stream)
		before := letters()
		b.ok(p.Start())
		for time.Now().Before(deadline) && letters() == before {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(draw.Int64N(int64(10 * time.Millisecond))))
		p.Process.Kill()
		p.Wait()
	}
	b.reapRest()
	t.Logf("%d reapers were killed over %d messages", kills, n)
	whole(b, n)
}

func victim(t *testing.T, at, stream string) {
	nc, js, err := dial(at)
	must(t, err)
	defer nc.Close()
	c := short
	c.Lease, c.Stream, c.Consumer, c.Subject = time.Second, stream, "worker", "q"+strings.TrimPrefix(stream, "Q")
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	r, err := lullnats.NewReaper(ctx, js, c)
	must(t, err)
	must(t, r.Run(ctx, 100*time.Millisecond, func(err error) { t.Error(err) }))
}

// Without a limit there is nothing to reap, and nothing to declare for that.
func TestNoReaperWithoutALimit(t *testing.T) {
	t.Parallel()
	c := short
	c.DeliveryLimit = -1
	b := newBench(t, shared(t), c)
	if _, err := lullnats.NewReaper(bg, b.js, b.c); err == nil {
		t.Error("a reaper of nothing")
	}
	if _, err := b.js.Stream(bg, b.c.WithDefaults().AdvisoryStream); err == nil {
		t.Error("a stream for advisories that there are not")
	}
	b.send("poison")
	for range 5 {
		b.one()
	}
}
