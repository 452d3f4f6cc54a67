package wiring

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

const (
	spansQueued = 2048
	spansSent   = 512         // at most, at once
	spansWait   = time.Second // until those that ended are sent
	sendTime    = 10 * time.Second
)

// spans is a SpanProcessor that sends spans in batches. It never blocks what ends them: a span that finds the queue full is
// dropped, and counted. (The SDK's own does not count in public.)
type spans struct {
	provider *sdktrace.TracerProvider
	exporter sdktrace.SpanExporter
	dropped  func(spans int)
	say      func(any)
	queue    chan sdktrace.ReadOnlySpan
	stop     func()
	stopping chan struct{}
	cancel   func() // stops the sending
	ended    chan struct{}
}

func newSpans(c Traces, dropped func(spans int), say func(any)) (*spans, error) {
	client, err := lullhttp.NewClient(lull.Policy{Deadline: sendTime})
	if err != nil {
		return nil, err
	}
	to := &otlpClient{client, strings.TrimSuffix(c.OTLP, "/") + "/v1/traces"}
	return startSpans(otlptrace.NewUnstarted(to), cmp.Or(c.Share, DefaultShare), dropped, say)
}

// startSpans sends spans through exporter.
func startSpans(exporter sdktrace.SpanExporter, share float64, dropped func(spans int), say func(any)) (*spans, error) {
	// The environment may name the service: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
	of, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", "lull-proxy")), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	sending, cancel := context.WithCancel(context.Background())
	s := &spans{exporter: exporter, dropped: dropped, say: say, queue: make(chan sdktrace.ReadOnlySpan, spansQueued), stopping: make(chan struct{}), ended: make(chan struct{}), cancel: cancel}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s), sdktrace.WithResource(of),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))))
	go s.run(sending)
	return s, nil
}

func (s *spans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (s *spans) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	select {
	case s.queue <- span:
	default:
		s.dropped(1)
	}
}

// ForceFlush does nothing: spans do not wait longer than spansWait.
func (s *spans) ForceFlush(context.Context) error { return nil }

// Shutdown sends what is in the queue. What is there when ctx ends is dropped.
func (s *spans) Shutdown(ctx context.Context) error {
	s.stop()
	defer context.AfterFunc(ctx, s.cancel)()
	<-s.ended
	return ctx.Err()
}

func (s *spans) run(ctx context.Context) {
	defer close(s.ended)
	defer s.cancel()
	for failing := false; ; {
		batch := s.next()
		if len(batch) == 0 {
			return
		}
		sending, cancel := context.WithTimeout(ctx, sendTime)
		err := s.exporter.ExportSpans(sending, batch)
		cancel()
		if err != nil {
			s.dropped(len(batch))
		}
		if err != nil && !failing {
			s.say(fmt.Sprintf("traces: spans are lost: %v", err))
		} else if err == nil && failing {
			s.say("traces: the collector takes spans again")
		}
		failing = err != nil
	}
}

// next returns the next spans to send: when there are enough of them, or the first has waited. None: it is over.
func (s *spans) next() (batch []sdktrace.ReadOnlySpan) {
	var due <-chan time.Time
	stopping := s.stopping
	for len(batch) < spansSent {
		select {
		case span := <-s.queue:
			if batch = append(batch, span); due == nil {
				due = time.After(spansWait)
			}
		case <-due:
			return batch
		case <-stopping:
			if len(s.queue) == 0 {
				return batch
			}
		}
	}
	return batch
}

// otlpClient sends spans as OTLP over HTTP. The module's own client would make the program 8 MB larger, with gRPC.
type otlpClient struct {
	http *http.Client
	url  string
}

func (c *otlpClient) Start(context.Context) error { return nil }
func (c *otlpClient) Stop(context.Context) error  { return nil }

func (c *otlpClient) UploadTraces(ctx context.Context, all []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: all}) // on the wire it is an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	// A collector that gets a span twice has it once: spans have IDs.
	req, err := http.NewRequestWithContext(lullhttp.WithCall(ctx, lull.Idempotent()), http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.http.Do(req)
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
