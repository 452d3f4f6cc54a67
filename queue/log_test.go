package queue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// defaultLog has what is written to slog.Default, from now to the end of the test, a line
// each.
func defaultLog(t *testing.T) (lines func() []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(former) })
	return func() (all []map[string]any) {
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			must.Succeed(json.Unmarshal([]byte(line), &m))
			all = append(all, m)
		}
		return all
	}
}

// silent is a consumer without an observer, that runs for d.
func silent(t *testing.T, b queue.Broker, p lull.Policy, h queue.Handler, d time.Duration) {
	t.Helper()
	c := must.Have(queue.New("orders", b, dependency(t, p), h, queue.Config{}))
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	must.Succeed(c.Run(ctx))
	synctest.Wait()
}

// Without any observer each panic, dead letter, failed settlement and lost lease is a line of
// level error, with what, why, and what to do. What is as it should be is not logged.
func TestRule21LossesAreLoggedByDefault(t *testing.T) {
	for name, x := range map[string]struct {
		broker func(t *testing.T) queue.Broker
		handle queue.Handler
		want   []string // in each line, in order: message, then attributes
	}{
		"a panic, and that of the last attempt": {handle: func(context.Context, *queue.Message) error { panic("a bug") }, want: []string{
			"the handler panicked; the message will be tried again|reason:<nil>|code:panicked|error:the handler panicked: a bug|attempt:1",
			"a message is a dead letter|reason:panicked|code:panicked|error:the handler panicked: a bug|attempt:2",
		}},
		"an error that nothing is known of": {handle: func(context.Context, *queue.Message) error { return errors.New("cannot parse") }, want: []string{
			"a message is a dead letter|reason:attempts_exhausted|code:unclassified|error:cannot parse|attempt:2",
		}},
		"the last attempt": {handle: func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }, want: []string{
			"a message is a dead letter|reason:attempts_exhausted|code:transient|error:blip|attempt:2",
		}},
		"as it should be": {handle: func(_ context.Context, m *queue.Message) error {
			if m.Attempt == 1 {
				return lull.Transient(errBlip)
			}
			return nil
		}},
		"a settlement that is refused": {
			broker: func(t *testing.T) queue.Broker {
				b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}
				began := time.Now()
				b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
					if time.Since(began) < 31*time.Second {
						return lull.Permanent(errors.New("no such queue"))
					}
					return b.MemoryBroker.Settle(ctx, d, s)
				}
				return b
			},
			handle: func(_ context.Context, m *queue.Message) error { return nil },
			want:   []string{"the broker did not take what becomes of a message|outcome:ack|error:no such queue"},
		},
		"a lease that is lost": {
			broker: func(t *testing.T) queue.Broker { return lostAtOnce(memory(t, queue.MemoryBrokerConfig{})) },
			handle: func(ctx context.Context, m *queue.Message) error {
				if m.Attempt == 1 {
					<-ctx.Done()
				}
				return nil
			},
			want: []string{"a message was lost to this consumer|error:the server took it back|attempt:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := defaultLog(t)
			bubble(t, func(t *testing.T) {
				var b queue.Broker = memory(t, queue.MemoryBrokerConfig{})
				if x.broker != nil {
					b = x.broker(t)
				}
				send(t, b.(queue.Sender), "hello")
				silent(t, b, plain(2), x.handle, 40*time.Second)
			})
			got := lines()
			if len(got) != len(x.want) {
				t.Fatalf("%d lines, want %d: %v", len(got), len(x.want), got)
			}
			for i, want := range x.want {
				line := got[i]
				message, attrs, _ := strings.Cut(want, "|")
				if line["level"] != "ERROR" || !strings.HasPrefix(fmt.Sprint(line["msg"]), message) || line["queue"] != "orders" || line["id"] == nil || line["do"] == nil {
					t.Errorf("line %v", line)
				}
				for _, a := range strings.Split(attrs, "|") {
					if key, value, ok := strings.Cut(a, ":"); ok && !strings.Contains(fmt.Sprint(line[key]), value) {
						t.Errorf("%s is %v, want %s", key, line[key], value)
					}
				}
				if panicked := line["code"] == "panicked"; panicked != strings.Contains(fmt.Sprint(line["stack"]), "log_test.go") {
					t.Errorf("stack: %v", line["stack"])
				}
			}
		})
	}
}

// lostAtOnce is m, which finds a second after the first delivery that it is lost.
func lostAtOnce(m *queue.MemoryBroker) *broker {
	n := 0
	return revised(m, func(d *queue.Delivery) {
		if n++; n > 1 {
			return
		}
		held, lose := context.WithCancelCause(context.Background())
		d.Held = held
		time.AfterFunc(time.Second, func() {
			// To the next who asks.
			m.Settle(context.Background(), d, queue.Settlement{Outcome: queue.Retry})
			lose(errors.New("the server took it back"))
		})
	})
}

// All events, where they are asked for; and then no lines beside.
func TestLogObserver(t *testing.T) {
	lines := defaultLog(t)
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		start(t, m, dependency(t, plain(2)), func(_ context.Context, m *queue.Message) error {
			if m.Attempt == 1 {
				return lull.Transient(errBlip)
			}
			return lull.Permanent(errBlip)
		}, queue.Config{}, queue.WithObserver(queue.NewLog(nil))).run(t, 10*time.Second)
	})
	text := ""
	for _, l := range lines() {
		text += fmt.Sprint(l["level"], " ", l["msg"], " ", l["error"], "\n")
	}
	check.Equal(t, text, "INFO a message failed, and will be tried again blip\nERROR a message is a dead letter, and will not be tried again blip\n", "lines")
}

// leaseless is a broker without leases and with endless messages. None can be deferred or
// retried, as if the delay levels were missing.
type leaseless struct {
	out, most, handed atomic.Int64
}

func (l *leaseless) Capabilities() queue.Capabilities {
	return queue.Capabilities{ExactDelay: true, MaxDelay: time.Hour, FreeDefer: true}
}

func (l *leaseless) Receive(ctx context.Context, w queue.Want) (got []*queue.Delivery, err error) {
	time.Sleep(time.Millisecond)
	for range w.Max {
		n := l.out.Add(1)
		l.most.Store(max(n, l.most.Load()))
		got = append(got, &queue.Delivery{ID: fmt.Sprint(l.handed.Add(1)), Attempt: 1, Receipt: &giveBack{}})
	}
	return got, nil
}

// giveBack is when a delivery goes back.
type giveBack struct{ timer *time.Timer }

func (l *leaseless) Extend(context.Context, *queue.Delivery, time.Duration) (time.Time, error) {
	return time.Time{}, errors.New("there are no leases")
}

func (l *leaseless) Settle(_ context.Context, d *queue.Delivery, s queue.Settlement) error {
	g := d.Receipt.(*giveBack)
	if g.timer != nil {
		g.timer.Stop()
	}
	if s.Outcome == queue.Ack {
		l.out.Add(-1)
		return nil
	}
	g.timer = time.AfterFunc(queue.GiveBackAfter, func() { l.out.Add(-1) })
	return lull.Permanent(errors.New("no such exchange"))
}

// No more messages are out than Concurrency, also when they cannot be settled.
func TestConcurrencyHoldsWhenSettlementsFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &leaseless{}
		var n atomic.Int64
		r := start(t, b, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error {
			time.Sleep(10 * time.Millisecond)
			if n.Add(1)%5 == 0 {
				return lull.Transient(errBlip)
			}
			return nil
		}, queue.Config{Concurrency: 4}).run(t, 10*time.Minute)
		check.Equal(t, b.most.Load(), 4, "messages that were out at a time")
		c := r.Counts()
		if c.SettleFailed < 10 || c.Acked < 40 {
			t.Errorf("it does not go on: %+v", c)
		}
	})
}

// A line of the log has what is known of an event, and nothing else, and says what to do.
func TestLogHasWhatIsKnown(t *testing.T) {
	panicked := &queue.PanicError{Value: "a bug", Stack: []byte("goroutine 1")}
	again := queue.Event{Kind: queue.EventRetriedHere, ID: "7", Outcome: queue.Retry}
	with := func(e queue.Event, change func(*queue.Event)) queue.Event { change(&e); return e }
	dead := func(reason, code string) queue.Event {
		return queue.Event{ID: "7", Outcome: queue.DeadLetter, Reason: reason, Code: code}
	}
	for _, c := range []struct {
		e    queue.Event
		keys string
		text string
	}{
		{with(again, func(e *queue.Event) { e.After, e.Elapsed, e.Err = time.Second, 1, errBlip }), "after elapsed error", ""},
		{with(again, func(e *queue.Event) { e.After, e.Elapsed, e.Code = 1, time.Second, "c" }), "code after elapsed", ""},
		{with(again, func(e *queue.Event) { e.Attempt, e.Tries = 1, 1 }), "attempt", ""},
		{with(again, func(e *queue.Event) { e.Attempt, e.Tries = 1, 2 }), "attempt tries", ""}, // of more than one
		// What to do with a dead letter depends on why it died.
		{dead(queue.ReasonCrashed, ""), "reason do", "what ended the workers"},
		{dead(queue.ReasonPanicked, queue.ReasonPanicked), "reason code do", "fix the handler"},
		{dead("permanent", "unclassified"), "reason code do", "lull.Transient"},
		{dead("attempts_exhausted", "timeout"), "reason code do", "when it is mended"},
		// A handler may return an error that wraps another consumer's panic. That is no panic of the handler.
		{queue.Event{ID: "7", Kind: queue.EventLeaseLost, Err: fmt.Errorf("lost: %w", panicked)}, "error do stack", "goroutine 1"},
		{queue.Event{ID: "7", Outcome: queue.Retry, Err: fmt.Errorf("another's: %w", panicked)}, "error", ""},
		{queue.Event{ID: "7", Outcome: queue.Retry, Err: panicked}, "error do stack", "goroutine 1"},
	} {
		var b strings.Builder
		queue.NewLog(slog.New(slog.NewTextHandler(&b, nil)))(t.Context(), c.e)
		keys := []string{}
		for _, key := range []string{"attempt", "tries", "reason", "code", "after", "elapsed", "error", "do", "stack"} {
			if strings.Contains(b.String(), " "+key+"=") {
				keys = append(keys, key)
			}
		}
		check.Equal(t, strings.Join(keys, " "), c.keys, "%s", b.String())
		if !strings.Contains(b.String(), c.text) {
			t.Errorf("the log has no %q: %s", c.text, b.String())
		}
	}
}
