package lullgrpc_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/grpcstatus"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

type trailersOnly http.Header

func (h trailersOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ProtoMajor: 2, Header: http.Header(h), Body: http.NoBody, Request: req}, nil
}

// encoded is the status as a server sends it.
func encoded(st *status.Status) string {
	return base64.RawStdEncoding.EncodeToString(must.Have(proto.Marshal(st.Proto())))
}

// lullhttp reads a response of gRPC as Classify does its status.
func TestLullhttpAgreesWithClassify(t *testing.T) {
	for code := codes.OK + 1; code < 20; code++ {
		for _, err := range []error{
			status.Error(code, "busy"),
			status.Error(code, "grpc: received message larger than max (5000000 vs. 4194304)"),
			detailed(code, durationpb.New(1500*time.Millisecond), durationpb.New(time.Millisecond)),
			detailed(code, durationpb.New(-time.Second), &durationpb.Duration{Seconds: 1, Nanos: -1}, nil),
		} {
			for _, pushback := range [][]string{nil, {"700"}, {"0"}, {"-1"}, {"x"}, {"1", "2"}} {
				st := status.Convert(err)
				h := trailersOnly{"Content-Type": {"application/grpc"}, "Grpc-Status": {strconv.Itoa(int(code))}, "Grpc-Message": {st.Message()}}
				md := metadata.MD{"content-type": {"application/grpc"}}
				if pushback != nil {
					h["Grpc-Retry-Pushback-Ms"], md["grpc-retry-pushback-ms"] = pushback, pushback
				}
				if len(st.Proto().GetDetails()) > 0 {
					h["Grpc-Status-Details-Bin"] = []string{encoded(st)}
				}
				rt := must.Have(lullhttp.New(lull.Policy{Attempts: 1}, lullhttp.WithBase(h)))
				req := must.Have(http.NewRequest("POST", "http://shop.test/shop.Orders/Get", nil))
				got := lullhttp.OutcomeOf(must.Have(rt.RoundTrip(req))).Verdict
				check.Equal(t, got, lullgrpc.Classify(lullgrpc.Failure{Err: err, Trailer: md}), "%v with %q, pushback %q", code, st.Message(), pushback)
			}
		}
	}
}

// Without protobuf the same wait is read.
func FuzzRetryDelay(f *testing.F) {
	f.Add(int64(1), int32(5), int64(2), "busy")
	f.Add(int64(-1), int32(5), int64(1)<<62, "")
	f.Add(int64(10_000_000_000), int32(999_999_999), int64(0), "")
	f.Add(int64(9_223_372_036), int32(854_775_807), int64(0), "")
	f.Fuzz(func(t *testing.T, seconds int64, nanos int32, other int64, text string) {
		st := must.Have(status.New(codes.Unavailable, strings.ToValidUTF8(text, "")).WithDetails(
			&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: seconds, Nanos: nanos}},
			&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: other}},
			&errdetails.RequestInfo{RequestId: "7"}))
		v := lullgrpc.Classify(lullgrpc.Failure{Err: st.Err()})
		check.Equal(t, grpcstatus.RetryDelay(encoded(st)), max(v.After, 0), "%d s, %d ns, %d s", seconds, nanos, other)
	})
}
