// Package lullaws puts the calls of clients of the AWS SDK for Go, version 2, under a [lull.Policy].
//
//	services, err := lull.NewRegistry(lull.Policy{}, 100)
//	...
//	err = lullaws.AddTo(&cfg, services) // cfg: that of config.LoadDefaultConfig
//	...
//	queues, buckets := sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg)
//
// Each service and region is a dependency of its own ("SQS/eu-central-1"), with its own budget and
// circuit. If one of them is throttled, the others are not delayed. [Retry] puts one client under a
// dependency that the program already has, for example one that HTTP calls share.
//
// # What is replaced
//
// The SDK repeats in one step of its stack, "Retry". This step asks an aws.Retryer, which does not
// know the call. So a Retryer cannot have a deadline, a breaker that admits calls, or a budget that
// calls earn. This package replaces the step. A call of the client is a call to the dependency. Each
// attempt is one run of the SDK's own step, with repeats switched off. So these remain the SDK's:
//
//   - each attempt resolves its endpoint and its credentials, and is signed anew;
//   - the clock of the machine is corrected by the answers of the service, within the call too;
//   - what is retryable: the codes and types of errors that the configured Retryer knows, also those
//     of retry.AddWithErrorCodes;
//   - the adaptive mode: its client-side rate limit delays the attempts of the service that
//     throttles;
//   - logging of retries, metrics, the header Amz-Sdk-Request.
//
// These are no longer the SDK's: MaxAttempts, the backoff, and the bucket of 500 retry tokens.
// Policy.Attempts, Policy.Backoff and Policy.Budget decide.
//
// # What an error means
//
// Throttling (the SDK's list of codes) is rate limiting. X-Amz-Retry-After and Retry-After are
// obeyed: the call waits for that time, or ends if the policy does not allow it. Errors that the SDK
// would repeat are transient, timeouts too. A refusal of the credentials or permissions (401, 403, an expired
// token) is unclassified: it says nothing about the service. Any other answer of the service is permanent.
//
// A call that fails returns the SDK's smithy.OperationError. It contains a [*lull.Error], which
// contains the error of the last attempt.
//
// The SDK repeats every operation, because AWS's services are made for that: the SDK itself makes the
// idempotency tokens. If a second call has another effect than the first (SendMessage of a standard
// queue), declare it:
//
//	_, err := client.SendMessage(lullaws.With(ctx, lull.NotIdempotent()), input)
//
// A request whose body cannot be read again gets one attempt. Policy.AttemptTimeout ends with the
// header of an answer. It does not bound the body (GetObject).
//
// Cost: the SDK's step with a context.WithTimeout for each call makes 5 allocations more than without.
// Beside that, this one makes 1 more for a call that succeeds, and takes 0.45 µs more (the least of 2,500
// short rounds on a busy machine; go run ./lab/bench -group adapters compares them). The allocation has the
// call and a copy of the SDK's step, for its attempts.
//
// Package lullsqs makes its own calls once and needs none of this.
package lullaws
