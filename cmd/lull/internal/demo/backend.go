package demo

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/sleep"
)

// A backend is an HTTP server on a loopback port, with a few workers and a bounded queue. If that is full a request gets a 503 at once.
// Like most servers it serves whoever waits in the queue, even if the caller has hung up: that keeps an overloaded server overloaded.
// Serving takes time, by a timer, and no processor: the capacity is not the machine's.
type backend struct {
	url   string
	clock func() time.Duration
	kind  outageKind

	queue  chan *job
	gate   gate
	server *http.Server
	ctx    context.Context // ends with the backend
	stop   context.CancelFunc
	done   sync.WaitGroup

	counts buckets // of the client, too
}

type job struct {
	at   time.Duration
	done chan struct{}
}

func startBackend(s setting, clock func() time.Duration) (*backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := newBackend(s, clock)
	b.url = "http://" + listener.Addr().String() + "/"
	b.server = &http.Server{
		Handler:           b,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	b.done.Go(func() { _ = b.server.Serve(listener) })
	return b, nil
}

// newBackend returns a backend that works and does not listen.
func newBackend(s setting, clock func() time.Duration) *backend {
	b := &backend{
		clock: clock,
		kind:  s.Kind,
		queue: make(chan *job, s.Queue),
		gate:  gate{make(chan struct{}), make(chan struct{})},
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	for i := range s.workers() {
		// The same service times at every backend: only their callers differ.
		random := rand.New(rand.NewPCG(s.Seed, uint64(i)+1))
		b.done.Go(func() { b.work(func() time.Duration { return s.Scenario.service(s, random, b.gate.isShut()) }) })
	}
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := b.clock()
	b.counts.add(seen, now)
	if b.kind == errors503 && b.gate.isShut() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	j := &job{at: now, done: make(chan struct{})}
	select {
	case b.queue <- j:
	default:
		http.Error(w, "queue full", http.StatusServiceUnavailable)
		return
	}
	select {
	case <-j.done:
		_, _ = io.WriteString(w, "ok\n")
	case <-r.Context().Done(): // it stays in the queue, and will be served
	case <-b.ctx.Done():
	}
}

// work serves one job after the other. It plans when it is free again, so that late timers do not lower the capacity.
func (b *backend) work(service func() time.Duration) {
	stalls := b.kind == stall
	var free time.Duration
	for {
		var j *job
		select {
		case j = <-b.queue:
		case <-b.ctx.Done():
			return
		}
		if stalls && b.gate.wait(b.ctx) {
			free = b.clock()
		}
		free = max(free, j.at) + service()
		if !sleepUntil(b.ctx, b.clock, free) {
			return
		}
		// Nothing leaves a backend that is frozen.
		if stalls && b.gate.wait(b.ctx) {
			free = b.clock()
		}
		close(j.done)
	}
}

func (b *backend) close() {
	b.stop()
	if b.server != nil {
		_ = b.server.Close()
	}
	b.done.Wait()
}

// sleepUntil waits until the clock reads t, and reports whether that came before the end of ctx.
func sleepUntil(ctx context.Context, clock func() time.Duration, t time.Duration) bool {
	return sleep.For(ctx, t-clock()) == nil
}

// A gate is shut during the outage, of which there is one: the channels are closed when it shuts, and when it opens again.
type gate struct{ shut, opened chan struct{} }

func (g gate) close() { close(g.shut) }
func (g gate) open()  { close(g.opened) }

func (g gate) isShut() bool { return !sleep.IsOver(g.opened) && sleep.IsOver(g.shut) }

// wait returns when the gate is open, and reports whether it had to wait.
func (g gate) wait(ctx context.Context) bool {
	if !g.isShut() {
		return false
	}
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
	return true
}
