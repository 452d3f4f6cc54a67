package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestFilter(t *testing.T) {
	l := &queue.Letter{Envelope: queue.Envelope{Reason: "schema", Code: "field", Source: "orders", OriginalID: "7", Redrives: 2, LastFailure: born}, Enqueued: born.Add(time.Hour)}
	undated := &queue.Letter{Envelope: queue.Envelope{Reason: "crashed"}}
	put := &queue.Letter{Envelope: queue.Envelope{Reason: "crashed"}, Enqueued: born}
	now := born.Add(10 * time.Minute)
	for _, c := range []struct {
		f    queue.Filter
		l    *queue.Letter
		want bool
	}{
		{queue.Filter{}, l, true},
		{queue.Filter{}, undated, true},
		{queue.Filter{Reason: "schema"}, l, true},
		{queue.Filter{Reason: "sch"}, l, false},
		{queue.Filter{Code: "field"}, l, true},
		{queue.Filter{Code: "x"}, l, false},
		{queue.Filter{Source: "orders"}, l, true},
		{queue.Filter{Source: "order"}, l, false},
		{queue.Filter{ID: "7"}, l, true},
		{queue.Filter{ID: "77"}, l, false},
		{queue.Filter{Reason: "schema", Code: "x"}, l, false},
		{queue.Filter{MaxRedrives: 3}, l, true},
		{queue.Filter{MaxRedrives: 2}, l, false},
		{queue.Filter{OlderThan: 10 * time.Minute}, l, true}, // to the instant
		{queue.Filter{OlderThan: 10*time.Minute + 1}, l, false},
		{queue.Filter{YoungerThan: 10 * time.Minute}, l, false},
		{queue.Filter{YoungerThan: 10*time.Minute + 1}, l, true},
		{queue.Filter{OlderThan: time.Minute, YoungerThan: time.Hour}, l, true},
		{queue.Filter{OlderThan: 1}, undated, false},
		{queue.Filter{YoungerThan: 1}, undated, false},
		{queue.Filter{YoungerThan: math.MaxInt64}, undated, false},
		{queue.Filter{OlderThan: time.Minute}, put, true}, // only Enqueued is known
	} {
		check.Equal(t, c.f.Match(c.l, now), c.want, "%+v matches %+v", c.f, c.l.Envelope)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // all problems, by field
	}{
		{queue.Filter{}.Validate(), ""},
		{queue.Filter{OlderThan: -1, YoungerThan: -2, MaxRedrives: -3}.Validate(), "OlderThan YoungerThan MaxRedrives"},
		{queue.Filter{OlderThan: time.Hour, YoungerThan: time.Hour}.Validate(), "YoungerThan"},
		{queue.Filter{OlderThan: 1, YoungerThan: 1}.Validate(), "YoungerThan"},
		{queue.Filter{OlderThan: 1, YoungerThan: 2, MaxRedrives: 1}.Validate(), ""},
		{queue.RedriveConfig{Rate: math.Inf(1)}.Validate(), ""},
		{queue.RedriveConfig{Rate: math.NaN(), Limit: -1, Filter: queue.Filter{OlderThan: -1}}.Validate(), "Filter.OlderThan Rate Limit"},
		{queue.RedriveConfig{Rate: -1}.Validate(), "Rate"},
		{queue.ScanConfig{}.Validate(), ""},
		{queue.ScanConfig{Idle: -1, Lease: 1, Hold: -1}.Validate(), "Idle Lease Hold"},
		{queue.ScanConfig{Lease: 12*time.Hour + 1}.Validate(), "Lease"},
		{queue.ScanConfig{Lease: 12 * time.Hour}.Validate(), ""},
		{queue.ScanConfig{Lease: 100 * time.Millisecond}.Validate(), ""},
		{queue.ScanConfig{Lease: 100*time.Millisecond - 1}.Validate(), "Lease"},
		{queue.MemoryBrokerConfig{}.Validate(), ""},
		{queue.MemoryBrokerConfig{Order: queue.Total, MaxDelay: 100 * 365 * 24 * time.Hour}.Validate(), ""},
		{queue.MemoryBrokerConfig{Order: 9, MaxLease: -1, MaxDelay: 100*365*24*time.Hour + 1, Limit: -1}.Validate(), "Order MaxLease MaxDelay Limit"},
		{queue.Config{}.Validate(), ""},
		{queue.Config{Concurrency: 1, Quick: 10}.Validate(), ""},
		{queue.Config{Concurrency: 1, Batch: 1, Lease: 100 * time.Millisecond}.Validate(), ""},
		{queue.Config{Concurrency: 100_000, Batch: 100_000, Lease: 12 * time.Hour}.Validate(), ""},
		{queue.Config{Concurrency: 3, Batch: 4}.Validate(), "Batch"},
		{queue.Config{Concurrency: -1, Batch: -1, Lease: 1, Margin: -1, Quick: 11, QuickWait: -1}.Validate(), "Concurrency Batch Lease Margin Quick QuickWait"},
		{queue.Config{Concurrency: 100_001, Lease: 12*time.Hour + 1}.Validate(), "Concurrency Lease"},
		{queue.Config{Lease: 100*time.Millisecond - 1}.Validate(), "Lease"},
		{queue.Config{Lease: 10 * time.Second, Margin: 5 * time.Second}.Validate(), "Margin"},
		{queue.Config{Lease: 10 * time.Second, Margin: 5*time.Second - 1, Drain: -1}.Validate(), ""},
	} {
		check.Equal(t, strings.Join(problem.Fields(c.err), " "), c.want, "problems of %v", c.err)
	}
}

// morgue is a MemoryBroker with n dead letters, "0" to n-1, of reasons even and odd, a minute apart.
func morgue(t testing.TB, c queue.MemoryBrokerConfig, n int) *queue.MemoryBroker {
	t.Helper()
	m := memory(t, c)
	for i := range n {
		e := &queue.Envelope{Reason: []string{"even", "odd"}[i%2], Source: "orders", OriginalID: fmt.Sprint("id-", i), LastFailure: time.Now().UTC()}
		must.Succeed(m.DeadLetters().Send(t.Context(), queue.Outgoing{Headers: queue.LetterHeaders(queue.Headers{"kind": "test"}, e), Body: fmt.Append(nil, i)}))
		time.Sleep(time.Minute)
	}
	return m
}

func scan(t testing.TB, m *queue.MemoryBroker) queue.DeadLetters {
	t.Helper()
	return must.Have(queue.Scan(m.DeadLetters(), queue.ScanConfig{}))
}

// taken counts the messages in m by body, and takes them.
func taken(t testing.TB, m *queue.MemoryBroker) map[string]int {
	t.Helper()
	n := map[string]int{}
	for m.Len() > 0 {
		got := must.Have(m.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute}))
		for _, d := range got {
			n[string(d.Body)]++
			m.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack})
		}
	}
	return n
}

// all has Inspect go on to the end.
func all(*queue.Letter) (bool, error) { return true, nil }

func each(n, times int) map[string]int {
	m := map[string]int{}
	for i := range n {
		m[fmt.Sprint(i)] = times
	}
	return m
}

// faulty fails the calls that it is set to fail.
type faulty struct {
	*queue.MemoryBroker
	queue.DeadLetters
	fail func(what string, n int) (before, after error) // of the nth call; instead of the call, or after it
	then func()                                         // after the call
	n    map[string]int
}

func (f *faulty) do(what string, call func() error) error {
	if f.n == nil {
		f.n = map[string]int{}
	}
	f.n[what]++
	before, after := f.fail(what, f.n[what])
	if before != nil {
		return before
	}
	err := call()
	if f.then != nil {
		f.then()
		f.then = nil
	}
	return errors.Join(err, after)
}

func (f *faulty) Send(ctx context.Context, o queue.Outgoing) error {
	return f.do("send", func() error { return f.MemoryBroker.Send(ctx, o) })
}

func (f *faulty) Remove(ctx context.Context, l *queue.Letter) error {
	return f.do("remove", func() error { return f.DeadLetters.Remove(ctx, l) })
}

func (f *faulty) Next(ctx context.Context, n int) (out []*queue.Letter, err error) {
	err = f.do("next", func() error { out, err = f.DeadLetters.Next(ctx, n); return err })
	return out, err
}

// Interrupted before or after any call to a broker, by an error that lasts or by the end of its
// context, a redrive loses nothing; run again it moves what is left, each letter once where the broker deduplicates.
func TestRedriveIsInterruptedAnywhere(t *testing.T) {
	const n = 5
	for _, dedup := range []bool{true, false} {
		for _, what := range []string{"send", "remove", "next"} {
			for at := 1; at <= n; at++ {
				for _, how := range []string{"before", "after", "cancel before", "cancel after"} {
					t.Run(fmt.Sprint("dedup ", dedup, " ", what, " ", at, " ", how), func(t *testing.T) {
						bubble(t, func(t *testing.T) { interrupted(t, dedup, what, at, how, n) })
					})
				}
			}
		}
	}
}

func interrupted(t *testing.T, dedup bool, what string, at int, how string, n int) {
	c := queue.MemoryBrokerConfig{Duplicates: -1}
	if dedup {
		c.Duplicates = time.Hour
	}
	m := morgue(t, c, n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hit := false
	f := &faulty{MemoryBroker: m, DeadLetters: scan(t, m)}
	f.fail = func(call string, i int) (before, after error) {
		if call != what || i != at {
			return nil, nil
		}
		hit = true
		stop := lull.Permanent(errBlip)
		switch how {
		case "before":
			return stop, nil
		case "after":
			return nil, stop
		case "cancel before":
			cancel()
			return ctx.Err(), nil
		}
		f.then = cancel
		return nil, nil
	}
	p, err := queue.Redrive(ctx, f, f, queue.RedriveConfig{}, nil)
	atTheEnd := what == "next" && at > 1 && how == "after"
	if hit && what != "send" && how != "cancel after" && !atTheEnd && err == nil {
		t.Errorf("interrupted, and says %v", p)
	}
	if p.Moved > n || p.Seen > n {
		t.Errorf("progress %v", p)
	}
	p, err = queue.Redrive(t.Context(), scan(t, m), m, queue.RedriveConfig{}, nil)
	if err != nil {
		t.Errorf("run again: %v, %v", p, err)
	}
	check.Equal(t, m.DeadLetters().Len(), 0, "letters left")
	got := taken(t, m)
	for body, want := range each(n, 1) {
		once := dedup || what == "send" && how == "cancel after" // a moment is taken to remove what was sent
		if got[body] < want || once && got[body] > 1 || got[body] > 2 {
			t.Errorf("message %s came %d times", body, got[body])
		}
	}
	check.Equal(t, len(got), n, "messages")
}

// A broker that fails for a moment is asked again.
func TestRedriveGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 20)
		f := &faulty{MemoryBroker: m, DeadLetters: scan(t, m), fail: func(_ string, i int) (before, after error) {
			switch i % 3 {
			case 1:
				return errBlip, nil
			case 2:
				return nil, errBlip // it has done it all the same
			}
			return nil, nil
		}}
		// Next that has taken letters and fails has lost them for this reading.
		next := f.fail
		f.fail = func(what string, i int) (error, error) {
			if what == "next" {
				return nil, nil
			}
			return next(what, i)
		}
		p, err := queue.Redrive(t.Context(), f, f, queue.RedriveConfig{}, nil)
		if err != nil || p.Moved != 20 {
			t.Errorf("%v, %v", p, err)
		}
		check.Equal(t, fmt.Sprint(taken(t, m)), fmt.Sprint(each(20, 1)), "messages")
		check.Equal(t, m.DeadLetters().Len(), 0, "letters")
	})
}

// A broker that is gone ends a redrive, in about a minute.
func TestRedriveGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 3)
		f := &faulty{MemoryBroker: m, DeadLetters: scan(t, m), fail: func(what string, i int) (before, after error) {
			if what == "send" && i > 1 {
				return errBlip, nil
			}
			return nil, nil
		}}
		began := time.Now()
		p, err := queue.Redrive(t.Context(), f, f, queue.RedriveConfig{}, nil)
		if !errors.Is(err, errBlip) || p.Moved != 1 || time.Since(began) > 2*time.Minute {
			t.Errorf("%v, %v after %v", p, err, time.Since(began))
		}
		check.Equal(t, m.DeadLetters().Len(), 2, "letters")
	})
}

// A letter that its queue will never take stays, and the others are moved.
func TestRedriveOfTheUnsendable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 4)
		tooLarge := lull.Permanent(errors.New("too large"))
		f := &faulty{MemoryBroker: m, DeadLetters: scan(t, m), fail: func(what string, i int) (before, after error) {
			if what == "send" && i == 2 {
				return tooLarge, nil
			}
			return nil, nil
		}}
		var failed []string
		p, err := queue.Redrive(t.Context(), f, f, queue.RedriveConfig{}, func(s queue.LetterResult) {
			if s.Err != nil {
				failed = append(failed, fmt.Sprint(string(s.Letter.Body), " ", errors.Is(s.Err, tooLarge)))
			}
		})
		check.Equal(t, err, nil, "error")
		check.Equal(t, p.String(), "moved 3 of 4 (4 seen), 1 failed", "progress")
		check.Equal(t, fmt.Sprint(failed), "[1 true]", "failed")
		check.Equal(t, m.DeadLetters().Len(), 1, "letters")
	})
}

// Letters are moved evenly, no faster than they should be.
func TestRedriveRate(t *testing.T) {
	for rate, want := range map[float64]time.Duration{0: 1900 * time.Millisecond, 2: 9500 * time.Millisecond, 0.5: 38 * time.Second, math.Inf(1): 0} {
		bubble(t, func(t *testing.T) {
			m := morgue(t, queue.MemoryBrokerConfig{}, 20)
			began := time.Now()
			var last time.Duration
			_, err := queue.Redrive(t.Context(), scan(t, m), m, queue.RedriveConfig{Rate: rate}, func(s queue.LetterResult) {
				last = time.Since(began)
				if rate == 2 && last != time.Duration(s.Moved-1)*500*time.Millisecond {
					t.Errorf("letter %d after %v", s.Moved, last)
				}
			})
			if err != nil || last != want {
				t.Errorf("at %v a second, 20 letters took %v, want %v; %v", rate, last, want, err)
			}
		})
	}
}

// counted is a reading that counts.
type counted struct {
	queue.DeadLetters
	read *int
}

func (c counted) Next(ctx context.Context, n int) ([]*queue.Letter, error) {
	got, err := c.DeadLetters.Next(ctx, n)
	*c.read += len(got)
	return got, err
}

var errCounts = errors.New("reading counts")

func (counted) Uncounted(context.Context) error { return errCounts }

// If a letter that is read and left there counts, no letter is read that may be left. All can
// be moved, or a limited number.
func TestRule21NothingIsReadThatCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 25)
		read := 0
		p, err := queue.Inspect(t.Context(), counted{scan(t, m), &read}, queue.Filter{}, all)
		check.Equal(t, fmt.Sprint(p.Seen, err), "0 reading counts", "Inspect")
		for _, c := range []queue.RedriveConfig{{DryRun: true}, {Filter: queue.Filter{Reason: "odd"}}} {
			p, err := queue.Redrive(t.Context(), counted{scan(t, m), &read}, m, c, nil)
			check.Equal(t, fmt.Sprint(p, err), "moved 0 of 0 (0 seen) reading counts", "Redrive")
		}
		for _, limit := range []int{13, 3, 1} {
			read = 0
			p, err = queue.Redrive(t.Context(), counted{scan(t, m), &read}, m, queue.RedriveConfig{Limit: limit}, nil)
			check.Equal(t, fmt.Sprint(p, err), fmt.Sprintf("moved %d of %[1]d (%[1]d seen) <nil>", limit), "Redrive with a limit")
			check.Equal(t, read, limit, "letters that were read")
		}
		check.Equal(t, m.DeadLetters().Len(), 8, "letters that are left")
	})
}

func TestRedriveOfBadConfigs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 1)
		if _, err := queue.Redrive(t.Context(), scan(t, m), m, queue.RedriveConfig{Rate: -1}, nil); err == nil || !strings.Contains(err.Error(), "Rate") {
			t.Errorf("%v", err)
		}
		if _, err := queue.Inspect(t.Context(), scan(t, m), queue.Filter{OlderThan: -1}, nil); err == nil || !strings.Contains(err.Error(), "OlderThan") {
			t.Errorf("%v", err)
		}
		if _, err := queue.Scan(m, queue.ScanConfig{Idle: -1}); err == nil {
			t.Error("a scan with a negative Idle")
		}
		// Both have closed what they were given: nothing runs, and the bubble ends.
	})
}

func TestInspect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 12)
		var seen []string
		p, err := queue.Inspect(t.Context(), scan(t, m), queue.Filter{Reason: "odd", OlderThan: 4 * time.Minute}, func(l *queue.Letter) (bool, error) {
			seen = append(seen, string(l.Body))
			check.Equal(t, l.Headers["kind"], "test", "header")
			return true, nil
		})
		check.Equal(t, fmt.Sprint(seen, p, err), "[1 3 5 7] moved 0 of 4 (12 seen) <nil>", "letters")
		p, err = queue.Inspect(t.Context(), scan(t, m), queue.Filter{}, func(*queue.Letter) (bool, error) { return true, errBlip })
		check.Equal(t, fmt.Sprint(p, errors.Is(err, errBlip)), "moved 0 of 1 (1 seen) true", "an error of its own ends it")
		check.Equal(t, m.DeadLetters().Len(), 12, "letters")
		got, err := m.DeadLetters().Receive(t.Context(), queue.Want{Max: 20, Lease: time.Minute})
		check.Equal(t, fmt.Sprint(len(got), err), "12 <nil>", "letters that were given back")
		check.Equal(t, got[0].Attempt, 1, "attempt of a letter, which must not be counted out of its queue")
	})
}

// A scan holds what it has read until it ends, and no more than it may.
func TestScan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 6)
		from := must.Have(queue.Scan(m.DeadLetters(), queue.ScanConfig{Lease: 10 * time.Second, Hold: 4}))
		first, err := from.Next(t.Context(), 10)
		check.Equal(t, fmt.Sprint(len(first), err), "4 <nil>", "letters")
		time.Sleep(time.Hour)
		if _, err := from.Next(t.Context(), 10); !errors.Is(err, queue.ErrTooMany) {
			t.Errorf("Next beyond Hold: %v", err)
		}
		other := scan(t, m)
		rest, _ := other.Next(t.Context(), 10)
		check.Equal(t, len(rest), 2, "letters for another, after an hour")
		if err := from.Remove(t.Context(), rest[0]); err == nil {
			t.Error("Remove of another reading's letter")
		}
		if err := from.Remove(t.Context(), &queue.Letter{}); err == nil {
			t.Error("Remove of a letter that comes from nowhere")
		}
		for _, l := range first[:2] {
			must.Succeed(from.Remove(t.Context(), l))
		}
		check.Is(t, errors.Join(other.Close(t.Context()), from.Close(t.Context()), from.Close(t.Context())), nil, "Close")
		from = scan(t, m)
		all := 0
		for {
			got, err := from.Next(t.Context(), 3)
			if err == io.EOF {
				break
			}
			all += len(got)
		}
		check.Equal(t, all, 4, "letters in the end")
		from.Close(t.Context())
		synctest.Wait()
	})
}

// Letters that went out with an answer that was lost are not taken for gone: they come back
// when their leases lapse.
func TestScanAfterALostAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 12)
		b := &broker{MemoryBroker: m.DeadLetters()}
		b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			got, err := b.MemoryBroker.Receive(ctx, w)
			if b.receives.Load() == 1 {
				return nil, errors.New("connection reset by peer")
			}
			return got, err
		}
		from := must.Have(queue.Scan(b, queue.ScanConfig{}))
		n, began := 0, time.Now()
		p, err := queue.Inspect(t.Context(), from, queue.Filter{}, func(*queue.Letter) (bool, error) { n++; return true, nil })
		check.Equal(t, fmt.Sprint(n, p.Seen, err), "12 12 <nil>", "letters")
		// After the 30 s of the lease by default, nothing came for 2 s.
		if took := time.Since(began); took < 32*time.Second || took > 33*time.Second {
			t.Errorf("the reading took %v", took)
		}
	})
}

// A reading ends when the broker has reported no other letter, twice. After any other answer it continues, or returns the
// error: it never reports success while letters are left.
func TestRule24AReadingEndsWhenTheBrokerSaysSo(t *testing.T) {
	const n = 25
	refused := lull.Permanent(errors.New("access denied"))
	throttled := lull.RetryAfter(errors.New("slow down"), 0)
	hangUp := &url.Error{Op: "Post", URL: "https://sqs", Err: io.EOF} // what net/http returns
	type receive = func(ctx context.Context, b *broker, w queue.Want) ([]*queue.Delivery, error)
	say := func(after time.Duration, err error) receive {
		return func(context.Context, *broker, queue.Want) ([]*queue.Delivery, error) {
			time.Sleep(after)
			return nil, err
		}
	}
	ended := func(err error) receive { // the adapter waits until nobody does any more
		return func(ctx context.Context, b *broker, w queue.Want) ([]*queue.Delivery, error) {
			<-ctx.Done()
			if err == nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
	}
	still := func(ctx context.Context, b *broker, w queue.Want) ([]*queue.Delivery, error) {
		time.Sleep(2100 * time.Millisecond)
		return b.MemoryBroker.Receive(ctx, w)
	}
	lost := func(ctx context.Context, b *broker, w queue.Want) ([]*queue.Delivery, error) {
		b.MemoryBroker.Receive(ctx, w)
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", queue.ErrUnanswered, ctx.Err())
	}
	for _, c := range []struct {
		what    string
		instead receive // of Receive
		from    int     // the call
		times   int
		failed  error // nil: all letters are read
	}{
		{"a rate limit", say(0, throttled), 1, 3, nil},
		{"a rate limit, late", say(2500*time.Millisecond, throttled), 1, 1, nil},
		{"a rate limit that ends with the context", ended(throttled), 1, 2, nil},
		{"a rate limit in the midst", ended(throttled), 2, 2, nil},
		{"a rate limit for ever", ended(throttled), 1, math.MaxInt, throttled},
		{"a refusal", say(0, refused), 1, 1, refused},
		{"a refusal, late", say(2500*time.Millisecond, refused), 1, 1, refused},
		{"a refusal in the midst, late", say(2500*time.Millisecond, refused), 3, 1, refused},
		{"a refusal that ends with the context", ended(refused), 1, 1, refused},
		{"a failure, late", say(2500*time.Millisecond, errBlip), 1, 1, nil},
		{"a failure that names a context", ended(fmt.Errorf("read: %w", context.DeadlineExceeded)), 1, 1, nil},
		{"a failure for ever", ended(errBlip), 1, math.MaxInt, errBlip},
		{"a connection that is closed", say(0, hangUp), 1, 1, nil},
		{"a connection that is closed in the midst", say(0, hangUp), 2, 3, nil},
		{"a connection that is closed for ever", say(0, hangUp), 2, math.MaxInt, hangUp},
		{"the process stands still", still, 1, 1, nil},
		{"the process stands still in the midst", still, 2, 1, nil},
		{"the process stands still again and again", still, 1, 5, nil},
		{"no answer", lost, 1, 1, nil},
		{"no answer in the midst", lost, 2, 1, nil},
		{"no answer for ever", lost, 1, math.MaxInt, queue.ErrUnanswered},
		{"one false answer", say(time.Second, nil), 1, 1, nil},
		{"one false answer in the midst", say(0, nil), 2, 1, nil},
		{"one false answer at the end of the context", ended(nil), 1, 1, nil},
	} {
		for _, what := range []string{"Inspect", "Redrive"} {
			subtest(t, what+"/"+c.what, func(t *testing.T) {
				m := morgue(t, queue.MemoryBrokerConfig{}, n)
				b := &broker{MemoryBroker: m.DeadLetters()}
				b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
					if n := int(b.receives.Load()); n >= c.from && n-c.from < c.times {
						return c.instead(ctx, b, w)
					}
					return b.MemoryBroker.Receive(ctx, w)
				}
				from := must.Have(queue.Scan(b, queue.ScanConfig{}))
				var p queue.Progress
				var err error
				if what == "Inspect" {
					p, err = queue.Inspect(t.Context(), from, queue.Filter{}, all)
				} else {
					p, err = queue.Redrive(t.Context(), from, m, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
				}
				if c.failed == nil && (err != nil || p.Seen != n) || c.failed != nil && (!errors.Is(err, c.failed) || p.Seen == n) {
					t.Errorf("%v, %v; want %v", p, err, c.failed)
				}
			})
		}
	}
}

// nexts is a reading whose calls of Next return these, one after the other.
type nexts struct {
	queue.DeadLetters
	calls []next
}

type next struct {
	letters int
	err     error
}

func (n *nexts) Next(context.Context, int) (letters []*queue.Letter, err error) {
	if len(n.calls) == 0 {
		return nil, io.EOF
	}
	for range n.calls[0].letters {
		letters = append(letters, &queue.Letter{})
	}
	err = n.calls[0].err
	n.calls = n.calls[1:]
	return letters, err
}

func (*nexts) Close(context.Context) error { return nil }

// Whatever an adapter returns beside letters, the letters are seen, and only io.EOF ends the reading.
func TestRule24NoLetterIsDroppedWithAnError(t *testing.T) {
	for what, c := range map[string]struct {
		calls []next
		seen  int
	}{
		"letters with the end":               {[]next{{10, nil}, {3, io.EOF}}, 13},
		"letters with an error":              {[]next{{4, errBlip}, {0, errBlip}, {3, nil}}, 7},
		"an error that wraps the end":        {[]next{{4, nil}, {0, fmt.Errorf("read: %w", io.EOF)}, {3, nil}}, 7},
		"an unexpected end":                  {[]next{{4, nil}, {0, io.ErrUnexpectedEOF}, {3, nil}}, 7},
		"neither letters nor an error":       {[]next{{4, nil}, {0, nil}, {0, nil}, {3, nil}}, 7},
		"the end, joined with nothing":       {[]next{{4, nil}, {0, errors.Join(io.EOF)}, {3, nil}}, 4},
		"the end, joined with another error": {[]next{{4, nil}, {0, errors.Join(io.EOF, errBlip)}, {3, nil}}, 7},
	} {
		bubble(t, func(t *testing.T) {
			p, err := queue.Inspect(t.Context(), &nexts{calls: c.calls}, queue.Filter{}, all)
			check.Equal(t, fmt.Sprint(p.Seen, err), fmt.Sprint(c.seen, nil), "%s", what)
		})
	}
}

// An adapter cannot report by accident that a queue is empty: a context that has ended is no answer.
func TestRule24AnEndedContextIsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := memory(t, queue.MemoryBrokerConfig{}).Receive(ctx, queue.Want{Max: 1, Lease: time.Minute})
		if len(got) > 0 || !errors.Is(err, queue.ErrUnanswered) || !errors.Is(err, context.Canceled) {
			t.Errorf("%d messages, %v", len(got), err)
		}
	})
}

// After a pause longer than the lease, letters that are known come again before the others, a few at a time. They are no
// sign of the end.
func TestRule24LettersThatComeAgainAreNotTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 300)
		b := &broker{MemoryBroker: m.DeadLetters()}
		const after = 200 // letters
		var known []*queue.Delivery
		again := 0
		b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			if len(known) >= after && again < after {
				time.Sleep(300 * time.Millisecond)
				from := again
				again = min(again+w.Max, after)
				return known[from:again], nil
			}
			got, err := b.MemoryBroker.Receive(ctx, w)
			known = append(known, got...)
			return got, err
		}
		from := must.Have(queue.Scan(b, queue.ScanConfig{}))
		p, err := queue.Inspect(t.Context(), from, queue.Filter{}, all)
		check.Equal(t, fmt.Sprint(p.Seen, err), "300 <nil>", "letters")
	})
}

// Letters that could not be given back are an error of Close.
func TestScanThatGivesNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, _, fails := unreachable(morgue(t, queue.MemoryBrokerConfig{}, 2).DeadLetters())
		from := must.Have(queue.Scan(b, queue.ScanConfig{}))
		got, err := from.Next(t.Context(), 10)
		check.Equal(t, fmt.Sprint(len(got), err), "2 <nil>", "letters")
		fails.Store(true)
		check.Is(t, from.Close(t.Context()), errBlip, "Close")
	})
}

// Letters that come again, because their leases lapsed, are passed over, and do not keep the
// reading from its end.
func TestScanOfShortLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := morgue(t, queue.MemoryBrokerConfig{}, 6)
		from := must.Have(queue.Scan(&broker{MemoryBroker: m.DeadLetters(), can: func(c *queue.Capabilities) { c.Extends = false }}, queue.ScanConfig{Lease: time.Second, Idle: 5 * time.Second}))
		n := map[string]int{}
		var last *queue.Letter
		for {
			got, err := from.Next(t.Context(), 4)
			if err == io.EOF {
				break
			}
			for _, l := range got {
				n[string(l.Body)]++
				last = l
			}
		}
		check.Equal(t, fmt.Sprint(n), fmt.Sprint(each(6, 1)), "letters")
		if err := from.Remove(t.Context(), last); err != nil { // by the delivery that counts now
			t.Errorf("Remove: %v", err)
		}
		check.Equal(t, from.Close(t.Context()), nil, "Close")
		check.Equal(t, m.DeadLetters().Len(), 5, "letters left")
	})
}

// Letters are what was sent and the envelope, field by field.
func TestLetterOf(t *testing.T) {
	e := full()
	d := &queue.Delivery{ID: "1", Group: "g", Body: []byte("b"), Headers: queue.LetterHeaders(queue.Headers{"a": "1"}, e), Enqueued: born}
	l := queue.LetterOf(d)
	want := &queue.Letter{ID: "1", Envelope: *e, Enqueued: born, Group: "g", Headers: queue.Headers{"a": "1"}, Body: []byte("b"), Receipt: d}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("%+v", l)
	}
	if !l.Died().Equal(e.LastFailure) {
		t.Errorf("it died %v", l.Died())
	}
}
