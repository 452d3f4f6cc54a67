package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

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
			wantEqual(t, "outcomes", r.outcomes(), x.outcomes)
			for _, l := range letters(t, b.MemoryBroker) {
				errs := strings.Join(l.Errors, "; ")
				wantEqual(t, "what the broker said: "+errs, strings.Contains(errs, "11 bytes"), x.said)
				wantEqual(t, "the handler's error: "+errs, strings.Contains(errs, errBlip.Error()), !errors.Is(x.err, nil))
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
		wantEqual(t, fmt.Sprint(x.sizes, " less ", x.free), fmt.Sprint(keep), x.want)
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
