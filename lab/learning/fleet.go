package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/lullhttp"
)

// A fleet is the processes of a sim.Fleet on sockets. Each has lullhttp's transport, and at an address of its own the metrics that
// the package comment of lullotel and its Transport show: its own of calls, and those of otelhttp of attempts.
type fleet struct {
	clock
	def       *sim.Fleet
	processes []*process
	attempts  atomic.Int64

	mu    sync.Mutex
	calls []sim.Made
}

type process struct {
	fleet   *fleet
	base    *http.Transport
	client  *http.Client
	metrics net.Listener
}

// openFleet has the fleet call what listens at an address, by the name of its service.
func openFleet(c clock, def *sim.Fleet, p lull.Policy, address string) *fleet {
	f := &fleet{clock: c, def: def}
	p.AttemptTimeout = def.AttemptTimeout
	for range def.Processes {
		registry := prometheus.NewRegistry()
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(must.Have(exporter.New(exporter.WithRegisterer(registry)))))
		t := must.Have(lullotel.New(lullotel.WithMeterProvider(meters)))
		x := &process{fleet: f, base: &http.Transport{MaxIdleConnsPerHost: 1000}}
		x.base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		attempts := otelhttp.NewTransport(x, otelhttp.WithMeterProvider(meters))
		calls := must.Have(lullhttp.New(p, lullhttp.WithBase(attempts), lullhttp.With(t.Options()...)))
		t.WatchAll(calls.Registry().All)
		x.client = &http.Client{Transport: calls}
		x.metrics = must.Have(net.Listen("tcp", "127.0.0.1:0"))
		go http.Serve(x.metrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		f.processes = append(f.processes, x)
	}
	return f
}

func (f *fleet) close() {
	for _, x := range f.processes {
		x.metrics.Close()
		x.base.CloseIdleConnections()
	}
}

// run makes the calls of the fleet's arrivals, and returns when all have ended.
func (f *fleet) run(ctx context.Context, horizon time.Duration, seed uint64) {
	d := rand.New(rand.NewPCG(seed, 1))
	var calls sync.WaitGroup
	for at := time.Duration(0); ctx.Err() == nil; {
		at += time.Duration(d.ExpFloat64() / (f.def.Arrivals.Rate * factor(f.def.Arrivals.Ramp, at)) * float64(time.Second))
		if at >= horizon {
			break
		}
		x := f.processes[d.IntN(len(f.processes))]
		f.until(at)
		calls.Go(func() {
			began := f.now()
			ok := get(ctx, x.client, "http://"+f.def.Calls+"/")
			f.mu.Lock()
			defer f.mu.Unlock()
			f.calls = append(f.calls, sim.Made{Began: began, Ended: f.now(), Succeeded: ok})
		})
	}
	calls.Wait()
}

// factor is that of a ramp of steps.
func factor(ramp []sim.RampPoint, at time.Duration) float64 {
	now := 1.0
	for _, p := range ramp {
		if p.At <= at {
			now = p.Factor
		}
	}
	return now
}

func get(ctx context.Context, c *http.Client, url string) bool {
	resp, err := c.Do(must.Have(http.NewRequestWithContext(ctx, http.MethodGet, url, nil)))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// RoundTrip makes one attempt.
func (x *process) RoundTrip(r *http.Request) (*http.Response, error) {
	x.fleet.attempts.Add(1)
	return x.base.RoundTrip(r)
}
