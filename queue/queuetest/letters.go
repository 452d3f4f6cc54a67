package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/queue"
)

var letterChecks = []check{
	{name: "Letters/read and removed", run: lettersRead},
	{name: "Letters/of one group", run: lettersGroup},
	{name: "Letters/when the reader dies", run: lettersDie},
	{name: "Letters/with a context that has ended", run: lettersEnded},
}

// makeLetters makes dead letters of these bodies, and returns them sorted.
func (b *tester) makeLetters(n int) (all []string) {
	for i := range n {
		body := fmt.Sprintf("letter %02d", i)
		b.send(body)
		d := b.receiveOne()
		e := envelope(d.ID)
		e.Reason = []string{"even", "odd"}[i%2]
		b.settle(b.Connection, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e})
		all = append(all, body)
	}
	return all
}

func lettersRead(b *tester) {
	all := b.makeLetters(25)
	b.equal("letters", bodies(b.letters(false)), all)

	from := b.reading(b.Connection)
	var left []string
	seen := map[string]int{}
	b.readAll(from, 4, func(l *queue.Letter) {
		seen[string(l.Body)]++
		if l.Reason != "odd" {
			left = append(left, string(l.Body))
			return
		}
		b.remove(from, l)
		b.remove(from, l) // it is gone already
	})
	for body, n := range seen {
		b.equal("how often "+body+" was returned", n, 1)
	}
	b.equal("letters in a second reading", len(seen), len(all))
	b.closeReading(from)
	slices.Sort(left)
	b.equal("letters that were not removed", bodies(b.letters(true)), left)
	b.equal("letters after all were removed", len(b.letters(false)), 0)
	b.expectEmpty("when all have died")
}

// A reader that removes the letters of one group sees them all. (Another may see only the first: see queue.Scan.)
func lettersGroup(b *tester) {
	const n = 3
	for i := range n {
		b.sendIn("a", fmt.Sprint(i))
	}
	for range n {
		b.settle(b.Connection, b.receiveOne(), queue.Settlement{Outcome: queue.DeadLetter})
	}
	b.equal("letters", bodies(b.letters(true)), []string{"0", "1", "2"})
	b.equal("letters after all were removed", len(b.letters(false)), 0)
}

func (b *tester) firstLetters(from queue.DeadLetters, most int) []*queue.Letter {
	got, err := b.next(from, most)
	if err != nil {
		b.Fatalf("Next: %v", err)
	}
	return got
}

// eventually reads until there are n letters: what a reading has held comes back when a lease lapses.
func (b *tester) eventually(n int) (got []string) {
	for began := time.Now(); ; time.Sleep(b.o.Lease / 4) {
		got = bodies(b.letters(false))
		if len(got) >= n || b.gaveUp(began) {
			return got
		}
	}
}

func lettersDie(b *tester) {
	all := b.makeLetters(5)
	c := b.connect()
	from := b.reading(c)
	got := b.firstLetters(from, 2)
	b.remove(from, got[0])
	all = slices.DeleteFunc(all, func(s string) bool { return s == string(got[0].Body) })
	if b.target.Virtual {
		b.closeReading(from) // nothing dies here
	}
	c.Close()
	b.equal("letters after a reader's end", b.eventually(len(all)), all)
	if !b.target.Virtual {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		from.Close(ctx) // it ends what runs in this process, if anything does
	}
}

func lettersEnded(b *tester) {
	b.makeLetters(2)
	from := b.reading(b.Connection)
	got := b.firstLetters(from, 1)
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := from.Remove(ended, got[0]); !errors.Is(err, context.Canceled) {
		b.Errorf("Remove with a context that has ended says %v", err)
	}
	if more, err := from.Next(ended, 10); !errors.Is(err, context.Canceled) {
		b.Errorf("Next with a context that has ended says %d letters, %v", len(more), err)
	}
	b.closeReading(from)
	b.equal("letters", len(b.eventually(2)), 2)
}
