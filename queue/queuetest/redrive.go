package queuetest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

var redriveChecks = []check{
	{name: "Redrive/all", run: redriveAll},
	{name: "Redrive/some", run: redriveSome},
	{name: "Redrive/letters that are alike", run: redriveAlike},
	{name: "Redrive/canceled", run: redriveCanceled},
	{name: "Redrive/cut between sending and removing", run: redriveCut},
	{name: "Redrive/killed between sending and removing", run: redriveKilled, process: true},
}

func (b *tester) redrive(ctx context.Context, from queue.DeadLetters, c queue.RedriveConfig, progress func(queue.LetterResult)) (queue.Progress, error) {
	c.Rate = cmp.Or(c.Rate, math.Inf(1))
	return queue.Redrive(ctx, from, b.Sender, c, progress)
}

func (b *tester) mustRedrive(c queue.RedriveConfig) queue.Progress {
	b.Helper()
	p, err := b.redrive(b.ctx, b.reading(b.Connection), c, nil)
	if err != nil {
		b.Fatalf("Redrive: %v (%v)", err, p)
	}
	return p
}

// A redriven message begins anew, under its old id, and its next dead letter counts the redrive.
func redriveAll(b *tester) {
	b.send("one", "two")
	ids := map[string]string{}
	bury := func(_ context.Context, m *queue.Message) error {
		return lull.Permanent(errBlip)
	}
	r := b.start(b.Connection, plain(3, time.Millisecond), queue.Config{}, bury)
	b.await("both are dead", func() bool { return r.settled(queue.DeadLetter) == 2 })
	r.stop()
	b.reconnect()
	for _, l := range b.letters(false) {
		ids[string(l.Body)] = l.OriginalID
		b.equal("redrives at first", l.Redrives, 0)
	}
	b.equal("dead letters", len(ids), 2)

	b.equal("Redrive", b.mustRedrive(queue.RedriveConfig{}), "moved 2 of 2 (2 seen)")
	b.equal("dead letters after Redrive", len(b.letters(false)), 0)
	r = b.start(b.Connection, plain(3, time.Millisecond), queue.Config{}, func(_ context.Context, m *queue.Message) error {
		b.equal("the id of a redriven message", m.ID, ids[string(m.Body)])
		b.equal("its attempt", m.Attempt, 1)
		b.equal("its redrives", m.Redrives, 1)
		b.equal("its header", m.Headers["kind"], "test")
		if string(m.Body) == "one" {
			return nil
		}
		return lull.Permanent(errBlip)
	})
	b.await("both are settled", func() bool { return r.settled(queue.DeadLetter) == 1 && r.settled(queue.Ack) == 1 })
	r.stop()
	l := b.letter()
	b.equal("body", string(l.Body), "two")
	b.equal("redrives", l.Redrives, 1)
	b.equal("original id", l.OriginalID, ids["two"])
	b.equal("Redrive of those that were not redriven", b.mustRedrive(queue.RedriveConfig{Filter: queue.Filter{MaxRedrives: 1}}), "moved 0 of 0 (1 seen)")
	b.equal("Redrive", b.mustRedrive(queue.RedriveConfig{}), "moved 1 of 1 (1 seen)")
	b.reconnect()
	d := b.receiveOne()
	if e, ok := queue.EnvelopeOf(d.Headers); !ok || e.Redrives != 2 || e.OriginalID != ids["two"] {
		b.Errorf("after a second redrive the envelope is %+v", e)
	}
	b.ack(d)
	b.expectEmpty("after Ack")
}

func redriveSome(b *tester) {
	b.makeLetters(6)
	b.equal("Redrive", b.mustRedrive(queue.RedriveConfig{Filter: queue.Filter{Reason: "odd"}}), "moved 3 of 3 (6 seen)")
	b.equal("messages", b.drain(3), map[string]int{"letter 01": 1, "letter 03": 1, "letter 05": 1})
	b.equal("letters that are left", b.eventually(3), []string{"letter 00", "letter 02", "letter 04"})
	b.equal("Redrive of what is older than an hour", b.mustRedrive(queue.RedriveConfig{Filter: queue.Filter{OlderThan: time.Hour}}), "moved 0 of 0 (3 seen)")
	b.equal("letters that are left", len(b.eventually(3)), 3)
	b.equal("a dry run", b.mustRedrive(queue.RedriveConfig{DryRun: true}), "moved 3 of 3 (3 seen)")
	b.equal("letters that are left", len(b.eventually(3)), 3)
	b.equal("moved with a limit of 2", b.mustRedrive(queue.RedriveConfig{Limit: 2}).Moved, 2)
	b.equal("letters that are left", len(b.eventually(1)), 1)
	b.drain(2)
}

// drain takes n messages out of the queue, waits for more, and counts them by body.
func (b *tester) drain(n int) map[string]int {
	seen := map[string]int{}
	b.drainInto(seen, n)
	return seen
}

// drainInto is drain where some of the n messages were seen before.
func (b *tester) drainInto(seen map[string]int, n int) {
	take := func(got []*queue.Delivery) bool {
		for _, d := range got {
			seen[string(d.Body)]++
			b.ack(d)
		}
		return true
	}
	for len(seen) < n {
		take(b.receive(b.Connection, 10))
	}
	b.receiveFor(b.Connection, b.o.Lease*3/2, take)
}

// Letters that are equal, also in their original id, stay different messages: producers may give one id for all.
func redriveAlike(b *tester) {
	const n = 4
	for range n {
		b.send("alike")
		e := envelope("the same")
		e.FirstFailure, e.LastFailure = time.Time{}, time.Time{}
		b.settle(b.Connection, b.receiveOne(), queue.Settlement{Outcome: queue.DeadLetter, Envelope: e})
	}
	b.equal("dead letters", len(b.letters(false)), n)
	b.equal("Redrive", b.mustRedrive(queue.RedriveConfig{}), "moved 4 of 4 (4 seen)")
	b.equal("letters that are left", len(b.letters(false)), 0)
	b.equal("messages that came", b.drain(1)["alike"], n)
}

func redriveCanceled(b *tester) {
	const n = 8
	b.makeLetters(n)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	p, err := b.redrive(ctx, b.reading(b.Connection), queue.RedriveConfig{}, func(s queue.LetterResult) {
		if s.Moved == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || p.Moved != 3 {
		b.Errorf("Redrive that was canceled after 3 says %v, %v", p, err)
	}
	b.equal("letters that are left", len(b.eventually(n-3)), n-3)
	b.redriveRest(n, 3, 0)
}

// stuckReading is a reading from which a letter cannot be removed at some time.
type stuckReading struct {
	queue.DeadLetters
	after int
	fail  func()
}

func (s *stuckReading) Remove(ctx context.Context, l *queue.Letter) error {
	if s.after--; s.after < 0 {
		s.fail()
		return lull.Permanent(errBlip)
	}
	return s.DeadLetters.Remove(ctx, l)
}

// redriveRest moves what is left of n letters, removed of which are gone, and at most unremoved of which were sent and not removed. The
// ended reading may hold letters for a while. Each message must come: once if the broker deduplicates.
func (b *tester) redriveRest(n, removed, unremoved int) {
	moved := removed
	for began := time.Now(); moved < n && !b.gaveUp(began); time.Sleep(b.o.Lease / 4) {
		moved += b.mustRedrive(queue.RedriveConfig{}).Moved
	}
	b.equal("letters moved in all", moved, n)
	twice := 0
	for body, times := range b.drain(n) {
		if times > 1 {
			b.Logf("came %d times: %s", times, body)
			twice++
		}
	}
	if b.can.Deduplicates {
		unremoved = 0
	}
	if twice > unremoved {
		b.Errorf("%d of %d letters came more than once, want %d at most: those that were sent and not removed", twice, n, unremoved)
	}
	b.equal("letters that are left", len(b.letters(false)), 0)
}

func redriveCut(b *tester) {
	const n = 6
	b.makeLetters(n)
	from := &stuckReading{DeadLetters: b.reading(b.Connection), after: 2, fail: func() {}}
	p, err := b.redrive(b.ctx, from, queue.RedriveConfig{}, nil)
	if !errors.Is(err, errBlip) {
		b.Errorf("Redrive from which a letter could not be removed says %v, %v", p, err)
	}
	b.redriveRest(n, 2, 1)
}

func redriveKilled(b *tester) {
	const n = 6
	b.makeLetters(n)
	w := b.startWorker(workRedrive, 0, 0, func(line string) {
		switch line {
		case "":
		case lineLate:
			b.late()
		default:
			b.Errorf("the worker was to be killed, and says %q", line)
			b.giveUp()
		}
	})
	defer context.AfterFunc(b.ctx, w.kill)()
	w.wait()
	b.redriveRest(n, 2, 1)
}
