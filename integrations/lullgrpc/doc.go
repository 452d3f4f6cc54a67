// Package lullgrpc puts lull under gRPC connections: a [Client] makes the calls of
// a grpc.ClientConn as calls under a [lull.Policy], unary ones and streams, with one
// [lull.Dependency] for each target; and two interceptors are the server's half.
//
//	opts, err := lullgrpc.DialOptions(lull.Policy{}, lullgrpc.WithIdempotent("/shop.Orders/Get"))
//	...
//	conn, err := grpc.NewClient("dns:///orders:443", append(opts, creds)...)
//
// gRPC retries by itself if a service config says so (gRFC A6,
// https://github.com/grpc/proposal/blob/master/A6-client-retries.md). It bounds the
// attempts of one call, and throttles all calls of a channel when many fail. What it
// has not: a budget that recovers with time, a breaker, a wait that gives way to the
// deadline, a timeout for an attempt, and a difference between a server that is away
// and one that asks for fewer requests. This package keeps its wire protocol and
// brings those.
//
// # One layer retries
//
// [Client.DialOptions] contain grpc.WithDisableRetry: with gRPC's own retries below
// these, three attempts of four would be twelve. What stays on are its transparent
// retries, of calls that no server has looked at; they are part of sending a call
// once, and neither counted nor delayed here.
//
// # What is retried
//
// [Classify] has the list. UNAVAILABLE is transient. RESOURCE_EXHAUSTED is
// throttled: the wait before another attempt starts from Policy.ThrottleBase, a
// second, and is never that after a blip. DEADLINE_EXCEEDED is a timeout, and
// repeated as Policy.Timeouts says. All others are final: answers, or failures of
// which nothing tells whether they would come again.
//
// Some failures are the call's own, and none of the server's. They are not repeated, and
// count neither for nor against the dependency:
//
//   - Credentials that cannot be had, whether the call has brought them along
//     (grpc.PerRPCCredentials) or the connection has them (grpc.WithPerRPCCredentials). Of the
//     latter this is known because gRPC gave the attempt no stream, although the connection
//     was ready. A call that a load balancer's policy drops looks the same.
//   - A message that is larger than this side allows: RESOURCE_EXHAUSTED, too. A request is
//     measured. A reply was too large if a header came, and then no refusal: neither
//     trailers alone, nor a pushback, nor details. The first time that a method fails so, and
//     the server has not refused it, the header is not known, and counts as received.
//
// # What may be repeated
//
// HTTP has methods that are safe to repeat. gRPC has not: every call is a POST, and
// its own retries leave it to whoever writes the service config to name methods that
// are safe. So nothing is known of a method until somebody says it, and then a call
// is repeated only if it was never sent. It is said by, in this order,
//
//   - the call: the options [Idempotent] and [NotIdempotent];
//   - the client: [WithIdempotent] and [WithNotIdempotent], by method or service;
//   - a service config: a retryPolicy or hedgingPolicy is its owner's word
//     ([WithServiceConfig]);
//   - the method's descriptor, if generated code has registered it: the option
//     idempotency_level, as NO_SIDE_EFFECTS or IDEMPOTENT.
//
// A call counts as never sent if gRPC itself has ended it without ever giving it a
// stream on a connection: connections were refused, the name did not resolve, or its
// time ran out while it waited for either. That is read off gRPC's own account of the
// call (its peer, and its OnFinish), not off the text of an error; if the account is
// missing, because an interceptor in between drops call options, nothing is claimed.
//
// # Hedging
//
// Under a policy with a Policy.Hedge a unary call that may be repeated has a second
// attempt beside the first when that is slow, by the rules of the engine
// ([engine.HedgedCall]) and of gRFC A6: the first success is the answer, and cancels the
// other attempts, of which the server is told; a status that is an answer (NOT_FOUND,
// say) ends the call as well; one that is transient sends the next attempt at once, and
// is never the answer while another attempt is in flight, however fast it was; a
// pushback has the next attempt wait, or forbids it. Hedges are paid for from the budget,
// a retryThrottling if there is one, and all attempts share the deadline of the call.
//
// The first attempt is made on the caller's goroutine, with the caller's messages, and
// has returned when the call does. Each of the others has a copy of the request, made
// when it begins, and a reply of its own, which is copied into the caller's if it wins.
// A loser's reply is never seen, not even together with an error, and losers that
// return late neither read nor write what is the caller's. The same holds for
// grpc.Header, grpc.Trailer and grpc.Peer: they tell of the attempt that counts.
// Interceptors that are chained after the client's see attempts side by side, and
// options of their own by which they write to the caller's memory are theirs to guard.
//
// Messages that are not protobuf's cannot be copied: such calls are retried, and not
// hedged, as often as Policy.Hedge.Attempts says. So are calls that may not be
// repeated, if they were never sent.
//
// Streams are not hedged either, but retried: under a policy that hedges a stream has
// up to Policy.Hedge.Attempts attempts, one after the other, with the waits of
// Policy.Backoff between them. A stream that may be silent for long is not late, and
// how much of it two servers would have to do at once nobody can tell beforehand. Put
// the methods that stream under a policy of their own ([WithPolicy]) if other numbers
// suit them better.
//
// # What the server says
//
// A trailer grpc-retry-pushback-ms with a number is waited for, at least that long,
// plus jitter; so is a google.rpc.RetryInfo among the status's details, and the longer
// one if there are both. A wait longer than Policy.HintLimit, or than what is left,
// ends the call. A pushback that is negative, malformed, or given more than once
// forbids another attempt: the call ends with lull.ErrOverloaded.
//
// # Streams
//
// A stream is retried until it is committed: by the header of the response, by its
// first message, by an end without failure, by a call of Context, or by sending more
// than the replay buffer holds ([WithReplayBuffer], 256 KiB unless the call has
// grpc.MaxRetryRPCBufferSize). Until then what was sent is kept, CloseSend included,
// and sent again on another attempt, and RecvMsg, Header and SendMsg wait for it;
// afterwards everything passes straight through, errors as well. Messages are kept as
// bytes, since senders fill one buffer again and again; one that is not protobuf's
// commits the stream.
//
// Each attempt is a stream of its own to interceptors that are chained after the client's.
// They see its calls from several goroutines, but, from a caller who makes one call at a time,
// one at a time: what was sent is sent again before anything is received. From a caller who
// sends while it receives they see that, too.
//
// To the engine the answer (a header, a message, an end without failure) is the end of the
// call, and a success: it earns budget, the breaker learns of it, and the place under the
// concurrency limit is given back. How a stream fares afterwards, for hours maybe, says
// nothing of how the next call will. A stream that is committed without an answer, by
// Context or by more than the buffer holds, keeps its place until it is answered or ends;
// if it fails it counts neither for nor against the dependency. From the commit on messages
// are not copied any more.
//
// A stream may be silent for as long as it likes, so a half-open breaker does not wait for
// it: a unary call is let through beside it, and decides. Where there are streams alone, one
// that has not failed for breaker.Config.ProbeTimeout is a success. Policy.AttemptTimeout bounds its
// opening, and Policy.Deadline the time within which it is retried; neither cuts it,
// nor is the server told of them. Where streams answer at once [WithStreamTimeouts]
// makes both run until then. The caller's deadline rules in any case.
//
// # What the caller gets
//
// The server's own status, as it is, if it is an answer or nothing is known of it.
// Any other failure is an [*Error]: to the status package the status of the last
// attempt, with its details; to errors.As a [*lull.Error], which tells how often the
// call was tried and why it was not tried again.
//
// An OnFinish that the caller gives is called once for the call, not for each attempt.
// grpc.Header, grpc.Trailer and grpc.Peer are of the attempt whose status comes back; of a
// stream, they are written when it ends.
//
// # What the server sees
//
// grpc-previous-rpc-attempts from the second attempt on, as gRPC sends it (attempts
// that run side by side count those that began before, and those beside another say
// lull-hedge: ?1); and the time that is left to the attempt as its deadline. [AttemptNumber] reads the one.
// [SetPushback] and [DontRetry] answer; with the interceptors installed the trailer
// is sent once, whoever asked how often, and a call that failed because lull has
// given up one of its own calls is sent back with "do not retry", so that layers do
// not multiply.
//
// [AdmitUnary] and [AdmitStream] are admission control (package admission); health checks
// and reflection pass, and so does what [WithSkip] names. [WithTrust] names the callers that
// are believed.
//
// # Service configs
//
// [ParseServiceConfig] reads the retry part of a service config, with every problem
// located; [WithServiceConfig] puts methods under it; [ServiceConfigOf] writes a
// policy as one, and lists what is lost. A target's service config that comes by name
// resolution is not seen by interceptors, and its retryPolicy, switched off, does
// nothing; its timeouts, message sizes and load balancing stay in force.
//
// # Where this differs from gRFC A6
//
//   - Jitter: the proposal changed in August 2024 from [0, c] to [0.8c, 1.2c]; both
//     can be read ([Reading]). A policy that comes from no service config has lull's
//     own waits.
//   - A pushback is a least wait, with jitter on top, where the proposal has it exact:
//     clients that were turned away together were all told the same number. One of
//     zero asks for nothing, and the ordinary wait applies.
//   - A wait that would cross the deadline is not begun, and the last status comes
//     back at once instead of DEADLINE_EXCEEDED later.
//   - A unary call may be repeated though its failure came after a header: nothing of
//     it has reached the caller. For streams the header commits, as there.
//   - A pushback with a status that is not retried does not make it retried (grpc-go,
//     core and node agree; grpc-java and dotnet do retry). See [WithClassifier].
//   - OK among retryableStatusCodes is an error (as in grpc-java), and so is a timeout
//     that is not positive.
//   - While hedges are in flight, a status that is fatal but no answer (INTERNAL, or
//     an UNAVAILABLE that is not among nonFatalStatusCodes) sends no further one, and
//     is the call's only if those in flight fail too. In the proposal it cancels them:
//     there the server that fails fastest decides.
//   - RESOURCE_EXHAUSTED among nonFatalStatusCodes sends the next attempt after
//     Policy.ThrottleBase, not at once.
//   - Streams are not hedged.
//
// # What is not in its hands
//
// A server that fails with RESOURCE_EXHAUSTED after a header of its own, and asks for
// nothing, cannot be told from a reply that is too large (see above). Neither is repeated;
// WithCode changes that. HTTP's 429, from a proxy that speaks no gRPC, arrives as
// UNAVAILABLE.
//
// # What it costs
//
// A unary call over a stub that returns at once: about 270 ns and two allocations
// (the call's state, and the function that gRPC tells of its end), with an attempt
// timeout of its own three. Of a whole call to a server in memory, 18 µs and 152
// allocations (BenchmarkUnary, medians, each beside a bare call in the same loop), that
// is 2.7 % and 4 allocations, where gRPC's own retry policy is not to be seen. A
// deadline, which both sides have to watch, costs more than lull:
//
//	                                        time     allocations
//	bare                                    1.00     152
//	gRPC's own retry policy                 1.00     152
//	lull, without timeouts                  1.027    156
//	bare, with a deadline                   1.08     167
//	lull, the zero Policy, same deadline    1.105    171
//	lull, the zero Policy                   1.12     177
//	lull, hedging, and the call is in time  1.15     178
//
// A stream costs a goroutine until it is committed, and about 7 µs and 23 allocations.
//
// It depends on google.golang.org/grpc, google.golang.org/protobuf and
// google.golang.org/genproto/googleapis/rpc (for RetryInfo), and on what those
// depend on, golang.org/x/net, sys and text: nothing that a program which uses gRPC
// has not got already. (Two generated packages come with it, errdetails and
// descriptorpb; a client of 15 MB grows by 1.3.) The root module lull depends on
// nothing. Of gRPC's interfaces that are marked experimental it uses OnFinish, and
// the types of two call options.
package lullgrpc
