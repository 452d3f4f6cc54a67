package lullgrpc

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/grpcstatus"
	"github.com/lullgo/lull/internal/neterr"
)

// A Failure describes an attempt that failed.
type Failure struct {
	Method string // "/service/method"
	Err    error  // never nil; status.FromError has its code and details
	// Trailer is the metadata that the server sent with its status; nil if it sent nothing. It
	// includes the hint of gRPC's own retries, grpc-retry-pushback-ms.
	Trailer metadata.MD
	// NeverSent: gRPC itself ended the attempt, and had no connection for it.
	NeverSent bool
}

// Classify returns the verdict on a failed attempt:
//
//   - UNAVAILABLE: transient. By definition, calling again may help. It is rate-limited if gRPC made
//     it of a proxy's HTTP status 429, or of a GOAWAY with ENHANCE_YOUR_CALM.
//   - DEADLINE_EXCEEDED: the engine's timeout. Either the attempt's own time ran out, or the server
//     reports that its time ran out. See lull.Policy.Timeouts for when it is repeated.
//   - RESOURCE_EXHAUSTED: rate-limited, so it is never repeated at once. Servers, and HTTP/2's
//     ENHANCE_YOUR_CALM, ask for fewer requests with it. It is permanent if gRPC on the server made
//     it because a message is too large, and unclassified if gRPC on this side did.
//   - INTERNAL, UNKNOWN, DATA_LOSS, and CANCELLED while the caller is still there: unclassified.
//     Something broke, and nobody knows whether it would break again. Every plain error of a Go
//     handler becomes UNKNOWN. They count neither for nor against the dependency.
//   - ABORTED: unclassified. The caller must begin the larger operation again (read once more, open
//     another transaction). Repeating the call itself does not help; a message of package queue comes again.
//   - UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED: unclassified. They are about the caller's
//     credentials or about which release of the server runs, and say nothing about the request.
//   - All others: permanent. They are answers.
//
// A server can ask for a wait, by grpc-retry-pushback-ms or by a google.rpc.RetryInfo. That makes a
// transient failure rate-limited. A negative or malformed pushback ends the call (KindOverloaded).
// Neither makes a permanent failure retryable, as in grpc-go, gRPC core and grpc-node. grpc-java
// and grpc-dotnet retry after any status that comes with a wait; a classifier of your own
// (WithClassifier) can do so.
//
// Marks ([lull.Transient], ...) are respected. An error of a call that lull has made further down
// is final ([lull.VerdictOf]). [lull.Classify] classifies an error without a status.
func Classify(f Failure) lull.Verdict {
	return new(options).classify(new(rule), f)
}

// verdict combines a kind with the server's hint about the next attempt.
func verdict(kind engine.VerdictKind, name string, f Failure, st *status.Status) lull.Verdict {
	v := lull.Verdict{Kind: kind, Code: name, NeverSent: f.NeverSent}
	if kind != lull.KindTransient && kind != lull.KindRateLimited {
		return v
	}
	stop, after := hintOf(f.Trailer, st)
	v, hinted := grpcstatus.WithHint(v, stop, after)
	if !hinted {
		v = madeByGRPC(v, f, st)
	}
	return v
}

// verdictOf is classify with two more facts: the credentials that the caller gave for the call, and
// whether the connection was ready all along with time left. An attempt that got no stream on a
// ready connection lacked the connection's credentials, or the load balancer's policy dropped it.
func (o *options) verdictOf(r *rule, f Failure, creds *callerCreds, connected bool) lull.Verdict {
	if f.NeverSent && creds != nil && creds.failed.Load() { // there was no connection, as the credentials could not be had
		return notRepeated(true)
	}
	v := o.classify(r, f)
	if f.NeverSent && connected && (v.Kind == lull.KindTransient || v.Kind == lull.KindRateLimited) {
		return notRepeated(true)
	}
	return v
}

// classify is Classify with the client's options.
func (o *options) classify(r *rule, f Failure) lull.Verdict {
	return lull.VerdictOf(f.Err, func(error) lull.Verdict {
		if o.classifier != nil {
			return o.classifier(f)
		}
		return o.classifyStatus(r, f)
	})
}

// classifyStatus is classify without the marks of the error.
func (o *options) classifyStatus(r *rule, f Failure) lull.Verdict {
	st, ok := status.FromError(f.Err)
	if _, known := neterr.Classify(f.Err); known || !ok || st.Code() == codes.OK {
		return lull.Classify(f.Err)
	}
	code := st.Code()
	kind, name := grpcstatus.KindOf(uint32(code))
	if configured, ok := o.kinds[code]; ok {
		kind, name = configured, grpcstatus.Name(uint32(code))
	}
	if !r.hasCodes {
		return verdict(kind, name, f, st)
	}
	if !slices.Contains(r.codes, code) {
		if kind == lull.KindTransient || kind == lull.KindRateLimited {
			return notRepeated(f.NeverSent)
		}
		return verdict(kind, name, f, st)
	}
	if kind != lull.KindRateLimited {
		kind = lull.KindTransient
	}
	return verdict(kind, grpcstatus.Name(uint32(code)), f, st)
}
