package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
)

func pushed(values ...string) metadata.MD {
	return metadata.MD{"grpc-retry-pushback-ms": values}
}

func detailed(code codes.Code, delays ...*durationpb.Duration) error {
	st := status.New(code, "")
	for _, d := range delays {
		st, _ = st.WithDetails(&errdetails.ErrorInfo{Reason: "other"}, &errdetails.RetryInfo{RetryDelay: d})
	}
	return st.Err()
}

func TestClassify(t *testing.T) {
	unknown := lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}
	for _, c := range []struct {
		name string
		f    lullgrpc.Failure
		want lull.Verdict
	}{
		{"unavailable", lullgrpc.Failure{Err: fails(codes.Unavailable)}, lull.Verdict{Kind: lull.KindTransient, Code: "unavailable"}},
		{"never sent", lullgrpc.Failure{Err: fails(codes.Unavailable), NeverSent: true}, lull.Verdict{Kind: lull.KindTransient, Code: "unavailable", NeverSent: true}},
		{"deadline", lullgrpc.Failure{Err: fails(codes.DeadlineExceeded)}, lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}},
		{"exhausted", lullgrpc.Failure{Err: fails(codes.ResourceExhausted)}, lull.Verdict{Kind: lull.KindRateLimited, Code: "resource_exhausted"}},
		{"not found", lullgrpc.Failure{Err: fails(codes.NotFound)}, lull.Verdict{Kind: lull.KindPermanent, Code: "not_found"}},
		{"aborted", lullgrpc.Failure{Err: detailed(codes.Aborted, durationpb.New(time.Second))}, lull.Verdict{Kind: lull.KindUnclassified, Code: "aborted"}},
		{"internal", lullgrpc.Failure{Err: fails(codes.Internal)}, unknown},
		{"unknown", lullgrpc.Failure{Err: fails(codes.Unknown)}, unknown},
		{"data loss", lullgrpc.Failure{Err: fails(codes.DataLoss)}, unknown},
		{"cancelled", lullgrpc.Failure{Err: fails(codes.Canceled)}, unknown},
		{"no code of gRPC's", lullgrpc.Failure{Err: fails(99)}, unknown},
		{"no status", lullgrpc.Failure{Err: errors.New("odd")}, unknown},
		{"wrapped", lullgrpc.Failure{Err: fmt.Errorf("odd: %w", fails(codes.Unavailable))}, lull.Verdict{Kind: lull.KindTransient, Code: "unavailable"}},
		{"marked", lullgrpc.Failure{Err: lull.Transient(fails(codes.NotFound))}, lull.Verdict{Kind: lull.KindTransient, Code: "not_found"}},
		{"a raw timeout", lullgrpc.Failure{Err: context.DeadlineExceeded}, lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}},
		{"a call below", lullgrpc.Failure{Err: fmt.Errorf("below: %w", &lull.Error{Reason: engine.AttemptsExhausted})}, lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeRetriedBelow}},

		{"pushback", lullgrpc.Failure{Err: fails(codes.Unavailable), Trailer: pushed("5")}, lull.Verdict{Kind: lull.KindRateLimited, Code: "unavailable", After: 5 * time.Millisecond}},
		{"the longest", lullgrpc.Failure{Err: fails(codes.Unavailable), Trailer: pushed("2147483647")}, lull.Verdict{Kind: lull.KindRateLimited, Code: "unavailable", After: 2147483647 * time.Millisecond}},
		{"none", lullgrpc.Failure{Err: fails(codes.Unavailable), Trailer: pushed("0")}, lull.Verdict{Kind: lull.KindTransient, Code: "unavailable"}},
		{"stop", lullgrpc.Failure{Err: fails(codes.DeadlineExceeded), Trailer: pushed("-1")}, lull.Verdict{Kind: lull.KindOverloaded, Code: engine.CodeTimeout}},
		{"too much", lullgrpc.Failure{Err: fails(codes.Unavailable), Trailer: pushed("2147483648")}, lull.Verdict{Kind: lull.KindOverloaded, Code: "unavailable"}},
		{"stop, of an answer", lullgrpc.Failure{Err: fails(codes.NotFound), Trailer: pushed("-1")}, lull.Verdict{Kind: lull.KindPermanent, Code: "not_found"}},
		{"stop counts for more than a wait", lullgrpc.Failure{Err: detailed(codes.Unavailable, durationpb.New(time.Second)), Trailer: pushed("-1")}, lull.Verdict{Kind: lull.KindOverloaded, Code: "unavailable"}},

		{"retry info", lullgrpc.Failure{Err: detailed(codes.ResourceExhausted, durationpb.New(time.Second))}, lull.Verdict{Kind: lull.KindRateLimited, Code: "resource_exhausted", After: time.Second}},
		{"the longer of two", lullgrpc.Failure{Err: detailed(codes.Unavailable, durationpb.New(time.Second), durationpb.New(time.Millisecond)), Trailer: pushed("999")}, lull.Verdict{Kind: lull.KindRateLimited, Code: "unavailable", After: time.Second}},
		{"malformed", lullgrpc.Failure{Err: detailed(codes.Unavailable, &durationpb.Duration{Seconds: 1, Nanos: -1}, nil, durationpb.New(-time.Second))}, lull.Verdict{Kind: lull.KindTransient, Code: "unavailable"}},
	} {
		check.Equal(t, lullgrpc.Classify(c.f), c.want, "%s", c.name)
	}
	for _, values := range [][]string{{"-20000"}, {"xxx"}, {""}, {"1.5"}, {"007"}, {"+5"}, {"12abc"}, {"100", "10"}, {"5", "5"}} {
		f := lullgrpc.Failure{Err: fails(codes.Unavailable), Trailer: pushed(values...)}
		if v := lullgrpc.Classify(f); v.Kind != lull.KindOverloaded {
			t.Errorf("pushback %q: %+v", values, v)
		}
	}
	for code := range codes.Code(17) {
		if code == codes.OK {
			continue
		}
		if v := lullgrpc.Classify(lullgrpc.Failure{Err: fails(code)}); v.Kind == lull.KindSuccess || v.Code == "" {
			t.Errorf("%v is %+v", code, v)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(uint32(14), "1000", "", int64(1), int32(5))
	f.Add(uint32(8), "-1", "x", int64(-1), int32(-5))
	f.Add(uint32(99), "99999999999999999999", "007", int64(1)<<62, int32(1)<<30)
	f.Fuzz(func(t *testing.T, code uint32, first, second string, seconds int64, nanos int32) {
		md := metadata.MD{}
		for _, v := range []string{first, second} {
			if v != "" {
				md["grpc-retry-pushback-ms"] = append(md["grpc-retry-pushback-ms"], v)
			}
		}
		if code == 0 {
			return // is no failure
		}
		v := lullgrpc.Classify(lullgrpc.Failure{Err: detailed(codes.Code(code), &durationpb.Duration{Seconds: seconds, Nanos: nanos}), Trailer: md})
		retried := v.Kind == lull.KindTransient || v.Kind == lull.KindRateLimited
		if v.Kind == lull.KindSuccess || v.Code == "" || v.After < 0 || v.After > 0 && v.Kind != lull.KindRateLimited {
			t.Errorf("verdict %+v", v)
		}
		if retried && len(md["grpc-retry-pushback-ms"]) > 1 {
			t.Errorf("several pushbacks make %+v", v)
		}
		if ms, err := strconv.ParseInt(first, 10, 32); retried && first != "" && (err != nil || ms < 0 || v.After < time.Duration(ms)*time.Millisecond) {
			t.Errorf("pushback %q makes %+v", first, v)
		}
	})
}

func TestOptionsOfClassification(t *testing.T) {
	attempts := func(code codes.Code, opts ...lullgrpc.Option) (n int, err error) {
		synctest.Test(t, func(t *testing.T) {
			e := &echo{unary: func(context.Context, int, string) (string, error) { return "", fails(code) }}
			cc := inMemory(t, e, quick(), append(opts, idempotent())...)
			_, err = call(t.Context(), cc, "")
			n = e.count()
		})
		return n, err
	}
	if n, _ := attempts(codes.Internal, lullgrpc.WithCode(codes.Internal, lull.KindTransient)); n != 4 {
		t.Errorf("INTERNAL as transient: %d attempts", n)
	}
	if n, _ := attempts(codes.Unavailable, lullgrpc.WithCode(codes.Unavailable, lull.KindPermanent)); n != 1 {
		t.Errorf("UNAVAILABLE as permanent: %d attempts", n)
	}
	if n, err := attempts(codes.NotFound, lullgrpc.WithCode(codes.NotFound, lull.KindSuccess)); n != 1 || status.Code(err) != codes.NotFound {
		t.Errorf("NOT_FOUND as a success: %d attempts, %v", n, err)
	}
	java := lullgrpc.WithClassifier(func(f lullgrpc.Failure) lull.Verdict {
		check.Equal(t, f.Method, unaryMethod, "method")
		return lull.Verdict{Kind: lull.KindTransient, Code: "any"}
	})
	if n, _ := attempts(codes.NotFound, java); n != 4 {
		t.Errorf("a classifier: %d attempts", n)
	}
	success := lullgrpc.WithClassifier(func(lullgrpc.Failure) lull.Verdict { return lull.Verdict{Kind: lull.KindSuccess} })
	synctest.Test(t, func(t *testing.T) { // of a stream as well
		e := &echo{stream: steps(hears(codes.NotFound))}
		cc := inMemory(t, e, quick(), success)
		cs := open(t, t.Context(), cc, bidiStreams)
		if err := receiveErr(t, cs); status.Code(err) != codes.NotFound {
			t.Errorf("error %v", err)
		}
	})
}

// lull's own classifier would have no effect. It is refused, with the name of this package's.
func TestTheClassifierOfLullIsRefused(t *testing.T) {
	_, err := lullgrpc.New(lull.Policy{}, lullgrpc.With(lull.WithClassifier(lull.Classify)))
	if err == nil || !strings.Contains(err.Error(), "use lullgrpc.WithClassifier") {
		t.Errorf("%v", err)
	}
}
