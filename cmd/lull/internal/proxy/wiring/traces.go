package wiring

import (
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lullhttp"
)

// DefaultShare is the share of traces that are sent, of those that begin at the proxy.
const DefaultShare = 0.01

const scope = "github.com/lullgo/lull/cmd/lull"

// Traces is where spans are sent.
type Traces struct {
	// OTLP is the URL of a collector that takes OTLP over HTTP, such as "http://127.0.0.1:4318". Spans are sent to its
	// path /v1/traces. Empty: no traces, and a traceparent of the application is passed on as it is.
	OTLP string
	// Share is the share of traces that are sent, of those that begin at the proxy. Where the application has begun the
	// trace, it has decided. Zero means DefaultShare; negative: none.
	Share float64
}

// Validate reports every mistake at once.
func (c Traces) Validate() error {
	var l problem.List
	if c.OTLP != "" {
		u, err := parse(c.OTLP)
		l.Check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "", "OTLP", shown(c.OTLP), "the URL of a collector, such as http://127.0.0.1:4318")
	}
	l.Share(c.Share <= 1, "Share", c.Share, "zero (1 %), a share up to 1, or negative for none")
	l.Check(c.OTLP != "" || c.Share == 0, "Share", c.Share, "nothing without OTLP, the URL of a collector")
	return l.Err()
}

// Calls makes each request to calls, a lullhttp.Transport, a span. Its parent is the span of the application that the
// request's traceparent names. Without traces it returns calls.
func (t *Telemetry) Calls(calls http.RoundTripper) http.RoundTripper {
	if t.spans == nil {
		return calls
	}
	next := t.lull.Transport(calls)
	return &transport{next, func(req *http.Request) (*http.Response, error) {
		ctx := propagation.TraceContext{}.Extract(req.Context(), propagation.HeaderCarrier(req.Header))
		return next.RoundTrip(req.WithContext(ctx))
	}}
}

// Attempts makes each request to base a span under that of the call, and sends it with the traceparent of that span. The span
// ends with the header of the response: the body is not touched, so that upgrades and trailers pass. Without traces it returns
// base.
func (t *Telemetry) Attempts(base http.RoundTripper) http.RoundTripper {
	if t.spans == nil {
		return base
	}
	next := t.lull.Resends(base)
	return &transport{next, func(req *http.Request) (*http.Response, error) {
		// The query may be private.
		url := req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath()
		ctx, span := t.tracer.Start(req.Context(), req.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("http.request.method", req.Method), attribute.String("server.address", req.URL.Hostname()), attribute.String("url.full", url)))
		defer span.End()
		sent := req.WithContext(ctx)
		if sent.Header = req.Header.Clone(); sent.Header == nil {
			sent.Header = make(http.Header)
		}
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
	}}
}

// A transport is a RoundTripper above another.
type transport struct {
	next  http.RoundTripper
	trips func(*http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.trips(req) }

// CloseIdleConnections passes http.Client.CloseIdleConnections on.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
