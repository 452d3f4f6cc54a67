package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/lullhttp"
)

// A fleet is the processes of a sim.Fleet on sockets. Each has lullhttp's transport, and its metrics at an address of its own.
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

	mu    sync.Mutex
	order []string              // outcomes
	by    map[string]*histogram // by outcome
}

func openFleet(c clock, def *sim.Fleet, p lull.Policy) *fleet {
	f := &fleet{clock: c, def: def}
	p.AttemptTimeout = def.AttemptTimeout
	for range def.Processes {
		x := &process{fleet: f, base: &http.Transport{MaxIdleConnsPerHost: 1000}, by: map[string]*histogram{}}
		x.count("200", -1)
		x.client = &http.Client{Transport: must.Have(lullhttp.New(p, lullhttp.WithBase(x)))}
		x.metrics = must.Have(net.Listen("tcp", "127.0.0.1:0"))
		go http.Serve(x.metrics, http.HandlerFunc(x.expose))
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
func (f *fleet) run(ctx context.Context, url string, horizon time.Duration, seed uint64) {
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
			ok := get(ctx, x.client, url)
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

// RoundTrip makes one attempt, and measures it.
func (x *process) RoundTrip(r *http.Request) (*http.Response, error) {
	x.fleet.attempts.Add(1)
	began := time.Now()
	resp, err := x.base.RoundTrip(r)
	took := time.Since(began)
	switch {
	case err == nil:
		x.count(strconv.Itoa(resp.StatusCode), took)
	case errors.Is(context.Cause(r.Context()), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		x.count("timeout", took)
	default:
		x.count("connection_reset", took)
	}
	return resp, err
}

// count counts an attempt; nothing if it took less than no time.
func (x *process) count(outcome string, took time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.by[outcome]
	if h == nil {
		h = newHistogram()
		x.by[outcome] = h
		x.order = append(x.order, outcome)
	}
	if took >= 0 {
		h.add(took.Seconds())
	}
}

// expose writes the metrics as Prometheus reads them.
func (x *process) expose(w http.ResponseWriter, _ *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE %s histogram\n", metric)
	for _, outcome := range slices.Clone(x.order) {
		x.by[outcome].expose(w, promLabels(series{outcome: outcome}), "")
	}
}
