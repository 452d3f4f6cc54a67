package wiring

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// traced returns telemetry whose spans end in memory.
func traced(t *testing.T, share float64) (*Telemetry, *tracetest.InMemoryExporter) {
	telemetry, to := must.Have(NewTelemetry(Traces{}, none, nobody)), tracetest.NewInMemoryExporter()
	telemetry.spans = must.Have(startSpans(kept{to}, share, telemetry.drop, nobody))
	must.Succeed(telemetry.start())
	return telemetry, to
}

// kept spans survive Shutdown.
type kept struct{ *tracetest.InMemoryExporter }

func (kept) Shutdown(context.Context) error { return nil }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

func get(header http.Header) *http.Request {
	req := must.Have(http.NewRequest(http.MethodGet, "https://payments.example/charges/7?card=secret", nil))
	req.Header = header
	return req
}

// The span of the call is a child of the application's, attempts are children of the call's, and each attempt has sent its own
// span as the parent of what follows.
func TestSpansOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry, to := traced(t, 1)
		var sent []string
		base := telemetry.Attempts(tripper(func(req *http.Request) (*http.Response, error) {
			check.Equal(t, req.Header.Get("Tracestate"), "vendor=1", "tracestate")
			if sent = append(sent, req.Header.Get("Traceparent")); len(sent) == 1 {
				return &http.Response{StatusCode: 503, Body: http.NoBody, Request: req}, nil
			} else if len(sent) == 2 {
				return nil, errors.New("broken for a reason that may be secret")
			}
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		}))
		calls := must.Have(lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(telemetry.Options()...),
			lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
				if err != nil {
					return lull.Verdict{Kind: lull.KindTransient, Code: "broken"}
				}
				return lullhttp.ClassifyStatus(resp.StatusCode)
			})))
		header := http.Header{"Traceparent": {parent + "01"}, "Tracestate": {"vendor=1"}}
		must.Have(telemetry.Calls(calls).RoundTrip(get(header)))
		check.Equal(t, header.Get("Traceparent"), parent+"01", "the application's header")
		must.Succeed(telemetry.Close(t.Context()))

		spans := to.GetSpans()
		check.Equal(t, len(spans), 4, "spans")
		call := spans[3]
		check.Equal(t, call.Parent.SpanID().String(), "b7ad6b7169203331", "parent of the call")
		check.Equal(t, call.Name, "call payments.example GET", "name")
		for i, attempt := range spans[:3] {
			check.Equal(t, attempt.Parent.SpanID(), call.SpanContext.SpanID(), "parent of attempt %d", i)
			check.Equal(t, attempt.SpanKind, trace.SpanKindClient, "kind")
			check.Equal(t, sent[i], "00-0af7651916cd43dd8448eb211c80319c-"+attempt.SpanContext.SpanID().String()+"-01", "sent with attempt %d", i)
			has := map[string]string{}
			for _, a := range attempt.Attributes {
				has[string(a.Key)] = a.Value.String()
				if strings.Contains(a.Value.String(), "secret") {
					t.Errorf("%s is %s", a.Key, a.Value.String())
				}
			}
			check.Equal(t, has["url.full"], "https://payments.example/charges/7", "url")
			check.Equal(t, has["http.response.status_code"], []string{"503", "", "200"}[i], "status of attempt %d", i)
			check.Equal(t, has["http.request.resend_count"], []string{"", "1", "2"}[i], "resends of attempt %d", i)
			if (has["error.type"] != "") != (i < 2) {
				t.Errorf("error.type of attempt %d: %q", i, has["error.type"])
			}
		}
	})
}

// Whoever began the trace has decided whether it is sent. The share is of those that begin here.
func TestWhoSamples(t *testing.T) {
	for _, c := range []struct {
		traceparent string
		share       float64
		spans       int
		flags       string
	}{
		{parent + "01", -1, 2, "01"}, {parent + "00", 1, 0, "00"}, {"", 1, 2, "01"}, {"", -1, 0, "00"}, {"nonsense", 1, 2, "01"},
	} {
		telemetry, to := traced(t, c.share)
		header, sent := http.Header{}, ""
		if c.traceparent != "" {
			header.Set("Traceparent", c.traceparent)
		}
		base := telemetry.Attempts(tripper(func(req *http.Request) (*http.Response, error) {
			sent = req.Header.Get("Traceparent")
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		}))
		calls := must.Have(lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(telemetry.Options()...)))
		must.Have(telemetry.Calls(calls).RoundTrip(get(header)))
		must.Succeed(telemetry.Close(t.Context()))
		check.Equal(t, len(to.GetSpans()), c.spans, "spans of %+v", c)
		check.Equal(t, sent[len(sent)-2:], c.flags, "flags of %+v", c)
		if strings.HasPrefix(c.traceparent, parent) {
			check.Equal(t, sent[:36], parent[:36], "trace")
		}
	}
}

// The body of a response is what the base returned, so that an upgraded connection can be closed in one direction.
func TestBodiesAreNotWrapped(t *testing.T) {
	telemetry, _ := traced(t, 1)
	body := io.NopCloser(strings.NewReader("x"))
	base := tripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: body, Request: req}, nil
	})
	resp := must.Have(telemetry.Calls(telemetry.Attempts(base)).RoundTrip(get(nil)))
	check.Equal(t, resp.Body, body, "body")
	must.Succeed(telemetry.Close(t.Context()))
}

// Without a collector nothing stands between the proxy and its calls.
func TestWithoutTraces(t *testing.T) {
	telemetry := must.Have(NewTelemetry(Traces{}, none, nobody))
	base := http.DefaultTransport
	check.Equal(t, telemetry.Calls(base), base, "calls")
	check.Equal(t, telemetry.Attempts(base), base, "attempts")
	must.Succeed(telemetry.Close(t.Context()))
}

// stuck takes spans only when it is released, and fails then.
type stuck struct{ release chan struct{} }

func (s stuck) ExportSpans(ctx context.Context, all []sdktrace.ReadOnlySpan) error {
	select {
	case <-s.release:
		return errors.New("it takes none")
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (stuck) Shutdown(context.Context) error { return nil }

// Each span that was not taken is counted: those without room in the queue, those that the collector has refused, and those that
// are left when the proxy has no more time.
func TestLostSpansAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped atomic.Int64
		said := 0
		lost := func() int { return int(dropped.Load()) }
		end := func(s *spans, n int) {
			for range n {
				_, span := s.provider.Tracer("").Start(context.Background(), "x")
				span.End()
			}
			synctest.Wait()
		}
		to := stuck{make(chan struct{})}
		s := must.Have(startSpans(to, 1, func(n int) { dropped.Add(int64(n)) }, func(any) { said++ }))
		end(s, spansSent) // they are being sent
		end(s, spansQueued)
		check.Equal(t, lost(), 0, "lost as long as there is room")
		end(s, 3)
		check.Equal(t, lost(), 3, "lost without room")
		to.release <- struct{}{}
		synctest.Wait()
		check.Equal(t, lost(), 3+spansSent, "lost by the collector")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check.Is(t, s.Shutdown(ctx), context.Canceled, "Shutdown")
		check.Equal(t, lost(), 3+spansSent+spansQueued, "lost at the end")
		check.Equal(t, said, 1, "how often that is said")
	})
}
