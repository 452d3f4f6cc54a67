package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// A message that cannot come again in its own time is a dead letter that says so, whatever put it
// off. One that can is treated like any other.
func TestRule21MessagesExpire(t *testing.T) {
	fail := func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }
	for name, x := range map[string]struct {
		life     time.Duration
		handler  queue.Handler
		config   queue.Config
		outcomes string
		attempts int // of the letter
		errors   int // of the letter
	}{
		"no end":                    {0, fail, queue.Config{}, "retry 1s, retry 1s, dead-letter attempts_exhausted", 3, 1},
		"a long time":               {time.Hour, fail, queue.Config{}, "retry 1s, retry 1s, dead-letter attempts_exhausted", 3, 1},
		"the second retry is late":  {1500 * time.Millisecond, fail, queue.Config{}, "retry 1s, dead-letter expired", 2, 1},
		"the retry comes just then": {time.Second, fail, queue.Config{}, "dead-letter expired", 1, 1},
		"it is over already":        {-time.Second, fail, queue.Config{}, "dead-letter expired", 0, 0},
		"a retry here is late":      {500 * time.Millisecond, fail, queue.Config{Quick: 2, QuickWait: time.Minute}, "dead-letter expired", 1, 1},
		"a deferral":                {time.Minute, func(context.Context, *queue.Message) error { return queue.DeferFor(errBlip, time.Hour) }, queue.Config{}, "dead-letter expired", 1, 1},
		"handled too late":          {time.Second, func(context.Context, *queue.Message) error { time.Sleep(2 * time.Second); return nil }, queue.Config{}, "ack", 0, 0},
		"dropped too late": {time.Second, func(context.Context, *queue.Message) error {
			time.Sleep(2 * time.Second)
			return queue.DropMessage(errBlip)
		}, queue.Config{}, "drop", 0, 0},
	} {
		subtest(t, name, func(t *testing.T) {
			end := time.Now().Add(x.life)
			b := revised(memory(t, queue.MemoryBrokerConfig{}, "hello"), func(d *queue.Delivery) {
				if x.life != 0 {
					d.Expires = end
				}
			})
			r := start(t, b, dependency(t, plain(3)), x.handler, x.config).run(t, time.Minute)
			wantEqual(t, "outcomes", r.outcomes(), x.outcomes)
			for _, l := range letters(t, b.MemoryBroker) {
				wantEqual(t, "attempts", l.Attempts, x.attempts)
				wantEqual(t, "errors", min(len(l.Errors), 1), x.errors)
			}
		})
	}
}

// What no broker can carry out is refused permanently.
func TestSettlementThatIsNone(t *testing.T) {
	for want, s := range map[string]queue.Settlement{
		"none is no settlement":               {},
		"a dead letter needs an envelope":     {Outcome: queue.DeadLetter},
		"a delay of 1h0m0.000000001s: want 0": {Outcome: queue.Retry, After: time.Hour + 1},
		"a delay of -1ns: want 0 to 1h0m0s":   {Outcome: queue.Defer, After: -1},
	} {
		_, err := s.Within(&queue.Delivery{}, s.After, time.Hour, "orders")
		if lull.Classify(err).Kind != lull.KindPermanent || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

// An adapter that is asked to put off a message beyond its time writes the same letter.
func TestSettlementWithin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		former := queue.Envelope{OriginalID: "first", Redrives: 2}
		d := &queue.Delivery{ID: "x", Attempt: 3, Expires: time.Now().Add(time.Minute), Headers: queue.LetterHeaders(nil, &former)}
		for _, s := range []queue.Settlement{
			{Outcome: queue.Ack}, {Outcome: queue.Drop}, {Outcome: queue.DeadLetter, Envelope: &former},
			{Outcome: queue.Retry, After: time.Second}, {Outcome: queue.Defer},
		} {
			got, err := s.Within(d, s.After, time.Hour, "orders")
			wantEqual(t, s.Outcome.String(), got, s)
			wantEqual(t, "error", err, nil)
		}
		for _, o := range []queue.MessageOutcome{queue.Retry, queue.Defer} {
			s, _ := queue.Settlement{Outcome: o, After: 59 * time.Second}.Within(d, time.Hour, time.Hour, "orders")
			if s.Outcome != queue.DeadLetter || s.After != 0 || s.Envelope == nil {
				t.Fatalf("%v: %+v", o, s)
			}
			e := s.Envelope
			if e.Reason != queue.ReasonExpired || e.Attempts != 3 || e.Source != "orders" || e.OriginalID != "first" || e.Redrives != 2 || !e.LastFailure.Equal(time.Now()) {
				t.Errorf("%v: %+v", o, e)
			}
		}
	})
}
