package lullsqs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// Rules of SQS that the emulator does not have, in virtual time.

// open returns a queue on a fake.
func open(t *testing.T, name string, change func(*Config)) (*fake, *Broker) {
	t.Helper()
	f := newFake()
	config := must.Have(Declare(t.Context(), f, Topology{Queue: name}))
	if change != nil {
		change(&config)
	}
	q := must.Have(New(f, config))
	return f, q
}

// on runs a test of such a queue in virtual time.
func on(t *testing.T, name string, change func(*Config), test func(t *testing.T, f *fake, q *Broker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, q := open(t, name, change)
		test(t, f, q)
	})
}

func one(t *testing.T, q *Broker, lease time.Duration) *queue.Delivery {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.Want{Max: 10, Lease: lease})
	if err != nil || len(got) != 1 {
		t.Fatalf("Receive: %d messages, %v", len(got), err)
	}
	return got[0]
}

// letters returns the first dead letters of q, and their reading.
func letters(t *testing.T, q *Broker) ([]*queue.Letter, queue.DeadLetters) {
	t.Helper()
	from := must.Have(q.Letters(queue.ScanConfig{}))
	all := must.Have(from.Next(t.Context(), 10))
	return all, from
}

// redriven puts dead letters of q back.
func redriven(t *testing.T, q *Broker, f queue.Filter, progress func(queue.LetterResult)) (queue.Progress, error) {
	t.Helper()
	from := must.Have(q.Letters(queue.ScanConfig{}))
	return queue.Redrive(t.Context(), from, q, queue.RedriveConfig{Filter: f, Rate: math.Inf(1)}, progress)
}

func send(t *testing.T, q *Broker, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		must.Succeed(q.Send(t.Context(), queue.Outgoing{Body: []byte(body), Group: "g"}))
	}
}

// A message is out for 12 hours after its receive at most, in all: a lease that is extended as far
// as possible leaves room for the longest delay.
func TestTwelveHours(t *testing.T) {
	for _, longest := range []time.Duration{time.Second, 0, 11 * time.Hour} {
		on(t, "orders", func(c *Config) { c.MaxDelay = longest }, func(t *testing.T, _ *fake, q *Broker) {
			can := q.Capabilities()
			send(t, q, "hello")
			began := time.Now()
			d := one(t, q, time.Hour)
			end := d.Lease
			for {
				time.Sleep(time.Until(end) * 2 / 3)
				until := must.Have(q.Extend(t.Context(), d, time.Hour))
				if until.Equal(end) {
					break
				}
				end = until
				if time.Until(end) < 3*time.Second {
					break
				}
			}
			if got := end.Sub(began); got > can.MaxLease || got < can.MaxLease-2*time.Second {
				t.Errorf("MaxDelay %v: a lease could be extended for %v, MaxLease is %v", longest, got, can.MaxLease)
			}
			settled := time.Now()
			must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Retry, After: can.MaxDelay}))
			var again []*queue.Delivery
			for len(again) == 0 {
				again = must.Have(q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Minute}))
			}
			if got := time.Since(settled); got < can.MaxDelay || got > can.MaxDelay+2*time.Second {
				t.Errorf("after a delay of %v it came after %v", can.MaxDelay, got)
			}
			if got := time.Since(began); got > 12*time.Hour {
				t.Errorf("it was out for %v", got)
			}
		})
	}
}

// If SQS still refuses a delay, the message waits for as long as SQS allows.
func TestDelaysThatAreRefused(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		send(t, q, "hello")
		d := one(t, q, time.Hour)
		for _, m := range f.queues[q.config.Queue].messages {
			m.received = m.received.Add(-9*time.Hour - time.Second) // SQS counts otherwise
		}
		must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Retry, After: 6 * time.Hour}))
		settled := time.Now()
		for {
			got := must.Have(q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Hour}))
			if len(got) > 0 {
				break
			}
		}
		if got := time.Since(settled); got < 90*time.Minute || got > 3*time.Hour {
			t.Errorf("it waited for %v, SQS allowed 3h", got)
		}
		check.Equal(t, f.counts["Change"], 3, "changes of visibility")
	})
}

func TestDelaysAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{0: 0, 1: time.Second, time.Second: time.Second, time.Second + 1: 2 * time.Second, 5 * time.Hour: 5 * time.Hour} {
		check.Equal(t, ceilSeconds(d), want, "%v is rounded to", d)
	}
}

// The lease that Receive returns ends no later than SQS', however late in a poll the message came.
func TestLeasesOfLongPolls(t *testing.T) {
	for _, c := range []struct{ lease, wait, want, poll time.Duration }{
		{30 * time.Second, 0, 35 * time.Second, 5 * time.Second},
		{30 * time.Second, 20 * time.Second, 45 * time.Second, 15 * time.Second},
		{time.Minute, 20 * time.Second, 80 * time.Second, 20 * time.Second},
		{100 * time.Millisecond, 0, 2 * time.Second, time.Second},
		{1500 * time.Millisecond, 0, 3 * time.Second, time.Second},
		{12 * time.Hour, 0, 12*time.Hour - time.Minute - 6*time.Hour, 5 * time.Second},
	} {
		on(t, "orders", func(k *Config) { k.Wait = c.wait }, func(t *testing.T, f *fake, q *Broker) {
			began := time.Now()
			go func() {
				time.Sleep(c.poll - time.Millisecond)
				q.Send(context.Background(), queue.Outgoing{Body: []byte("late")})
			}()
			d := one(t, q, c.lease)
			check.Equal(t, d.Lease.Sub(began), c.want, "lease %v, wait %v: it ends after", c.lease, c.wait)
			if end := f.queues[q.config.Queue].messages[0].visible; d.Lease.After(end) {
				t.Errorf("lease %v: it ends %v after SQS'", c.lease, d.Lease.Sub(end))
			}
			if left := time.Until(d.Lease); left < min(c.lease, q.config.maxLease()-c.poll) {
				t.Errorf("of a lease of %v there is %v left", c.lease, left)
			}
			synctest.Wait()
		})
	}
}

// A receive is not cut off, as nobody would get its messages.
func TestReceiveIsAnswered(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, _ *fake, q *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel()
			time.Sleep(time.Second)
			q.Send(context.Background(), queue.Outgoing{Body: []byte("late")})
		}()
		got, err := q.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute})
		if len(got) != 1 || err != nil || got[0].Attempt != 1 {
			t.Errorf("%d messages, %v", len(got), err)
		}
	})
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) { // unless there is no answer
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		q.client = &between{f, func(ctx context.Context, _ any) error { <-ctx.Done(); return ctx.Err() }}
		began := time.Now()
		got, err := q.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute})
		if len(got) != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, queue.ErrUnanswered) || lull.Classify(err).Kind != lull.KindTransient {
			t.Errorf("%d messages, %v", len(got), err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// With a deadline Receive polls until then, and no poll is longer than that.
func TestReceiveUntilADeadline(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		for _, d := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 12 * time.Second} {
			before := f.counts["Receive"]
			ctx, cancel := context.WithTimeout(t.Context(), d)
			began := time.Now()
			got, err := q.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute})
			cancel()
			took := time.Since(began)
			if len(got) != 0 || !errors.Is(err, context.DeadlineExceeded) || took < d || took > max(d, time.Second) {
				t.Errorf("%v: %d messages, %v after %v", d, len(got), err, took)
			}
			if n := f.counts["Receive"] - before; n > 4 {
				t.Errorf("%v: %d receives", d, n)
			}
		}
		// The answer needs a moment, and must not be missed.
		var waits []int32
		q.client = &between{f, func(_ context.Context, in any) error {
			waits = append(waits, in.(*sqs.ReceiveMessageInput).WaitTimeSeconds)
			time.Sleep(400 * time.Millisecond)
			return nil
		}}
		for d, want := range map[time.Duration]string{200 * time.Millisecond: "[1]", 2 * time.Second: "[1]", 4 * time.Second: "[3]", 12 * time.Second: "[5 5]"} {
			waits = nil
			ctx, cancel := context.WithTimeout(t.Context(), d)
			began := time.Now()
			q.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute})
			cancel()
			if got := fmt.Sprint(waits); got != want || time.Since(began) > max(d, 1400*time.Millisecond) {
				t.Errorf("%v: polls of %s s, want %s, in %v", d, got, want, time.Since(began))
			}
		}
	})
}

// A rate-limited receive waits before it returns the error, and no longer than AWS' rules demand.
func TestRateLimitedReceives(t *testing.T) {
	for what, err := range map[string]error{
		"typed":   &types.RequestThrottled{},
		"code":    apiError(400, "ThrottlingException", "Rate exceeded"),
		"kms":     &types.KmsThrottled{},
		"status":  apiError(429, "", ""),
		"unnamed": apiError(400, "AWS.SimpleQueueService.RequestThrottled", ""),
	} {
		on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
			f.failing = func(op string, _ int) error {
				if op == "Receive" {
					return err
				}
				return nil
			}
			began := time.Now()
			longest := time.Second
			for n := 1; n <= 10; n++ {
				at := time.Now()
				_, got := q.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute})
				if v := lull.Classify(got); v.Kind != lull.KindRateLimited || !errors.Is(got, err) {
					t.Fatalf("%s: %v", what, got)
				}
				if took := time.Since(at); took > longest {
					t.Errorf("%s: the %d. took %v, %v at most", what, n, took, longest)
				}
				longest = min(2*longest, 20*time.Second)
			}
			if took := time.Since(began); took < 5*time.Second {
				t.Errorf("%s: ten rate-limited receives within %v", what, took)
			}
		})
	}
	for _, c := range []struct{ header, least, most string }{{"1500", "1.5s", "6s"}, {"60000", "5s", "6s"}, {"-1", "0s", "1s"}, {"soon", "0s", "1s"}, {"", "0s", "1s"}} {
		least, _ := time.ParseDuration(c.least)
		most, _ := time.ParseDuration(c.most)
		for range 100 {
			err := failed(t.Context(), "receive", apiError(400, "ThrottlingException", "", "x-amz-retry-after", c.header))
			if d := rateLimitWait(err, 1); d < least || d > most {
				t.Fatalf("asked to wait %q ms: %v", c.header, d)
			}
		}
	}
}

// Too many messages in flight are no error, and no reason to ask again at once.
func TestOverLimit(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		f.limit = 1
		send(t, q, "1", "2")
		d := one(t, q, time.Hour)
		began := time.Now()
		for range 10 {
			got, err := q.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute})
			if len(got) != 0 || err != nil {
				t.Fatalf("%d messages, %v", len(got), err)
			}
		}
		if took := time.Since(began); took < 50*time.Second {
			t.Errorf("ten receives within %v", took)
		}
		must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}))
		if d := one(t, q, time.Minute); string(d.Body) != "2" {
			t.Errorf("%s", d.Body)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Receive(ctx, queue.Want{Max: 1, Lease: time.Minute}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// A receive from a FIFO queue that was not answered is repeated under its id, for five minutes. Its
// message comes, with the right attempt.
func TestReceivesThatAreRepeated(t *testing.T) {
	on(t, "orders.fifo", nil, func(t *testing.T, f *fake, q *Broker) {
		send(t, q, "hello")
		reset := errors.New("connection reset by peer")
		f.cut = func(op string, n int) error {
			if op == "Receive" && n <= 3 {
				return reset
			}
			return nil
		}
		first := time.Now()
		for range 3 {
			if _, err := q.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute}); !errors.Is(err, reset) {
				t.Fatalf("%v", err)
			}
			time.Sleep(10 * time.Second)
		}
		began := time.Now()
		d := one(t, q, time.Minute)
		check.Equal(t, d.Attempt, 1, "attempt")
		check.Equal(t, d.Lease.Sub(began), 65*time.Second, "its lease ends after")
		if r := d.Receipt.(*receipt); !r.since.Equal(first) {
			t.Errorf("the twelve hours begin %v after the first receive", r.since.Sub(first))
		}
		must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Retry}))
		if d := one(t, q, time.Minute); d.Attempt != 2 { // under another id
			t.Errorf("attempt %d", d.Attempt)
		}
	})
	on(t, "orders.fifo", nil, func(t *testing.T, f *fake, q *Broker) { // what is too old is not repeated
		send(t, q, "hello")
		f.cut = func(op string, n int) error {
			if op == "Receive" && n == 1 {
				return errors.New("connection reset by peer")
			}
			return nil
		}
		q.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute})
		time.Sleep(5 * time.Minute)
		d := one(t, q, time.Minute)
		if r := d.Receipt.(*receipt); d.Attempt != 2 || time.Since(r.since) > time.Minute {
			t.Errorf("attempt %d, received %v ago", d.Attempt, time.Since(r.since))
		}
	})
}

// The meaning of the server's errors for an invalid handle, and of others.
func TestWhatErrorsMean(t *testing.T) {
	const lost, permanent, rateLimited, transient, unknown = "lost", "permanent", "rate-limited", "transient", ""
	for _, c := range []struct {
		err  error
		want string
	}{
		{&types.MessageNotInflight{}, lost},
		{apiError(400, "ReceiptHandleIsInvalid", ""), lost},
		{apiError(400, "MessageNotInflight", "Message does not exist or is not available for visibility timeout change."), lost},
		{invalid("Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."), lost},
		{apiError(400, "InvalidParameterValueException", "Value AQEB for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."), lost},
		{invalid("Value 99999 for parameter VisibilityTimeout is invalid."), permanent},
		{&types.QueueDoesNotExist{ErrorCodeOverride: aws.String("AWS.SimpleQueueService.NonExistentQueue")}, permanent},
		{apiError(403, "AccessDenied", ""), permanent},
		{apiError(403, "AccessDeniedException", ""), permanent},
		{&types.KmsAccessDenied{}, permanent},
		{apiError(400, "KMS.DisabledException", ""), permanent},
		{&types.UnsupportedOperation{}, permanent},
		{apiError(400, "KMS.ThrottlingException", ""), rateLimited},
		{apiError(503, "ServiceUnavailable", ""), transient},
		{apiError(500, "InternalFailure", ""), transient},
		{apiError(403, "ExpiredToken", ""), unknown},
		{apiError(403, "SignatureDoesNotMatch", ""), unknown}, // the clock, which the SDK corrects
		{errors.New("connection reset"), unknown},
	} {
		got := handled(t.Context(), "test", c.err)
		v := lull.Classify(got)
		is := map[engine.VerdictKind]string{lull.KindPermanent: permanent, lull.KindRateLimited: rateLimited, lull.KindTransient: transient}[v.Kind]
		if errors.Is(got, queue.ErrLost) {
			is = lost
		}
		if is != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %q, want %q", c.err, is, c.want)
		}
	}
	if handled(t.Context(), "test", nil) != nil {
		t.Error("an error of nothing")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check.Is(t, failed(ended, "test", errors.New("cut off")), context.Canceled, "error")
}

// A worker that has lost the message gets an error, although SQS returns none.
func TestLapsedLeases(t *testing.T) {
	for _, name := range []string{"orders", "orders.fifo"} {
		on(t, name, nil, func(t *testing.T, f *fake, q *Broker) {
			lapsed := func(n int) *queue.Delivery {
				send(t, q, fmt.Sprint(n))
				d := one(t, q, time.Minute)
				time.Sleep(time.Until(d.Lease))
				return d
			}
			d := lapsed(1)
			before := len(f.calls)
			if _, err := q.Extend(t.Context(), d, time.Minute); !errors.Is(err, queue.ErrLost) {
				t.Errorf("Extend: %v", err)
			}
			for _, o := range []queue.MessageOutcome{queue.Retry, queue.Defer, queue.DeadLetter} {
				err := q.Settle(t.Context(), d, queue.Settlement{Outcome: o, Envelope: &queue.Envelope{Reason: "x", OriginalID: d.ID}})
				check.Is(t, err, queue.ErrLost, "%v", o)
			}
			check.Equal(t, len(f.calls), before, "calls: %v", f.calls[before:])
			// The message is deleted even so: nobody else has it.
			check.Is(t, q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}), queue.ErrLost, "Ack")
			left := len(f.queues[q.config.Queue].messages)
			check.Equal(t, left == 1, name != "orders", "%s: one message of %d is left", name, left)
		})
	}
}

// A call that is answered after the lease has lapsed may have come too late, and SQS does not
// report it.
func TestAnswersThatComeTooLate(t *testing.T) {
	for _, extend := range []bool{true, false} {
		on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
			send(t, q, "hello")
			d := one(t, q, time.Minute)
			q.client = &between{f, func(context.Context, any) error { time.Sleep(2 * time.Second); return nil }}
			time.Sleep(time.Until(d.Lease) - time.Second)
			var err error
			if extend {
				_, err = q.Extend(t.Context(), d, time.Hour)
			} else {
				err = q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Retry, After: time.Hour})
			}
			check.Is(t, err, queue.ErrLost, "error")
		})
	}
}

// A dead letter that is interrupted leaves a letter and the message. A second try does not write it
// twice.
func TestDeadLettersThatAreCutShort(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		send(t, q, "hello")
		d := one(t, q, time.Minute)
		cut := errors.New("cut")
		f.failing = func(op string, n int) error {
			if op == "Delete" && n == 1 {
				return cut
			}
			return nil
		}
		s := queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: d.ID}}
		check.Is(t, q.Settle(t.Context(), d, s), cut, "error")
		if n := len(f.queues[q.config.DeadLetters].messages); n != 1 || len(f.queues[q.config.Queue].messages) != 1 {
			t.Errorf("%d letters", n)
		}
		must.Succeed(q.Settle(t.Context(), d, s))
		if n := len(f.queues[q.config.DeadLetters].messages); n != 1 || len(f.queues[q.config.Queue].messages) != 0 {
			t.Errorf("%d letters in the end", n)
		}
	})
}

// Attributes that are not text, and the trace, stay with the message when it dies.
func TestDeadLettersKeepForeignAttributes(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		attrs := map[string]types.MessageAttributeValue{
			"bytes":  {DataType: aws.String("Binary.gif"), BinaryValue: []byte{0, 1}},
			"amount": {DataType: aws.String("Number"), StringValue: aws.String("12.50")},
		}
		for i := range 8 {
			attrs[fmt.Sprint("text", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
		}
		_, err := f.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &q.config.Queue, MessageBody: aws.String("hello"), MessageGroupId: aws.String("tenant"), MessageAttributes: attrs,
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-2-3")}},
		})
		must.Succeed(err)
		d := one(t, q, time.Minute)
		if d.Headers["amount"] != "12.50" || d.Headers["text7"] != "x" || len(d.Headers) != 9 {
			t.Errorf("headers %v", d.Headers)
		}
		must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: d.ID}}))
		m := f.queues[q.config.DeadLetters].messages[0]
		if got := m.attrs["bytes"]; aws.ToString(got.DataType) != "Binary.gif" || string(got.BinaryValue) != "\x00\x01" {
			t.Errorf("the binary attribute: %+v", got)
		}
		if got := m.attrs["amount"]; aws.ToString(got.DataType) != "Number" {
			t.Errorf("the number: %+v", got)
		}
		if m.group != "tenant" || aws.ToString(m.system["AWSTraceHeader"].StringValue) != "Root=1-2-3" {
			t.Errorf("group %q, trace %v", m.group, m.system)
		}
		l, from := letters(t, q)
		if l[0].Reason != "test" || l[0].Headers["text7"] != "x" || l[0].Headers["text0"] != "x" || l[0].Headers["amount"] != "12.50" || l[0].Group != "tenant" {
			t.Errorf("%+v", l[0])
		}
		must.Succeed(from.Close(t.Context()))

		// They also stay when it is put back.
		p := must.Have(redriven(t, q, queue.Filter{}, nil))
		if p.Moved != 1 || len(f.queues[q.config.DeadLetters].messages) != 0 {
			t.Errorf("Redrive: %v", p)
		}
		m = f.queues[q.config.Queue].messages[0]
		if got := m.attrs["bytes"]; aws.ToString(got.DataType) != "Binary.gif" || string(got.BinaryValue) != "\x00\x01" || aws.ToString(m.attrs["amount"].DataType) != "Number" {
			t.Errorf("attributes of the redriven message: %+v", m.attrs)
		}
		if again := one(t, q, time.Minute); again.Headers["text7"] != "x" || again.Headers["amount"] != "12.50" || again.Group != "tenant" || len(again.Headers) != 10 {
			t.Errorf("redriven: %+v", again)
		}
	})
}

// A message of the greatest size has room for a short envelope. One without any room stays, and
// SQS' own limit ends it.
func TestDeadLettersOfLargeMessages(t *testing.T) {
	on(t, "orders", nil, func(t *testing.T, f *fake, q *Broker) {
		e := &queue.Envelope{Reason: "test", Errors: []string{strings.Repeat("long ", 200), strings.Repeat("text ", 200)}}
		for _, dead := range []string{"1048576", "262144"} { // ours to refuse, and SQS'
			most := 262144
			if dead == "1048576" {
				most = mostBytes
			}
			f.queues[q.config.DeadLetters].attrs["MaximumMessageSize"] = dead
			must.Succeed(q.Send(t.Context(), queue.Outgoing{Body: make32(most - 500)}))
			d := one(t, q, time.Minute)
			e.OriginalID = d.ID
			must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e}))
			must.Succeed(q.Send(t.Context(), queue.Outgoing{Body: make32(most - 20)}))
			d = one(t, q, time.Minute)
			err := q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e})
			if v := lull.Classify(err); v.Kind != lull.KindPermanent {
				t.Errorf("%v", err)
			}
			must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}))
		}
		check.Equal(t, len(f.queues[q.config.DeadLetters].messages), 2, "letters")
		err := q.Send(t.Context(), queue.Outgoing{Body: make32(mostBytes + 1)})
		if v := lull.Classify(err); v.Kind != lull.KindPermanent {
			t.Errorf("%v", err)
		}
	})
}

// A message of the greatest size whose headers take some of that has its longest headers shortened
// for the envelope, which names them. SQS refuses the others before that, or the adapter does.
func TestRule21HeadersThatFillAMessage(t *testing.T) {
	for name, x := range map[string]struct {
		headers queue.Headers
		kept    bool
	}{
		"one":             {queue.Headers{"stack": strings.Repeat("s", 5000), "kind": "order"}, true},
		"two":             {queue.Headers{"stack": strings.Repeat("é", 2000), "other": strings.Repeat("o", 5000), "kind": "order"}, true},
		"more than ten":   {queue.Headers{"stack": strings.Repeat("s", 5000), "kind": "order", "1": "x", "2": "x", "3": "x", "4": "x", "5": "x", "6": "x", "7": "x", "8": "x", "9": "x"}, true},
		"of other values": {queue.Headers{"stack": strings.Repeat("s", 5000), "kind": "order", "odd": "\x00"}, true},
	} {
		for _, kind := range []string{"orders", "orders.fifo"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				on(t, kind, nil, func(t *testing.T, f *fake, q *Broker) {
					e := &queue.Envelope{Reason: "test", Errors: []string{strings.Repeat("long ", 200)}}
					for _, dead := range []string{"1048576", "262144"} { // ours to refuse, and SQS'
						most := 262144
						if dead == "1048576" {
							most = mostBytes
						}
						f.queues[q.config.DeadLetters].attrs["MaximumMessageSize"] = dead
						p := must.Have(encode(x.headers, []byte("x")))
						_, attrs, err := p.finish()
						must.Succeed(err)
						body := make32(most - size("", attrs) - 10)
						must.Succeed(q.Send(t.Context(), queue.Outgoing{Group: "g", Headers: x.headers, Body: body}))
						d := one(t, q, time.Minute)
						must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e}))
						all, from := letters(t, q)
						l := all[0]
						stack := l.Headers["stack"]
						if l.Reason != "test" || string(l.Body) != string(body) || (l.Headers["kind"] == "order") != x.kept || len(l.Errors) != 2 || !strings.Contains(l.Errors[0], "shortened") ||
							!strings.HasPrefix(x.headers["stack"], stack) || len(l.Headers["other"]) >= 5000 || len(stack)+len(l.Headers["other"]) == 0 {
							t.Errorf("%s, %d bytes, %d of the header, errors %.200q", l.Reason, len(l.Body), len(stack), l.Errors)
						}
						must.Succeed(from.Remove(t.Context(), l))
						must.Succeed(from.Close(t.Context()))
					}
				})
			})
		}
	}
}

// A message that SQS would drop before it could be retried is a dead letter.
func TestRule21MessagesExpire(t *testing.T) {
	for name, x := range map[string]struct {
		retention, after time.Duration
		expired          bool
	}{
		"not known":          {0, time.Hour, false},
		"long enough":        {2 * time.Hour, time.Hour, false},
		"too short":          {time.Hour, time.Hour, true},
		"the other's clock":  {time.Nanosecond, time.Minute, false},
		"too short, rounded": {time.Minute, time.Minute - time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "orders", nil, func(t *testing.T, _ *fake, q *Broker) {
				q.config.MaxAge = x.retention
				must.Succeed(q.Send(t.Context(), queue.Outgoing{Body: []byte("hello")}))
				time.Sleep(time.Second)
				for _, o := range []queue.MessageOutcome{queue.Retry, queue.Defer} {
					d := one(t, q, 2*time.Minute)
					must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: o, After: x.after}))
					if x.expired {
						l, from := letters(t, q)
						if len(l) != 1 || l[0].Reason != queue.ReasonExpired || l[0].Source != "orders" {
							t.Errorf("%+v", l[0])
						}
						must.Succeed(from.Close(t.Context()))
						break
					}
					time.Sleep(x.after + time.Second)
				}
			})
		})
	}
}

func make32(n int) []byte { return []byte(strings.Repeat("x", n)) }

// A letter that SQS itself has moved has no envelope, and can be redriven like the others.
func TestLettersOfSQSItself(t *testing.T) {
	for _, name := range []string{"orders", "orders.fifo"} {
		on(t, name, nil, func(t *testing.T, f *fake, q *Broker) {
			send(t, q, "hello")
			var id string
			for range 20 { // Topology's MaxReceives
				d := one(t, q, time.Second)
				id = d.ID
				must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Retry}))
			}
			if got, err := q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Second}); len(got) != 0 || err != nil {
				t.Fatalf("%d, %v", len(got), err)
			}
			var seen []*queue.Letter
			p := must.Have(redriven(t, q, queue.Filter{Source: name, Reason: queue.ReasonBroker}, func(s queue.LetterResult) { seen = append(seen, s.Letter) }))
			if p.Moved != 1 || seen[0].OriginalID != id || seen[0].Group != "g" || string(seen[0].Body) != "hello" {
				t.Fatalf("%v: %+v", p, seen)
			}
			d := one(t, q, time.Minute)
			if e, ok := queue.EnvelopeOf(d.Headers); !ok || e.Redrives != 1 || e.OriginalID != id || d.Attempt != 1 || d.Group != "g" {
				t.Errorf("%+v, %+v", d, e)
			}
			check.Equal(t, len(f.queues[q.config.DeadLetters].messages), 0, "letters are left")
		})
	}
}

// A reading that skips letters sees those behind them, also in a FIFO queue.
func TestLettersOfOneGroupAreAllSeen(t *testing.T) {
	on(t, "orders.fifo", nil, func(t *testing.T, f *fake, q *Broker) {
		for i := range 30 {
			send(t, q, fmt.Sprint(i))
			d := one(t, q, time.Minute)
			must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: []string{"a", "b"}[i%2], OriginalID: d.ID}}))
		}
		p := must.Have(redriven(t, q, queue.Filter{Reason: "b"}, nil))
		if p.Seen != 30 || p.Moved != 15 {
			t.Errorf("%v", p)
		}
		check.Equal(t, len(f.queues[q.config.DeadLetters].messages), 15, "letters are left")
		for i := 1; i < 30; i += 2 {
			d := one(t, q, time.Minute)
			if d.Group != "g" || string(d.Body) != fmt.Sprint(i) {
				t.Errorf("%s of group %q, want %d", d.Body, d.Group, i)
			}
			must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}))
		}
	})
}

// Groups of standard queues are for fairness; those of FIFO queues may be none.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"orders", "orders.fifo"} {
			_, q := open(t, name, nil)
			for _, group := range []string{"", "tenant-1", "!~"} {
				must.Succeed(q.Send(t.Context(), queue.Outgoing{Group: group, Body: []byte("x")}))
				d := one(t, q, time.Minute)
				check.Equal(t, d.Group, group, "%s: group", name)
				must.Succeed(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}))
			}
			for _, o := range []queue.Outgoing{{Group: "with space"}, {Group: strings.Repeat("x", 129)}, {Group: "ü"}, {ID: "with space"}, {ID: strings.Repeat("x", 129)}, {Headers: queue.Headers{"x": "\xff"}}, {Headers: queue.Headers{"\xff": "x"}}} {
				if v := lull.Classify(q.Send(t.Context(), o)); v.Kind != lull.KindPermanent {
					t.Errorf("%s: %+v was sent", name, o)
				}
			}
		}
	})
}

func TestWithoutAQueueOfDeadLetters(t *testing.T) {
	on(t, "orders", func(c *Config) { c.DeadLetters = "" }, func(t *testing.T, f *fake, q *Broker) {
		send(t, q, "hello")
		d := one(t, q, time.Minute)
		err := q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{}})
		if v := lull.Classify(err); v.Kind != lull.KindPermanent || len(f.queues[q.config.Queue].messages) != 1 {
			t.Errorf("%v", err)
		}
		if _, err := q.Letters(queue.ScanConfig{}); err == nil {
			t.Error("letters of nowhere")
		}
		d.Receipt = "of another broker"
		if v := lull.Classify(q.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack})); v.Kind != lull.KindPermanent {
			t.Error("a foreign delivery was settled")
		}
		if _, err := q.Extend(t.Context(), d, time.Minute); err == nil {
			t.Error("a foreign delivery was extended")
		}
	})
}

// What SQS answers instead of letters is no empty queue, however late it comes: the reading goes on, or fails.
func TestRule24OnlySQSReportsAnEmptyQueue(t *testing.T) {
	denied := apiError(403, "AccessDeniedException", "no")
	for what, c := range map[string]struct {
		do     func(n int, began time.Time) error
		failed error
	}{
		"throttled with a hint": {do: func(n int, _ time.Time) error {
			if n == 1 {
				return apiError(400, "RequestThrottled", "", "x-amz-retry-after", "3000")
			}
			return nil
		}},
		"too many in flight": {do: func(_ int, began time.Time) error {
			if time.Since(began) > 5*time.Second {
				return nil
			}
			return &types.OverLimit{}
		}},
		"too many in flight for ever": {do: func(int, time.Time) error { return &types.OverLimit{} }, failed: &types.OverLimit{}},
		"denied late": {do: func(int, time.Time) error {
			time.Sleep(2500 * time.Millisecond)
			return denied
		}, failed: denied},
	} {
		for _, idle := range []time.Duration{0, 6 * time.Second} { // lull queue has the second
			synctest.Test(t, func(t *testing.T) {
				const all = 25
				f, q := open(t, "orders", nil)
				for range all {
					send(t, q, "x")
					must.Succeed(q.Settle(t.Context(), one(t, q, time.Minute), queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: queue.ReasonCrashed}}))
				}
				began := time.Now()
				receives := 0
				q.client = &between{f, func(_ context.Context, in any) error {
					if _, receive := in.(*sqs.ReceiveMessageInput); !receive {
						return nil
					}
					receives++
					return c.do(receives, began)
				}}
				from := must.Have(q.Letters(queue.ScanConfig{Idle: idle}))
				p, err := queue.Redrive(t.Context(), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
				switch {
				case c.failed == nil && (err != nil || p.Moved != all):
					t.Errorf("%s: %v, %v", what, p, err)
				case c.failed != nil && (err == nil || code(err) != code(c.failed)):
					t.Errorf("%s: %v, %v, want %v", what, p, err, c.failed)
				}
			})
		}
	}
}

// SQS hides letters of a FIFO group behind others of it that are out. A reading that has passed those over has not read
// all, and says so.
func TestRule24LettersThatAGroupHides(t *testing.T) {
	for _, c := range []struct {
		n     int
		admin bool
		f     queue.Filter
		seen  int
		want  string // an error; empty: none
	}{
		{25, true, queue.Filter{}, 25, ""},
		{25, true, queue.Filter{ID: "none"}, 10, "15 more letters may be there"},
		{10, true, queue.Filter{ID: "none"}, 10, ""},
		{10, false, queue.Filter{ID: "none"}, 10, "some more letters may be there"},
	} {
		on(t, "orders.fifo", nil, func(t *testing.T, f *fake, q *Broker) {
			dead := must.Have(New(f, Config{Queue: q.config.DeadLetters}))
			for i := range c.n {
				must.Succeed(dead.Send(t.Context(), queue.Outgoing{ID: fmt.Sprint(i), Group: "g", Body: []byte("x")}))
			}
			if !c.admin {
				q.client = &between{f, func(context.Context, any) error { return nil }}
			}
			p, err := redriven(t, q, c.f, nil)
			if p.Seen != c.seen || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, %v", c, p, err)
			}
		})
	}
}
