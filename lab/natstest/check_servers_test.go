//go:build servers

package natstest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// Check reports everything at once, and Declare makes all of it, also when several run at once.
func TestDeclare(t *testing.T) {
	t.Parallel()
	js := shared(t).js(t)
	c := fresh(lullnats.Config{Schedules: true, Concurrency: 64})
	lines(t, lullnats.Check(bg, js, c),
		"stream Q is missing: want a stream with the subject q",
		"stream Q_DEAD is missing: want a stream for dead letters with the subject dead.Q.worker",
		"stream Q_worker_ADVISORIES is missing: want a stream for the server's advisories, with the subjects $JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.Q.worker and $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.Q.worker (or a negative Config.DeliveryLimit)",
	)
	_, err := lullnats.Open(bg, js, c)
	if v := lull.Classify(err); v.Kind != lull.KindPermanent || v.Code == engine.CodeUnclassified || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("Open of nothing: %v (%+v)", err, v)
	}
	var work sync.WaitGroup
	for range 8 {
		js := shared(t).js(t)
		work.Go(func() {
			if err := lullnats.Declare(bg, js, c); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	lines(t, lullnats.Check(bg, js, c))
	if err := lullnats.Declare(bg, js, c); err != nil {
		t.Error(err)
	}
	// A part of it is deleted.
	must(t, js.DeleteConsumer(bg, c.Stream, c.Consumer))
	lines(t, lullnats.Check(bg, js, c), "consumer worker of Q is missing: want a durable pull consumer with explicit acknowledgements")
	if err := lullnats.Declare(bg, js, c); err != nil {
		t.Error(err)
	}
	// Existing objects do not change, and Declare reports what is wrong with them.
	c.Policy, c.Lease, c.MaxAge = queue.Policy(), time.Minute, time.Hour
	c.Policy.Attempts = 20
	want := []string{
		"consumer worker of Q: AckWait is 31s: want 1m1s, which is Lease and a second",
		"consumer worker of Q: MaxDeliver is 15: want 25, or Config.DeliveryLimit to say what it is",
	}
	lines(t, lullnats.Declare(bg, js, c), want...)
	lines(t, lullnats.Check(bg, js, c), want...)
}

// lines checks an error line by line. The names of the queue are Q and q there.
func lines(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = numbers.Replace(got[i])
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d is\n%q, want\n%q", i+1, g, w)
		}
	}
}

// numbers removes the numbers from the names that fresh returns.
var numbers = func() *strings.Replacer {
	var pairs []string
	for n := 999; n > 0; n-- {
		s := strconv.Itoa(n)
		pairs = append(pairs, "Q"+s, "Q", "q"+s, "q")
	}
	return strings.NewReplacer(pairs...)
}()

// Everything that would break a promise is named.
func TestCheckNamesEverything(t *testing.T) {
	t.Parallel()
	js := shared(t).js(t)
	c := fresh(lullnats.Config{Concurrency: 50})
	create := func(s jetstream.StreamConfig) {
		t.Helper()
		if _, err := js.CreateStream(bg, s); err != nil {
			t.Fatal(err)
		}
	}
	create(jetstream.StreamConfig{
		Name: c.Stream, Subjects: []string{c.Subject + ".>"}, MaxAge: time.Hour, MaxMsgs: 10, MaxMsgsPerSubject: 1, Duplicates: time.Second,
	})
	create(jetstream.StreamConfig{
		Name: c.Stream + "_DEAD", Subjects: []string{"x." + c.Stream}, Retention: jetstream.WorkQueuePolicy, MaxBytes: 1000, MaxMsgSize: 100, DenyDelete: true,
	})
	create(jetstream.StreamConfig{Name: c.Stream + "_worker_ADVISORIES", Subjects: []string{"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + c.Stream + ".*"}})
	bad := jetstream.ConsumerConfig{
		Durable: c.Consumer, FilterSubject: c.Subject + ".a", AckPolicy: jetstream.AckAllPolicy, BackOff: []time.Duration{time.Second, time.Minute},
		MaxDeliver: 5, MaxAckPending: 20, HeadersOnly: true, InactiveThreshold: time.Hour,
	}
	if _, err := js.CreateConsumer(bg, c.Stream, bad); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"stream Q: Subjects is q.>: want one that has q",
		"stream Q: MaxAge is 1h0m0s: want 0: the server drops what is older, dead letter or not",
		"stream Q: Discard is DiscardOld: want New, or no MaxMsgs and MaxBytes: the server drops the oldest messages for new ones",
		"stream Q: MaxMsgsPerSubject is 1: want no limit: the server drops messages for others with their subject",
		"stream Q: Duplicates is 1s: want at least 2m0s",
		"consumer worker of Q: FilterSubject is q.a: want one that has q",
		"consumer worker of Q: InactiveThreshold is 1h0m0s: want 0, of a durable consumer: the server deletes it with all that it knows",
		"consumer worker of Q: AckPolicy is AckAll: want explicit",
		"consumer worker of Q: BackOff is [1s 1m0s]: want none: its first time is the lease instead of AckWait, and it is not heeded when a message fails",
		"consumer worker of Q: MaxDeliver is 5: want 15, or Config.DeliveryLimit to say what it is",
		"consumer worker of Q: HeadersOnly is true: want false",
		"consumer worker of Q: MaxAckPending is 20: want at least Concurrency, 50",
		"stream Q_DEAD: Subjects is x.Q: want one that has dead.Q.worker",
		"stream Q_DEAD: Retention is WorkQueue: want Limits: dead letters are kept until they are removed",
		"stream Q_DEAD: Discard is DiscardOld: want New, or no MaxMsgs and MaxBytes: the server drops the oldest dead letters for new ones",
		"stream Q_DEAD: MaxMsgSize is 100: want 4096 more than that of Q (-1), or no limit",
		"stream Q_DEAD: DenyDelete is true: want false: redriven letters are deleted",
		"stream Q_worker_ADVISORIES: Subjects is $JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.Q.*: want one that has $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.Q.worker",
		"consumer lull-reaper-Q-worker of Q_worker_ADVISORIES is missing: want a durable pull consumer of $JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.Q.worker and $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.Q.worker",
	}
	lines(t, lullnats.Check(bg, js, c), want...)
	if _, err := lullnats.Open(bg, js, c); err == nil || lull.Classify(err).Kind != lull.KindPermanent {
		t.Errorf("Open: %v", err)
	}
	// With schedules Check looks at more.
	c.Schedules = true
	err := lullnats.Check(bg, js, c)
	for _, w := range []string{"Retention is Limits: want WorkQueue", "AllowMsgSchedules is false: want true (from server 2.12 on; this one is 2.", "want one that has later."} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("with schedules: %v, want %s", err, w)
		}
	}
	// A push consumer, and one for order.
	push := fresh(lullnats.Config{Order: queue.Total})
	create(jetstream.StreamConfig{Name: push.Stream, Subjects: []string{push.Subject}})
	nc, err := nats.Connect(shared(t).url())
	must(t, err)
	defer nc.Close()
	old, err := nc.JetStream()
	must(t, err)
	if _, err := old.AddConsumer(push.Stream, &nats.ConsumerConfig{Durable: push.Consumer, DeliverSubject: "x", AckPolicy: nats.AckExplicitPolicy, AckWait: time.Second}); err != nil {
		t.Fatal(err)
	}
	err = lullnats.Check(bg, js, push)
	for _, w := range []string{"DeliverSubject is x: want none", "AckWait is 1s: want at least 1.1s", "MaxAckPending is 1000: want 1, as Order is total"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("a push consumer: %v, want %s", err, w)
		}
	}
}

// If the server cannot be asked, nothing is reported as missing, and the error is not permanent.
func TestCheckWithoutServer(t *testing.T) {
	t.Parallel()
	r := own(t)
	js := r.js(t)
	c := fresh(lullnats.Config{Lease: 10 * time.Minute})
	r.stop()
	for js.Conn().IsConnected() {
		time.Sleep(time.Millisecond)
	}
	b, err := lullnats.Open(bg, js, c)
	reaper, err2 := lullnats.NewReaper(bg, js, c)
	if err != nil || err2 != nil {
		t.Fatalf("without a server Open returns %v, and NewReaper %v: they are to look later", err, err2)
	}
	_, err = b.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
	_, err2 = reaper.Reap(bg)
	_, err3 := lullnats.Letters(bg, js, c)
	for _, err := range []error{err, err2, err3, lullnats.Check(bg, js, c), lullnats.Declare(bg, js, c)} {
		if err == nil || lull.Classify(err).Code != engine.CodeUnclassified || strings.Contains(err.Error(), "missing") {
			t.Errorf("without a server: %v", err)
		}
	}
	gone, stop := context.WithCancel(bg)
	stop()
	if _, err := lullnats.Open(gone, js, c); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: Open returns %v", err)
	}
	must(t, r.start())
	for !js.Conn().IsConnected() {
		time.Sleep(time.Millisecond)
	}
	_, err = b.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
	_, err2 = reaper.Reap(bg)
	for _, err := range []error{err, err2} {
		if lull.Classify(err).Kind != lull.KindPermanent || !strings.Contains(err.Error(), "missing") {
			t.Errorf("the server is back, without the queue: %v", err)
		}
	}
	w := &bench{TB: t, js: js, c: c, Broker: b}
	w.ok(lullnats.Declare(bg, js, c))
	w.sender, err = lullnats.NewSender(js, c.Stream, c.Subject)
	w.ok(err)
	w.send("hello")
	d := w.one()
	if left := time.Until(d.Lease); left > 10*time.Minute || left < 5*time.Minute {
		t.Errorf("the lease is %v: want that of the consumer", left)
	}
	w.settle(d, queue.Settlement{Outcome: queue.Ack})
	if _, err := reaper.Reap(bg); err != nil {
		t.Error(err)
	}
}

// A stream for advisories that others have set up may be used.
func TestSharedAdvisoryStream(t *testing.T) {
	t.Parallel()
	r := own(t)
	js := r.js(t)
	if _, err := js.CreateStream(bg, jetstream.StreamConfig{Name: "MONITOR", Subjects: []string{"$JS.EVENT.ADVISORY.>"}}); err != nil {
		t.Fatal(err)
	}
	c := fresh(short)
	if err := lullnats.Declare(bg, js, c); err == nil || !strings.Contains(err.Error(), "declaring the stream") {
		t.Errorf("a second stream with these subjects: %v", err)
	}
	c.AdvisoryStream = "MONITOR"
	b := newBench(t, r, c)
	b.send("poison")
	for got := 0; got < 3; got++ {
		b.one()
	}
	written := 0
	reaper := b.reaper()
	b.until("it is buried", func() bool {
		b.none(50 * time.Millisecond)
		got, err := reaper.Reap(bg)
		b.ok(err)
		written += got.Letters
		return written == 1
	})
	b.equal("messages", b.msgs(b.c.Stream), 0)
	if b.msgs("MONITOR") == 0 {
		t.Error("advisories were taken away from others")
	}
}

// A server that does not answer is like one that is not there: the first Receive looks again.
func TestOpenWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := own(t)
	b := newBench(t, r, calm)
	b.send("hello")
	r.deny = "$JS.API.STREAM.INFO.>"
	r.restart(t)
	var err error
	if b.Broker, err = lullnats.Open(bg, r.js(t), b.c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	if got, err := b.Receive(ctx, queue.Want{Max: 1, Lease: time.Second}); err == nil || lull.Classify(err).Kind == lull.KindPermanent {
		t.Errorf("%d messages, %v", len(got), err)
	}
	r.deny = ""
	r.restart(t)
	b.until("it is there again", func() bool {
		got, err := b.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
		return err == nil && len(got) == 1
	})
}
