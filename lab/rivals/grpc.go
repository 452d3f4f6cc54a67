package rivals

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// grpcPolicy is the example of gRPC's proposal A6: initialBackoff 0.1s,
// maxBackoff 1s, backoffMultiplier 2, each wait times 0.8 to 1.2. The schedule's
// Cap holds after jitter, gRPC's maxBackoff before it: hence a fifth more.
func grpcPolicy(attempts int) lull.Policy {
	return attemptsAndWaits(attempts, backoff.Schedule{Jitter: backoff.Proportional, Base: 100 * ms, Cap: 1200 * ms, Factor: 2})
}

func grpc() []Preset {
	const (
		source = "grpc/proposal A6-client-retries.md (2024-08-23), its example; jitter as of 2024-08-29 and grpc-go@4793ad04 stream.go"
		note   = "A pushback in milliseconds is kept to exactly by gRPC, which then begins again with initialBackoff; the engine spreads it upwards and goes on where it was. " +
			"A pushback not to retry costs a token in gRPC, and none here. gRPC has no timeout of an attempt, and does not repeat DEADLINE_EXCEEDED."
	)
	reads := Reads{RetryAfter: true, DontRetry: true}
	throttle := func(tokens int) Budget {
		return Budget{GRPC: budget.GRPCConfig{MaxTokens: tokens, TokenRatio: 0.1}}
	}
	return []Preset{{
		Name: "grpc", Title: "gRPC: 4 attempts from 100 ms to 1 s, retryThrottling 10 tokens, 0.1 a success",
		Source: source,
		Note:   note + " The throttle has no clock: an empty one opens after 51 calls that succeed, and each failed attempt takes a token, also where no retry is left.",
		Policy: grpcPolicy(4), Budget: throttle(10), Reads: reads,
	}, {
		Name: "grpc-throttling-100", Title: "grpc with retryThrottling 100 tokens, 0.1 a success",
		Source: source + "; 100 tokens are a generous service's choice",
		Note:   note + " Fifty failures pass before the throttle shuts, in each process.",
		Policy: grpcPolicy(4), Budget: throttle(100), Reads: reads,
	}, {
		Name: "grpc-no-throttling", Title: "grpc with 5 attempts, the most that it allows, and without retryThrottling",
		Source: source,
		Note:   note + " Without retryThrottling in the service config gRPC does not throttle at all.",
		Policy: grpcPolicy(5), Reads: reads,
	}}
}
