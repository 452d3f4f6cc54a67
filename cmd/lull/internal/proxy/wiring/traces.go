package wiring

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

const (
	defaultShare = 0.01
	sendEvery    = time.Second
	sendTime     = 10 * time.Second
)

// trace sends spans to the collector of t.
func (w *Wiring) trace(t file.Traces, say func(any)) error {
	to := &otlp{must.Have(lullhttp.NewClient(lull.Policy{Deadline: sendTime})), strings.TrimSuffix(t.OTLP, "/") + "/v1/traces"}
	return w.traceTo(otlptrace.NewUnstarted(to), cmp.Or(t.Share, defaultShare), say)
}

// traceTo sends spans through exporter.
func (w *Wiring) traceTo(exporter sdktrace.SpanExporter, share float64, say func(any)) error {
	// The environment may name the service: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
	of, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", "lull-proxy")), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return err
	}
	batches := sdktrace.NewBatchSpanProcessor(&sentSpans{SpanExporter: exporter, count: w.sent, say: say}, sdktrace.WithBatchTimeout(sendEvery), sdktrace.WithExportTimeout(sendTime))
	w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(endedSpans{batches, w.ended}), sdktrace.WithResource(of),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))))
	w.closers = append(w.closers, w.tracers.Shutdown)
	return nil
}

// endedSpans counts the spans that a SpanProcessor gets.
type endedSpans struct {
	sdktrace.SpanProcessor
	count prometheus.Counter
}

func (s endedSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	s.count.Inc()
	s.SpanProcessor.OnEnd(span)
}

// sentSpans counts the spans that a SpanExporter has sent. It says once when that fails, and when it succeeds again.
type sentSpans struct {
	sdktrace.SpanExporter
	count   prometheus.Counter
	say     func(any)
	failing bool
}

func (s *sentSpans) ExportSpans(ctx context.Context, all []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, all)
	switch {
	case err == nil:
		s.count.Add(float64(len(all)))
		if s.failing {
			s.say("traces: the collector takes spans again")
		}
	case !s.failing:
		s.say(fmt.Errorf("traces: spans are lost: %w", err))
	}
	s.failing = err != nil
	return nil // the SDK would print the error
}

// otlp sends spans as OTLP over HTTP. The module's own client would make the program 8 MB larger, with gRPC.
type otlp struct {
	client *http.Client
	url    string
}

func (o *otlp) Start(context.Context) error { return nil }
func (o *otlp) Stop(context.Context) error  { return nil }

func (o *otlp) UploadTraces(ctx context.Context, all []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: all}) // on the wire it is an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	// A collector that gets a span twice has it once: spans have IDs.
	req, err := http.NewRequestWithContext(lullhttp.WithCall(ctx, lull.Idempotent()), http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := o.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", resp.Status)
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// calls makes each request to next, a lullhttp.Transport, a span. Its parent is the span of the application that the
// request's traceparent names. Without traces it returns next.
func (w *Wiring) calls(next http.RoundTripper) http.RoundTripper {
	if w.tracers == nil {
		return next
	}
	next = w.lull.Transport(next)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		ctx := propagation.TraceContext{}.Extract(req.Context(), propagation.HeaderCarrier(req.Header))
		return next.RoundTrip(req.WithContext(ctx))
	})
}

// attempts makes each request to next a span under that of the call, and sends it with the traceparent of that span. The span
// ends with the header of the response: the body is not touched, so that upgrades and trailers pass. Without traces it returns
// next.
func (w *Wiring) attempts(next http.RoundTripper) http.RoundTripper {
	if w.tracers == nil {
		return next
	}
	next = w.lull.Resends(next)
	tracer := w.tracers.Tracer("github.com/lullgo/lull/cmd/lull")
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		url := req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath() // the query may be private
		ctx, span := tracer.Start(req.Context(), req.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("http.request.method", req.Method), attribute.String("server.address", req.URL.Hostname()), attribute.String("url.full", url)))
		defer span.End()
		sent := req.Clone(ctx)
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
		resp, err := next.RoundTrip(sent)
		failure := ""
		if err != nil {
			failure = lullhttp.ClassifyError(err).Code
		} else {
			resp.Request = req
			span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
			if resp.StatusCode >= 400 {
				failure = strconv.Itoa(resp.StatusCode)
			}
		}
		if err != nil || failure != "" {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(attribute.String("error.type", failure))
		}
		return resp, err
	})
}
