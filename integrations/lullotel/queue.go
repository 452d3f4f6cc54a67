package lullotel

import (
	"cmp"
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull/queue"
)

// keyQueue is the name of a consumer, which is the name of its queue.
const keyQueue = "queue"

type queueTally struct {
	label     string
	settled   [8]atomic.Int64  // deliveries, by outcome
	events    [16]atomic.Int64 // the other kinds of event
	letters   *names[tally]    // dead letters, by reason
	record    []metric.RecordOption
	system    atomic.Pointer[string] // of the broker, if a Handler knows it
	succeeded atomic.Pointer[processing]
	failed    *names[processing] // by code
}

// processing has the attributes for the durations of handlers with the same result.
type processing struct{ record []metric.RecordOption }

func newQueueTally(label string, l Limits) *queueTally {
	q := &queueTally{label: label, letters: newNames(l.Codes, newTally)}
	q.record = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String(keyQueue, label)))}
	q.failed = newNames(l.Codes, func(code string) *processing { return q.processing(keyErrorType.String(code)) })
	return q
}

// processing returns the attributes of semantic conventions for the processing of messages.
func (q *queueTally) processing(more ...attribute.KeyValue) *processing {
	all := append(more, attribute.String("messaging.operation.name", "process"), attribute.String("messaging.destination.name", q.label))
	if s := q.system.Load(); s != nil {
		all = append(all, attribute.String("messaging.system", *s))
	}
	return &processing{[]metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(all...))}}
}

// processed returns the processing for the result of a delivery's handler.
func (q *queueTally) processed(e *queue.Event) *processing {
	switch e.Code {
	case "", queue.Defer.String(), queue.Drop.String(): // queue.DeferFor and the like are no failures
	default:
		return q.failed.get(e.Code)
	}
	p := q.succeeded.Load()
	if p == nil {
		p = q.processing()
		q.succeeded.Store(p)
	}
	return p
}

// Queue is the observer of a consumer: queue.WithObserver(t.Queue).
func (t *Telemetry) Queue(ctx context.Context, e queue.Event) {
	q := t.queues.get(e.Queue)
	switch e.Kind {
	case queue.EventSettled:
		q.settled[min(int(e.Outcome), len(q.settled)-1)].Add(1)
		if e.Outcome == queue.DeadLetter {
			q.letters.get(cmp.Or(e.Reason, Other)).Add(1)
		}
	default:
		q.events[min(int(e.Kind), len(q.events)-1)].Add(1)
	}
	switch e.Kind {
	case queue.EventSettled, queue.EventSettleFailed, queue.EventLeaseLost:
		if e.Tries > 0 {
			t.instruments.consumerAttempt.Record(ctx, int64(e.Attempt), q.record...)
			t.instruments.processDuration.Record(ctx, e.Elapsed.Seconds(), q.processed(&e).record...)
		}
	}
}

func (q *queueTally) collect(i *instruments, out metric.Observer) {
	name := attribute.String(keyQueue, q.label)
	for o := queue.Ack; o <= queue.Drop; o++ {
		out.ObserveInt64(i.deliveries, q.settled[o].Load(), metric.WithAttributes(name, attribute.String(keyOutcome, o.String())))
	}
	for k := range q.events {
		n, kind := q.events[k].Load(), queue.EventKind(k)
		switch {
		case kind == queue.EventSettleFailed, kind == queue.EventLeaseLost:
			out.ObserveInt64(i.deliveries, n, metric.WithAttributes(name, attribute.String(keyOutcome, kind.String())))
		case n > 0:
			out.ObserveInt64(i.consumerEvents, n, metric.WithAttributes(name, attribute.String("event", kind.String())))
		}
	}
	q.letters.all(func(l *tally) {
		out.ObserveInt64(i.deadLetters, l.Load(), metric.WithAttributes(name, keyReason.String(l.label)))
	})
}

// Handler makes each run of h a span ("process" and the queue's name, of kind consumer). The trace
// is that of the message's headers, if they have one: then all attempts are in the sender's trace,
// whichever process makes them. System is semantic conventions' name of the broker, such as
// "rabbitmq" or "aws_sqs"; empty if there is none. messaging.process.duration uses it too: make the
// handler before its consumer runs.
func (t *Telemetry) Handler(queueName, system string, h queue.Handler) queue.Handler {
	all := []attribute.KeyValue{
		attribute.String("messaging.operation.type", "process"), attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", text(queueName)),
	}
	if system != "" {
		all = append(all, attribute.String("messaging.system", system))
	}
	if q := t.queues.get(queueName); system != "" && q.label != Other {
		q.system.Store(&system)
	}
	every := trace.WithAttributes(all...)
	name := "process " + text(queueName)
	return func(ctx context.Context, m *queue.Message) error {
		ctx = cmp.Or(t.propagator, otel.GetTextMapPropagator()).Extract(ctx, propagation.MapCarrier(m.Headers))
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), every, trace.WithAttributes(
			attribute.String("messaging.message.id", text(m.ID)), attrAttempt.Int(m.Attempt), attribute.Int("retry.try", m.Try)))
		normal := false
		defer func() {
			if !normal {
				span.SetAttributes(keyErrorType.String(queue.ReasonPanicked))
				span.SetStatus(codes.Error, queue.ReasonPanicked)
			}
			span.End()
		}()
		err := h(ctx, m)
		normal = true
		switch outcome, ok := queue.Decided(err); {
		case err == nil:
		case ok && outcome != queue.DeadLetter: // deferred or dropped, which is no failure
			span.SetAttributes(attribute.String("retry.outcome", outcome.String()))
		default:
			v := queue.Classify(err)
			span.SetAttributes(errorType(v.Code))
			span.SetStatus(codes.Error, text(v.Code))
		}
		return err
	}
}
