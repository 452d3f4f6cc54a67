package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
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
			check.Equal(t, r.outcomes(), x.outcomes, "outcomes")
			for _, l := range letters(t, b.MemoryBroker) {
				check.Equal(t, l.Attempts, x.attempts, "attempts")
				check.Equal(t, min(len(l.Errors), 1), x.errors, "errors")
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
			check.Equal(t, got, s, "%v", s.Outcome)
			check.Equal(t, err, nil, "error")
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

// A message that cannot come again, for want of room, is a dead letter that says so.
func TestRule21MessagesTooLarge(t *testing.T) {
	for name, x := range map[string]struct {
		err      error
		outcomes string
		said     bool
	}{
		"handled":    {nil, "ack", false},
		"a retry":    {lull.Transient(errBlip), "dead-letter too_large", true},
		"a deferral": {queue.DeferFor(errBlip, time.Second), "dead-letter too_large", true},
		"no retry":   {lull.Permanent(errBlip), "dead-letter permanent", false},
	} {
		subtest(t, name, func(t *testing.T) {
			b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{}, "hello")}
			b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
				if s.Outcome == queue.Retry || s.Outcome == queue.Defer {
					return lull.Permanent(fmt.Errorf("11 bytes too many: %w", queue.ErrTooLarge))
				}
				return b.MemoryBroker.Settle(ctx, d, s)
			}
			r := start(t, b, dependency(t, plain(3)), func(context.Context, *queue.Message) error { return x.err }, queue.Config{}).run(t, time.Minute)
			check.Equal(t, r.outcomes(), x.outcomes, "outcomes")
			for _, l := range letters(t, b.MemoryBroker) {
				errs := strings.Join(l.Errors, "; ")
				check.Equal(t, strings.Contains(errs, "11 bytes"), x.said, "what the broker said: %s", errs)
				check.Equal(t, strings.Contains(errs, errBlip.Error()), !errors.Is(x.err, nil), "the handler's error: %s", errs)
			}
		})
	}
}

// Headers are shortened as little as is needed, the longest first, and the envelope names them.
func TestShortened(t *testing.T) {
	for _, x := range []struct {
		sizes map[string]int
		free  int
		want  string
	}{
		{map[string]int{"a": 100, "b": 50}, 30, "map[a:70]"},
		{map[string]int{"a": 100, "b": 50}, 50, "map[a:50]"},
		{map[string]int{"a": 100, "b": 50}, 60, "map[a:45 b:45]"},
		{map[string]int{"a": 100, "b": 100, "c": 1}, 10, "map[a:95 b:95]"},
		{map[string]int{"a": 100, "b": 50}, 150, "map[a:0 b:0]"},
		{map[string]int{"a": 100, "b": 50}, 1000, "map[a:0 b:0]"},
		{map[string]int{"a": 100}, 0, "map[]"},
		{nil, 10, "map[]"},
	} {
		e := &queue.Envelope{Reason: "x", Errors: []string{"why"}}
		short, keep := e.Shortened(x.sizes, x.free)
		check.Equal(t, fmt.Sprint(keep), x.want, "%v less %d", x.sizes, x.free)
		if len(e.Errors) != 1 || short.Reason != "x" || len(short.Errors) != 1+min(len(keep), 1) || short.Errors[len(short.Errors)-1] != "why" {
			t.Errorf("the envelope: %+v of %+v", short, e)
		}
		for name := range keep {
			if !strings.Contains(short.Errors[0], " "+name+" (") {
				t.Errorf("%q does not name %s", short.Errors[0], name)
			}
		}
	}
}
