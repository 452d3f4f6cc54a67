// Package lullaws puts the calls of clients of the AWS SDK for Go, version 2, under a [lull.Policy].
//
//	services, err := lull.NewRegistry(lull.Policy{}, 100)
//	...
//	err = lullaws.AddTo(&cfg, services) // cfg: that of config.LoadDefaultConfig
//	...
//	queues, buckets := sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg)
//
// The SDK repeats in one step of its stack, "Retry", by an aws.Retryer, which does not know the call. This
// package replaces the step. Each attempt is one run of the SDK's own step, with repeats switched off, so
// what is retryable, signatures, the correction of the clock, the adaptive mode's rate limit, logs, metrics
// and the header Amz-Sdk-Request remain the SDK's. Attempts, backoff and budget are the policy's.
//
// Throttling is rate limiting, and X-Amz-Retry-After and Retry-After are obeyed. Errors that the SDK would
// repeat are transient, timeouts too. A refusal of the credentials or permissions is unclassified: it says
// nothing about the service. Any other answer is permanent. A call that fails returns the SDK's
// smithy.OperationError with a [*lull.Error] in it.
//
// The SDK repeats every operation. If a second call has another effect than the first (SendMessage of a
// standard queue), declare it:
//
//	_, err := client.SendMessage(lullaws.With(ctx, lull.NotIdempotent()), input)
//
// A request whose body cannot be read again gets one attempt. Policy.AttemptTimeout ends with the
// header of an answer. It does not bound the body (GetObject).
//
// Cost: one allocation and 0.45 µs more for a call that succeeds than the SDK's own step with a
// context.WithTimeout (go run ./lab/bench -group adapters compares them). Package lullsqs makes its own
// calls once and needs none of this.
package lullaws
