package rivals

import (
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/queue"
)

// messages are consumers of queues.
func messages() []Preset {
	all := []Preset{{
		Name: "queue", Title: "lull's queue.Policy: ten attempts after up to 1, 2, 4, ... 256 s, a circuit breaker, a budget",
		Source: "package queue",
		Policy: queue.Policy(), Reads: everything,
	}, {
		Name: "nack", Title: "a plain nack: redelivered at once, dead after ten deliveries",
		Source: "nats-io/nats.go v1, jetstream: Msg.Nak with ConsumerConfig.MaxDeliver 10",
		Note:   "What was delivered ten times stays in the stream, and nobody gets it any more: it counts as a dead letter.",
		Policy: attemptsAndWaits(10, atOnce),
	}, {
		Name: "delayed-nack", Title: "a nack with a delay of 5 s, dead after ten deliveries",
		Source: "nats-io/nats.go v1, jetstream: Msg.NakWithDelay with ConsumerConfig.MaxDeliver 10",
		Policy: attemptsAndWaits(10, every(5*second)),
	}, {
		Name: "watermill", Title: "watermill's Retry middleware as in its example, and a poison queue",
		Source: "ThreeDotsLabs/watermill v1.5.1, message/router/middleware/retry.go: MaxRetries 3, InitialInterval 100ms",
		Note: "The handler sleeps with the message in hand. The example leaves Multiplier at zero, so that of three waits the first is 100 ms and the others are " +
			"none: here each is a third of that.",
		Policy: attemptsAndWaits(4, every(100*ms/3)), Holds: true,
	}, {
		Name: "watermill-10", Title: "watermill's Retry middleware with ten attempts after 1, 2, 4, ... 256 s, ± 50 %, and a poison queue",
		Source: "ThreeDotsLabs/watermill v1.5.1, message/router/middleware/retry.go: MaxRetries 9, InitialInterval 1s, Multiplier 2, MaxInterval 10m, RandomizationFactor 0.5",
		Note: "The handler sleeps with the message in hand. After the ack wait, which nobody extends, watermill-nats ends its context, so that the message goes " +
			"into the poison queue; there the broker delivers it once more as well.",
		Policy: attemptsAndWaits(10, backoff.Schedule{Jitter: backoff.Proportional, Base: second, Cap: 10 * time.Minute}), Jitter: Jitter{Low: 0.5, High: 1.5}, Holds: true,
	}, {
		Name: "spring-kafka", Title: "spring-kafka's non-blocking retry topics: three attempts, 1 s apart, then the dead letter topic",
		Source: "spring-projects/spring-kafka 4.0, annotation/RetryableTopic.java (attempts 3) and annotation/BackOff.java (DEFAULT_DELAY 1000)",
		Note:   "@RetryableTopic without arguments. The delay is exact here; a consumer of a retry topic pauses its partition, and is a little late.",
		Policy: attemptsAndWaits(3, every(second)),
	}}
	for i := range all {
		all[i].Messages, all[i].Reads.Timeouts = true, true
	}
	return all
}
