package lullgrpc

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// A Failure is what is known of an attempt that failed.
type Failure struct {
	Method string // "/service/method"
	Err    error  // never nil; status.FromError has its code and details
	// Trailer is what the server sent with its status; nil if it sent nothing. The
	// hint of gRPC's own retries is in it, under grpc-retry-pushback-ms.
	Trailer metadata.MD
	// NeverSent: gRPC itself ended the attempt, and had no connection to send it on.
	NeverSent bool
	local     bool // the status is RESOURCE_EXHAUSTED, and no server's refusal
}

// Classify says what a failed attempt means:
//
//   - UNAVAILABLE: transient. It is the one code that by definition may be mended
//     by calling again.
//   - DEADLINE_EXCEEDED: the engine's timeout, whether the attempt's own time ran
//     out or the server says that it ran out of time. See lull.Policy.Timeouts for
//     when it is repeated.
//   - RESOURCE_EXHAUSTED: throttled, so it is never repeated at once. It is how
//     servers, and HTTP/2's ENHANCE_YOUR_CALM, ask for fewer requests. Where gRPC on this
//     side has made it, because a message is larger than is allowed here, it is
//     unclassified.
//   - INTERNAL, UNKNOWN, DATA_LOSS, and CANCELLED while the caller is still there:
//     unclassified. Something broke, and nothing tells
//     whether it would again; UNKNOWN is what a Go handler's every plain error
//     becomes. They count neither for nor against the dependency.
//   - ABORTED: permanent. It asks the caller to begin again what the call was part
//     of (to read once more, to open another transaction), which repeating the
//     call itself is not.
//   - All others: permanent. They are answers.
//
// A server that asks for a wait, by grpc-retry-pushback-ms or by a
// google.rpc.RetryInfo, makes a throttled failure of a transient one. One that
// says not to retry, by a pushback that is negative or no number, ends the call
// (KindOverloaded). Neither brings a permanent failure to life, as in grpc-go,
// gRPC core and grpc-node; grpc-java and grpc-dotnet retry after any status that
// comes with a wait, and a classifier of your own (WithClassifier) can do so.
//
// Marks ([lull.Transient], ...) add to that, an error of a call that lull has made
// further down is final ([lull.VerdictOf]), and one without a status means what
// [lull.Classify] makes of it.
func Classify(f Failure) lull.Verdict {
	return lull.VerdictOf(f.Err, func(error) lull.Verdict {
		v, st := unclassified(f)
		if st == nil {
			return v
		}
		kind, name := kindOf(st.Code())
		return verdict(kind, name, f, st)
	})
}

// unclassified is what an error without a status of its own means; else st is
// the status that is left to look at.
func unclassified(f Failure) (v lull.Verdict, st *status.Status) {
	if _, known := neterr.Classify(f.Err); !known {
		if st, ok := status.FromError(f.Err); ok && st.Code() != codes.OK {
			return lull.Verdict{}, st
		}
	}
	return lull.Classify(f.Err), nil
}

// kindOf is what a code means, and its name among verdicts.
func kindOf(code codes.Code) (engine.Kind, string) {
	switch code {
	case codes.Unavailable:
		return lull.KindTransient, codeName(code)
	case codes.DeadlineExceeded:
		return lull.KindTransient, engine.CodeTimeout
	case codes.ResourceExhausted:
		return lull.KindRateLimited, codeName(code)
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Canceled:
		return lull.KindUnclassified, engine.CodeUnclassified
	}
	if code > codes.Unauthenticated {
		return lull.KindUnclassified, engine.CodeUnclassified // a code that gRPC does not have
	}
	return lull.KindPermanent, codeName(code)
}

// verdict is a kind together with what the server said of the next attempt.
func verdict(kind engine.Kind, name string, f Failure, st *status.Status) lull.Verdict {
	v := lull.Verdict{Kind: kind, Code: name, NeverSent: f.NeverSent}
	if kind != lull.KindTransient && kind != lull.KindRateLimited {
		return v
	}
	h := hintOf(f.Trailer, st)
	switch {
	case h.stop:
		v.Kind = lull.KindOverloaded
	case h.after > 0:
		v.Kind, v.After = lull.KindRateLimited, h.after
	case f.local && kind == lull.KindRateLimited:
		return final(f.NeverSent)
	}
	return v
}

// judge is classify for a failure of which more is known: the credentials that the caller
// gave for the call, and whether the connection was ready all along and there was time
// left. An attempt that was not given a stream all the same failed for want of the
// connection's credentials, or was dropped by the load balancer's policy.
func (o *options) judge(r *rule, f Failure, creds *callerCreds, connected bool) lull.Verdict {
	if creds.missing(f.NeverSent) {
		return final(true)
	}
	v := o.classify(r, f)
	if f.NeverSent && connected && (v.Kind == lull.KindTransient || v.Kind == lull.KindRateLimited) {
		return final(true)
	}
	return v
}

// classify is Classify, with what the options say of it.
func (o *options) classify(r *rule, f Failure) lull.Verdict {
	return lull.VerdictOf(f.Err, func(error) lull.Verdict {
		if o.classifier != nil {
			return o.classifier(f)
		}
		return o.unmarked(r, f)
	})
}

// unmarked is classify without the marks of the error.
func (o *options) unmarked(r *rule, f Failure) lull.Verdict {
	v, st := unclassified(f)
	if st == nil {
		return v
	}
	code := st.Code()
	kind, name := kindOf(code)
	if said, ok := o.kinds[code]; ok {
		kind, name = said, codeOf(code)
	}
	if r.codes == nil {
		return verdict(kind, name, f, st)
	}
	if !r.codes.has(code) {
		if kind == lull.KindTransient || kind == lull.KindRateLimited {
			return final(f.NeverSent)
		}
		return verdict(kind, name, f, st)
	}
	if kind != lull.KindRateLimited {
		kind = lull.KindTransient
	}
	return verdict(kind, codeOf(code), f, st)
}

// final is what a failure means that is none of the request's fault, and is not
// repeated all the same. It counts neither for nor against the dependency.
func final(neverSent bool) lull.Verdict {
	return lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified, NeverSent: neverSent}
}

// codeOf is the name of a code that is known to mean something.
func codeOf(code codes.Code) string {
	if code == codes.DeadlineExceeded {
		return engine.CodeTimeout
	}
	return codeName(code)
}

var codeNames = func() (names [codes.Unauthenticated + 1]string) {
	for c := range names {
		names[c] = strings.ToLower(serviceconfig.Code(c).String())
	}
	return names
}()

// codeName is the code's name in lower case.
func codeName(code codes.Code) string {
	if int(code) < len(codeNames) {
		return codeNames[code]
	}
	return "unknown"
}

// codeSet is a set of codes.
type codeSet uint32

func codesOf(list []codes.Code) *codeSet {
	var s codeSet
	for _, c := range list {
		if c <= codes.Unauthenticated {
			s |= 1 << c
		}
	}
	return &s
}

func (s *codeSet) has(c codes.Code) bool { return c <= codes.Unauthenticated && *s&(1<<c) != 0 }
