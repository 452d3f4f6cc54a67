package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

// traced returns a Wiring whose spans end in memory.
func traced(share float64) (*Wiring, *tracetest.InMemoryExporter) {
	w, to := newMetrics(none), tracetest.NewInMemoryExporter()
	must.Succeed(w.traceTo(kept{to}, share, nobody))
	w.observe()
	return w, to
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
		w, to := traced(1)
		var sent []string
		base := w.attempts(roundTripper(func(req *http.Request) (*http.Response, error) {
			check.Equal(t, req.Header.Get("Tracestate"), "vendor=1", "tracestate")
			if sent = append(sent, req.Header.Get("Traceparent")); len(sent) == 1 {
				return &http.Response{StatusCode: 503, Body: http.NoBody, Request: req}, nil
			} else if len(sent) == 2 {
				return nil, errors.New("broken for a reason that may be secret")
			}
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		}))
		calls := must.Have(lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(w.lull.Options()...),
			lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
				if err != nil {
					return lull.Verdict{Kind: lull.KindTransient, Code: "broken"}
				}
				return lullhttp.ClassifyStatus(resp.StatusCode)
			})))
		header := http.Header{"Traceparent": {parent + "01"}, "Tracestate": {"vendor=1"}}
		must.Have(w.calls(calls).RoundTrip(get(header)))
		check.Equal(t, header.Get("Traceparent"), parent+"01", "the application's header")
		must.Succeed(w.Close(t.Context()))

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
		w, to := traced(c.share)
		header, sent := http.Header{}, ""
		if c.traceparent != "" {
			header.Set("Traceparent", c.traceparent)
		}
		base := w.attempts(roundTripper(func(req *http.Request) (*http.Response, error) {
			sent = req.Header.Get("Traceparent")
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		}))
		calls := must.Have(lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(w.lull.Options()...)))
		must.Have(w.calls(calls).RoundTrip(get(header)))
		must.Succeed(w.Close(t.Context()))
		check.Equal(t, len(to.GetSpans()), c.spans, "spans of %+v", c)
		check.Equal(t, sent[len(sent)-2:], c.flags, "flags of %+v", c)
		if strings.HasPrefix(c.traceparent, parent) {
			check.Equal(t, sent[:36], parent[:36], "trace")
		}
	}
}

// The body of a response is what the base returned, so that an upgraded connection can be closed in one direction.
func TestBodiesAreNotWrapped(t *testing.T) {
	w, _ := traced(1)
	body := io.NopCloser(strings.NewReader("x"))
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: body, Request: req}, nil
	})
	resp := must.Have(w.calls(w.attempts(base)).RoundTrip(get(http.Header{})))
	check.Equal(t, resp.Body, body, "body")
	must.Succeed(w.Close(t.Context()))
}

// Without a collector nothing stands between the proxy and its calls.
func TestWithoutTraces(t *testing.T) {
	w := must.Have(Start(t.Context(), &file.File{}, none, nobody))
	base := http.DefaultTransport
	check.Equal(t, w.calls(base), base, "calls")
	check.Equal(t, w.attempts(base), base, "attempts")
	must.Succeed(w.Close(t.Context()))
}

// stuck takes spans only when it is released, and fails then.
type stuck struct{ release chan error }

func (s stuck) ExportSpans(ctx context.Context, all []sdktrace.ReadOnlySpan) error {
	select {
	case err := <-s.release:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (stuck) Shutdown(context.Context) error { return nil }

// Each span that was to be sent is counted, and each that the collector has taken. A collector that takes none is reported once, and
// delays no request.
func TestLostSpansAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, to := newMetrics(none), stuck{make(chan error)}
		var said []any
		must.Succeed(w.traceTo(to, 1, func(what any) { said = append(said, what) }))
		end := func(n int) {
			for range n {
				_, span := w.tracers.Tracer("").Start(t.Context(), "x")
				span.End()
			}
			synctest.Wait()
		}
		counted := func(ended, sent int) {
			t.Helper()
			for _, want := range []string{fmt.Sprintf("proxy_spans_ended_total %d\n", ended), fmt.Sprintf("proxy_spans_sent_total %d\n", sent)} {
				if is := page(w); !strings.Contains(is, "\n"+want) {
					t.Errorf("want %sgot\n%s", want, is)
				}
			}
		}
		const batch, room = sdktrace.DefaultMaxExportBatchSize, sdktrace.DefaultMaxQueueSize
		end(batch) // they are being sent
		end(room + 3)
		counted(batch+room+3, 0)
		to.release <- errors.New("it takes none")
		to.release <- nil
		synctest.Wait()
		counted(batch+room+3, batch)
		check.Equal(t, fmt.Sprint(said), "[traces: spans are lost: it takes none traces: the collector takes spans again]", "said")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.Is(t, w.Close(ctx), context.DeadlineExceeded, "Close")
		close(to.release)
	})
}
