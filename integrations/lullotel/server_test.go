package lullotel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/admission"
)

// Three messages: one succeeds, one fails once, one never succeeds.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPropagator(propagation.TraceContext{}))
		m := must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{}))
		above, sender := r.tracer.Tracer("x").Start(t.Context(), "send")
		headers := queue.Headers{}
		propagation.TraceContext{}.Inject(above, propagation.MapCarrier(headers))
		for _, body := range []string{"fine", "unlucky", "broken"} {
			must.Succeed(m.Send(t.Context(), queue.Outgoing{Body: []byte(body), Headers: headers}))
		}
		p := queue.Policy()
		p.Backoff = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: time.Second}
		d := dependencyOn(t, r, "payments", p)
		handler := r.Handler("orders", "memory", func(ctx context.Context, m *queue.Message) error {
			time.Sleep(20 * time.Millisecond)
			switch {
			case string(m.Body) == "broken":
				return lull.Permanent(errors.New("no amount"))
			case string(m.Body) == "unlucky" && m.Attempt == 1:
				return errDown
			}
			return nil
		})
		c := must.Have(queue.New("orders", m, d, handler, queue.Config{Concurrency: 1}, queue.WithObserver(r.Queue)))
		defer r.WatchConsumer("orders", c)()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		must.Succeed(c.Run(ctx))
		all := r.collect(t)
		all.want(t, 2, "consumer.deliveries", "outcome", "ack")
		all.want(t, 1, "consumer.deliveries", "outcome", "retry")
		all.want(t, 1, "consumer.deliveries", "outcome", "dead-letter")
		all.want(t, 0, "consumer.deliveries", "outcome", "lease_lost")
		all.want(t, 1, "consumer.dlq", "queue", "orders", "reason", "permanent")
		all.want(t, 4, "consumer.attempt", "queue", "orders")
		all.want(t, 4, "messaging.process.duration", "messaging.destination.name", "orders", "messaging.operation.name", "process", "messaging.system", "memory")
		all.want(t, 2, "messaging.process.duration", "error.type", "")
		all.want(t, 1, "messaging.process.duration", "error.type", "transient")
		all.want(t, 1, "messaging.process.duration", "error.type", "permanent")
		all.want(t, 0, "consumer.in_flight", "queue", "orders")
		all.wantSum(t, .08, "messaging.process.duration")
		all.wantSum(t, 1+1+1+2, "consumer.attempt")
		spans := r.spans.GetSpans()
		if len(spans) != 4 {
			t.Fatalf("%d spans, want 4", len(spans))
		}
		failed := 0
		for _, s := range spans {
			if s.Name != "process orders" || s.SpanKind != trace.SpanKindConsumer || s.Parent.SpanID() != sender.SpanContext().SpanID() {
				t.Errorf("%s of kind %v is not a consumer's in the sender's trace", s.Name, s.SpanKind)
			}
			if _, ok := attributes(s.Attributes)["error.type"]; ok {
				failed++
			}
		}
		check.Equal(t, failed, 2, "spans that failed")
	})
}

// Names from handlers and brokers make no more series than the limit. A message that is deferred or
// dropped is no failure.
func TestProcessing(t *testing.T) {
	r := newRig(t, WithLimits(Limits{Dependencies: 1, Codes: 2}))
	nothing := func(context.Context, *queue.Message) error { return nil }
	r.Handler("q", "", nothing)
	r.Handler("another", "kafka", nothing) // which is one of all others
	on := func(name string, o queue.MessageOutcome, code string) {
		r.Queue(t.Context(), queue.Event{Kind: queue.EventSettled, Queue: name, Outcome: o, Reason: code, Code: code, Tries: 1, Attempt: 1, Elapsed: time.Millisecond})
	}
	on("q", queue.Ack, "")
	on("q", queue.Defer, "defer")
	on("q", queue.Drop, "drop")
	for _, code := range []string{"", "a", "b", "c\xff", "d"} {
		on("q", queue.DeadLetter, code)
	}
	on("another", queue.Ack, "")
	all := r.collect(t)
	all.want(t, 4, "messaging.process.duration", "error.type", "", "messaging.destination.name", "q")
	all.want(t, 1, "messaging.process.duration", "error.type", "a")
	all.want(t, 2, "messaging.process.duration", "error.type", Other)
	all.want(t, 3, "consumer.dlq", "reason", Other)
	all.want(t, 0, "consumer.dlq", "reason", "")
	all.want(t, 1, "messaging.process.duration", "messaging.destination.name", Other, "messaging.system", "")
}

// Deferring or dropping a message is no failure of its handler.
func TestHandlersThatDecide(t *testing.T) {
	for _, c := range []struct {
		err                error // nil and an error type: it panics
		outcome, errorType any   // of the span
	}{
		{nil, nil, nil},
		{queue.DeferFor(errors.New("early"), time.Second), "defer", nil},
		{fmt.Errorf("again: %w", queue.DropMessage(nil)), "drop", nil},
		{queue.DeadLetterAs("schema", nil), nil, "unclassified"},
		{lull.Transient(errors.New("down")), nil, "transient"},
		{nil, nil, queue.ReasonPanicked},
	} {
		r := newRig(t)
		h := r.Handler("q", "", func(context.Context, *queue.Message) error {
			if c.errorType == queue.ReasonPanicked {
				panic("oh")
			}
			return c.err
		})
		func() {
			defer func() { recover() }()
			if err := h(t.Context(), &queue.Message{}); err != c.err {
				t.Errorf("%v came back as %v", c.err, err)
			}
		}()
		s := r.spans.GetSpans()[0]
		expect(t, s.Attributes, "retry.outcome", c.outcome, "error.type", c.errorType)
		if (s.Status.Code == codes.Error) != (c.errorType != nil) {
			t.Errorf("%v: %v", c.err, s.Status)
		}
	}
}

func TestAdmission(t *testing.T) {
	r := newRig(t)
	c := must.Have(admission.New(admission.Config{Limit: 1, MaxWait: 100 * time.Millisecond}, admission.WithObserver(r.Admission("api")), admission.WithRand(seed.Source(t))))
	defer r.WatchGate("api", admission.NewGate(c))()
	now := time.Second
	first, second := &admission.Ticket{}, &admission.Ticket{Settled: func(*admission.Ticket, admission.Decision) {}}
	c.Arrive(now, admission.Request{}, first)
	c.Arrive(now, admission.Request{}, second)
	hedge := admission.Request{Hedge: true, Priority: admission.SheddablePlus}
	c.Arrive(now, hedge, &admission.Ticket{})
	c.Depart(now+20*time.Millisecond, first, admission.Done)
	all := r.collect(t)
	all.want(t, 2, "admission.admitted", "admission", "api", "priority", "critical", "attempt_class", "first")
	all.want(t, 1, "admission.shed", "admission", "api", "priority", "sheddable-plus", "attempt_class", "hedge", "reason", "shed_hedge")
	all.want(t, 1, "admission.shed")
	all.want(t, 1, "admission.queue.wait", "result", "admitted")
	all.want(t, 1, "admission.limit")
	all.want(t, 1, "admission.in_flight")
	all.want(t, 0, "admission.waiting")
	all.wantSum(t, .02, "admission.queue.wait")
}
