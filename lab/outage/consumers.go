package main

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

// consumers are those compared.
var consumers = []consumer{
	{"lull", "queue.Policy: ten attempts, waits below 1, 2, 4, ... 256 s, a circuit breaker for the service, a retry budget.", ours},
	{"nats.go, Nak", "MaxDeliver 10, Nak on failure; what was delivered ten times stays in the stream, delivered no more, and is counted as a dead letter.", nak},
	{"watermill", "Retry{MaxRetries: 3, InitialInterval: 100ms}, as in its own example, and PoisonQueue.",
		watermillWith(middleware.Retry{MaxRetries: 3, InitialInterval: 100 * time.Millisecond})},
	{"watermill, ten attempts", "Retry{MaxRetries: 9, InitialInterval: 1s, Multiplier: 2, MaxInterval: 10m, RandomizationFactor: 0.5}, which is as patient as lull's, and PoisonQueue. The message is held all the while, and AckWait is its default of 30 s.",
		watermillWith(middleware.Retry{MaxRetries: 9, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 10 * time.Minute, RandomizationFactor: 0.5})},
}
