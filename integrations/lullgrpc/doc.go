// Package lullgrpc puts lull under gRPC connections. A [Client] makes the calls of a
// grpc.ClientConn, unary calls and streams, under a [lull.Policy], with one
// [lull.Dependency] for each target. Interceptors for servers are the other half.
//
//	opts, err := lullgrpc.DialOptions(lull.Policy{}, lullgrpc.WithIdempotent("/shop.Orders/Get"))
//	...
//	conn, err := grpc.NewClient(target, append(opts, creds)...) // such as dns:///orders:443
//
// gRPC retries by itself if a service config asks for it (gRFC A6,
// https://github.com/grpc/proposal/blob/master/A6-client-retries.md). It bounds the attempts of
// one call, and throttles all calls of a channel when many fail. This package keeps that wire
// protocol. It adds a budget that recovers with time, a breaker, waits that respect the
// deadline, a timeout for each attempt, and longer waits for a server that asks for fewer
// requests. [Client.DialOptions] contain grpc.WithDisableRetry, so that one layer retries.
// gRPC's transparent retries stay on: no server has looked at those calls.
//
// # What is retried
//
// [Classify] has the list of codes. A failure that is the call's own is not repeated, and
// counts neither for nor against the dependency: credentials that cannot be had, and messages
// that are larger than this side allows. A message that is larger than the server takes or may
// send is not sent again either. The text of the status decides that, if it has no details and no
// pushback.
//
// A call is repeated only if it was never sent, or if its method is declared idempotent. These
// declare it, and the first that applies decides:
//
//   - the call: the options [Idempotent] and [NotIdempotent];
//   - the client: [WithIdempotent] and [WithNotIdempotent], by method or service;
//   - a service config: a retryPolicy or a hedgingPolicy ([WithServiceConfig]);
//   - the method's descriptor, if generated code has registered it: the option
//     idempotency_level is NO_SIDE_EFFECTS or IDEMPOTENT.
//
// Under a policy with a Policy.Hedge a unary call that may be repeated is hedged. Streams are
// retried and never hedged. A stream is retried until it is committed. These commit it: the
// header of the response, its first message, an end without failure, a call of Context, and
// more sent data than the replay buffer holds ([WithReplayBuffer], 256 KiB by default, or
// grpc.MaxRetryRPCBufferSize of the call).
//
// # What the caller gets
//
// The caller gets the server's own status if it is an answer, or if nothing is known of it.
// Any other failure is an [*Error]. The status package finds the status of the last attempt
// in it, with its details. errors.As finds a [*lull.Error], with the number of attempts and
// the reason why there was no other.
//
// An OnFinish that the caller gives is called once for the call. grpc.Header, grpc.Trailer and
// grpc.Peer are those of the attempt whose status is returned. For a stream they are written
// when it ends.
//
// # Cost
//
// A unary call over a stub that returns at once costs about 270 ns and two allocations, three
// with an attempt timeout of its own. A stream costs a goroutine until it is committed, and
// about 7 µs and 23 allocations. The module depends on google.golang.org/grpc, protobuf and
// genproto/googleapis/rpc, and on what these depend on.
//
// docs/guide.md has the rest, under "gRPC": hedging, streams, what servers see, service
// configs, the differences from gRFC A6, the limits and the measured costs.
package lullgrpc
