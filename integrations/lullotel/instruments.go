package lullotel

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
)

const (
	keyDependency  = "dependency"
	keyOperation   = "operation"
	keyOutcome     = "outcome"
	keyReason      = attribute.Key("reason")
	keyResend      = "resend"
	keyErrorType   = attribute.Key("error.type")
	keyState       = attribute.Key("state")
	keyFrom        = attribute.Key("from")
	keyTo          = attribute.Key("to")
	keyMetricsOnly = attribute.Key("metrics_only")
	keyResult      = attribute.Key("result")
	keyIn          = attribute.Key("in")
	keyCause       = attribute.Key("cause")
)

// Buckets of histograms, in seconds.
var (
	delayBuckets    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30}
	attemptBuckets  = []float64{1, 2, 3, 4, 5, 7, 10, 15, 25} // numbers

	// The recommendations of gRFC A96 and, for times, A66.
	a96Buckets = []float64{1, 2, 3, 4, 5}
	a66Buckets = []float64{
		0, .00001, .00005, .0001, .0003, .0006, .0008, .001, .002, .003, .004, .005, .006, .008, .01, .013, .016, .02, .025, .03, .04,
		.05, .065, .08, .1, .13, .16, .2, .25, .3, .4, .5, .65, .8, 1, 2, 5, 10, 20, 50, 100,
	}
)

type instruments struct {
	// Written to at events.
	callDuration, attemptDuration, delay metric.Float64Histogram
	admissionWait                        metric.Float64Histogram
	consumerAttempt                      metric.Int64Histogram
	processDuration                      metric.Float64Histogram
	grpcRetries, grpcHedges              metric.Int64Histogram
	grpcDelay                            metric.Float64Histogram

	// Read from this package's counters.
	calls, callFailures, attempts, failures, denied, hints, hedges, transitions metric.Int64ObservableCounter
	held                                                                        metric.Float64ObservableCounter
	admitted, shed                                                              metric.Int64ObservableCounter
	deliveries, deadLetters, consumerEvents                                     metric.Int64ObservableCounter

	// Read from watched objects.
	tokens, stock, refusal, rate             metric.Float64ObservableGauge
	cooldown                                 metric.Float64ObservableGauge // and from the counters
	state, inFlight, waiting, hedgesInFlight metric.Int64ObservableGauge
	admissionLimit, admissionInFlight        metric.Int64ObservableGauge
	admissionWaiting, admissionPressed       metric.Int64ObservableGauge
	consumerInFlight                         metric.Int64ObservableGauge
}

// builder makes instruments, and keeps the errors.
type builder struct {
	meter    metric.Meter
	observed []metric.Observable
	errs     []error
}

func (b *builder) check(name string, err error, observed ...metric.Observable) {
	b.observed = append(b.observed, observed...)
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", name, err))
	}
}

func (b *builder) counter(name, unit, description string) metric.Int64ObservableCounter {
	c, err := b.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.check(name, err, c)
	return c
}

func (b *builder) floatCounter(name, unit, description string) metric.Float64ObservableCounter {
	c, err := b.meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.check(name, err, c)
	return c
}

func (b *builder) gauge(name, unit, description string) metric.Int64ObservableGauge {
	g, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.check(name, err, g)
	return g
}

func (b *builder) floatGauge(name, unit, description string) metric.Float64ObservableGauge {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.check(name, err, g)
	return g
}

func (b *builder) seconds(name, description string, buckets []float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
	b.check(name, err)
	return h
}

func (b *builder) counts(name, unit, description string, buckets []float64) metric.Int64Histogram {
	h, err := b.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
	b.check(name, err)
	return h
}

func (b *builder) instruments() (i instruments) {
	i.held = b.floatCounter("retry.held", "s", "How long callers were held by calls that ended: in attempts, and in waits for retries and for room.")
	i.calls = b.counter("retry.calls", "{call}", "Calls that ended, by outcome.")
	i.callFailures = b.counter("retry.call.failures", "{call}", "Calls that failed, by the reason why no further attempt was made.")
	i.attempts = b.counter("retry.attempts", "{attempt}", "Attempts of calls that ended; resend: all but the first.")
	i.failures = b.counter("retry.attempt.failures", "{attempt}", "Attempts that failed, by what the classifier calls it.")
	i.delay = b.seconds("retry.delay", "The wait before a retry, as drawn.", delayBuckets)
	i.callDuration = b.seconds("retry.call.duration", "From the start of a call to its end, with all attempts and waits.", durationBuckets)
	i.attemptDuration = b.seconds("retry.attempt.duration", "Attempts of calls whose first did not succeed at once.", durationBuckets)
	i.denied = b.counter("retry.budget.denied", "{attempt}", "Retries and hedges that the retry budget did not pay for.")
	i.tokens = b.floatGauge("retry.budget.tokens", "{token}", "Retries that the budget would pay for now.")
	i.stock = b.floatGauge("retry.budget.stock", "{token}", "Tokens of a full stock; the budget may have more, which expire.")
	i.cooldown = b.floatGauge("retry.cooldown", "s", "For how long the circuit breaker or the throttle still holds attempts back, or the server has asked to.")
	i.state = b.gauge("retry.breaker.state", "{state}", "1 for the state that the circuit breaker is in, 0 for the others.")
	i.transitions = b.counter("retry.breaker.transitions", "{transition}", "Changes of the circuit breaker.")
	i.hedges = b.counter("retry.hedges", "{attempt}", "Further attempts of hedged calls that were begun, or refused.")
	i.hedgesInFlight = b.gauge("retry.hedges.in_flight", "{attempt}", "Hedges in flight.")
	i.hints = b.counter("retry.server_hints", "{hint}", "What servers said about retries, and what came of it.")
	i.refusal = b.floatGauge("retry.throttle.refusal", "{probability}", "The probability that the client's throttle holds the next attempt back.")
	i.rate = b.floatGauge("retry.throttle.rate", "{attempt}/s", "The rate that the client's throttle holds attempts to; absent while it does not.")
	i.inFlight = b.gauge("retry.limit.in_flight", "{attempt}", "Attempts in flight under the concurrency limit.")
	i.waiting = b.gauge("retry.limit.waiting", "{attempt}", "Attempts that wait for room under the concurrency limit.")

	i.admitted = b.counter("admission.admitted", "{request}", "Requests that were admitted.")
	i.shed = b.counter("admission.shed", "{request}", "Requests that were refused.")
	i.admissionWait = b.seconds("admission.queue.wait", "How long requests waited that did, by what became of them.", delayBuckets)
	i.admissionLimit = b.gauge("admission.limit", "{request}", "Requests that may be in flight.")
	i.admissionInFlight = b.gauge("admission.in_flight", "{request}", "Requests in flight.")
	i.admissionWaiting = b.gauge("admission.waiting", "{request}", "Requests that wait.")
	i.admissionPressed = b.gauge("admission.pressed", "{state}", "1 while requests have waited or were refused for longer than a burst lasts.")

	i.deliveries = b.counter("consumer.deliveries", "{message}", "Deliveries that ended, by what became of the message.")
	i.deadLetters = b.counter("consumer.dlq", "{message}", "Messages that became dead letters, by reason.")
	i.consumerEvents = b.counter("consumer.events", "{event}", "What happened to consumers besides deliveries.")
	i.consumerInFlight = b.gauge("consumer.in_flight", "{message}", "Messages in the hands of the consumer.")
	i.consumerAttempt = b.counts("consumer.attempt", "{attempt}", "Which attempt at its message a delivery was that ended.", attemptBuckets)
	i.processDuration = b.seconds("messaging.process.duration", "How long the handler ran, over all tries of a delivery.", durationBuckets)

	i.grpcRetries = b.counts("grpc.client.call.retries", "{retry}", "Number of retries during the client call. If there were no retries, 0 is not reported.", a96Buckets)
	i.grpcHedges = b.counts("grpc.client.call.hedges", "{hedge}", "Number of hedges during the client call. If there were no hedges, 0 is not reported.", a96Buckets)
	i.grpcDelay = b.seconds("grpc.client.call.retry_delay", "Total time of delay while there is no active attempt during the client call.", a66Buckets)
	return i
}

func (t *Telemetry) collect(_ context.Context, out metric.Observer) error {
	i := &t.instruments
	t.calls.dependencies.all(func(d *dependency) {
		d.operations.all(func(o *operation) { o.collect(i, out) })
		d.collect(i, out)
		if until := d.hintUntil.Load(); until > 0 {
			i.observeCooldown(out, d.label, "hint", time.Duration(until)-time.Since(t.began))
		}
	})
	t.gates.all(func(g *gate) { g.collect(i, out) })
	t.queues.all(func(q *queueTally) { q.collect(i, out) })
	t.collectSources(out)
	return nil
}

// collect reports every outcome from the first call on, as 0 if there is none: Prometheus ignores
// the first value of a new series as an increase.
func (o *operation) collect(i *instruments, out metric.Observer) {
	var first int64 // attempts, as a sum: the difference of two counters could fall
	for outcome := range o.ended {
		n := o.ended[outcome].Load()
		first += n
		n += o.refused[outcome].Load()
		out.ObserveInt64(i.calls, n, metric.WithAttributeSet(o.with(attribute.String(keyOutcome, Outcome(outcome).String()))))
	}
	for in := range o.held {
		out.ObserveFloat64(i.held, time.Duration(o.held[in].Load()).Seconds(), metric.WithAttributeSet(o.with(keyIn.String(heldNames[in]))))
	}
	out.ObserveInt64(i.attempts, first, metric.WithAttributeSet(o.with(attribute.Bool(keyResend, false))))
	out.ObserveInt64(i.attempts, o.resends.Load(), metric.WithAttributeSet(o.with(attribute.Bool(keyResend, true))))
}

func (d *dependency) collect(i *instruments, out metric.Observer) {
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String(keyDependency, d.label))...))
	}
	d.failures.all(func(f *tally) { out.ObserveInt64(i.failures, f.Load(), with(keyErrorType.String(f.label))) })
	d.changes.all(func(c *change) {
		out.ObserveInt64(i.transitions, c.Load(), with(c.attributes[:len(c.attributes):len(c.attributes)]...))
	})
	for r := range d.reasons {
		if n := d.reasons[r].Load(); n > 0 {
			out.ObserveInt64(i.callFailures, n, with(keyReason.String(lull.Reason(r).String())))
		}
	}
	out.ObserveInt64(i.denied, d.denied.Load(), d.observe...)
	for h := range d.hints {
		out.ObserveInt64(i.hints, d.hints[h].Load(), with(keyResult.String(hintNames[h])))
	}
	if n := d.hedges.Load(); n > 0 {
		out.ObserveInt64(i.hedges, n, with(keyResult.String("started")))
	}
	for r := range d.hedgesRefused {
		if n := d.hedgesRefused[r].Load(); n > 0 {
			out.ObserveInt64(i.hedges, n, with(keyResult.String("refused"), keyReason.String(lull.Reason(r).String())))
		}
	}
}
