package lullgrpc

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lullgo/lull/server/admission"
)

// Metadata of requests, beside grpc-previous-rpc-attempts.
const (
	hedgeKey       = "lull-hedge"       // another attempt of the call is still under way: "?1"
	criticalityKey = "lull-criticality" // an admission.Priority as text
)

// AdmitUnary returns admission control for unary calls. Calls wait at g for their turn. The order
// depends on their deadline and on which attempt they are (AttemptNumber, and the metadata
// lull-hedge of lull's hedges). For callers that [WithTrust] trusts it also depends on their
// metadata lull-criticality. A refused call gets UNAVAILABLE, with a pushback and a RetryInfo: when
// to come back, or never. A call whose caller has gone meanwhile gets CANCELLED.
//
// Health checks and server reflection (the services under grpc.health. and grpc.reflection.) always
// pass. An overloaded server is still healthy, and each client with gRPC's own health checking
// holds a Watch for as long as it is connected. [WithSkip] lets other methods pass.
//
// Chain it before interceptors that do work. Failures of the handler count as failed for the
// adaptive limit, unless the caller caused them.
func AdmitUnary(g *admission.Gate, opts ...ServerOption) grpc.UnaryServerInterceptor {
	o := newServerOptions(opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		if o.letsPass(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		pass, err := o.admit(ctx, g)
		if err != nil {
			return nil, err
		}
		result := admission.Failed // should it panic
		defer func() { pass.Depart(result) }()
		resp, err := handler(ctx, req)
		result = resultOf(ctx, err)
		return resp, err
	}
}

// AdmitStream is AdmitUnary for streams. A stream keeps its place until it ends. Its duration is
// not measured. Let streams that stay for long pass by [WithSkip].
func AdmitStream(g *admission.Gate, opts ...ServerOption) grpc.StreamServerInterceptor {
	o := newServerOptions(opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if o.letsPass(ss.Context(), info.FullMethod) {
			return handler(srv, ss)
		}
		pass, err := o.admit(ss.Context(), g)
		if err != nil {
			return err
		}
		defer pass.Depart(admission.Unmeasured)
		return handler(srv, ss)
	}
}

func (o *serverOptions) letsPass(ctx context.Context, method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.") ||
		o.skip != nil && o.skip(ctx, method)
}

// admit waits for the turn of a call. The error is sent to its caller.
func (o *serverOptions) admit(ctx context.Context, g *admission.Gate) (admission.Pass, error) {
	pass, d := g.Enter(ctx, o.request(ctx))
	switch {
	case d.Outcome == admission.Admitted:
		return pass, nil
	case d.Reason == admission.Gone:
		return pass, status.FromContextError(ctx.Err()).Err()
	}
	_ = SetPushback(ctx, d.Pushback()) // it fails only outside of a call
	st := status.New(codes.Unavailable, "overloaded: "+d.Reason.String())
	if !d.DontRetry {
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)}); err == nil {
			st = with
		}
	}
	return pass, st.Err()
}

// request returns what is believed of a call.
func (o *serverOptions) request(ctx context.Context) (r admission.Request) {
	trusted := o.trusted != nil && o.trusted(ctx)
	if trusted {
		r.Priority = admission.PriorityOf(http.Header{admission.HeaderCriticality: metadata.ValueFromIncomingContext(ctx, criticalityKey)})
	}
	if trusted || o.trusted == nil {
		r.Attempt, r.Hedge = AttemptNumber(ctx), slices.Contains(metadata.ValueFromIncomingContext(ctx, hedgeKey), "?1")
	}
	return r
}

// resultOf returns how a call counts for the adaptive limit: Done if the work was of use.
func resultOf(ctx context.Context, err error) admission.WorkResult {
	if ctx.Err() != nil {
		return admission.Failed // noPeer received the answer
	}
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.Aborted, codes.Unimplemented:
		return admission.Done
	}
	return admission.Failed
}
