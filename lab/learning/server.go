package main

import (
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// A clock counts from the beginning of an incident.
type clock struct{ began time.Time }

func (c clock) now() time.Duration { return time.Since(c.began) }

// until waits for a moment.
func (c clock) until(at time.Duration) { time.Sleep(at - c.now()) }

// A host is one host of a service, on a socket: as many workers as Service.Workers, a queue before them, times that are
// exponential, and the service's faults. Work goes on for callers that have gone.
type host struct {
	clock
	def    *sim.Service
	number int // from 0
	server *http.Server
	url    string
	log    *log.Logger // a line for each request, also of callers that have gone

	mu      sync.Mutex
	random  *rand.Rand
	busy    int
	waiting []chan struct{}
}

func openHost(c clock, def *sim.Service, number int, seed uint64, log *log.Logger) *host {
	h := &host{clock: c, def: def, number: number, log: log, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	h.url = l.Addr().String()
	h.server = &http.Server{Handler: h}
	go h.server.Serve(l)
	for i := range def.Faults {
		time.AfterFunc(def.Faults[i].At+def.Faults[i].For-c.now(), h.fill)
	}
	return h
}

// fault returns the fault that the host has at a time, with its kind; nil: it has none.
func (h *host) fault(at time.Duration) *sim.Fault {
	for i := range h.def.Faults {
		if f := &h.def.Faults[i]; at >= f.At && at < f.At+f.For && (f.Hosts == 0 || h.number < f.Hosts) {
			return f
		}
	}
	return nil
}

func (h *host) workers() int {
	if f := h.fault(h.now()); f != nil && f.Kind == sim.BrownOut {
		return int(float64(h.def.Workers)*f.Share + 0.5)
	}
	return h.def.Workers
}

// draw is the work of an attempt, and a number between 0 and 1.
func (h *host) draw() (time.Duration, float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.random.ExpFloat64() * float64(h.def.Time.Mean)), h.random.Float64()
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, status := time.Now(), http.StatusServiceUnavailable
	work, chance := h.draw()
	switch f := h.fault(h.now()); {
	case f == nil:
	case f.Kind == sim.Crash:
		panic(http.ErrAbortHandler) // the connection breaks
	case f.Kind == sim.Errors && chance < f.Share:
		work = -1
	}
	if work >= 0 && h.enter() {
		status = http.StatusOK
		h.work(work)
		h.mu.Lock()
		h.busy--
		h.mu.Unlock()
		h.fill()
	}
	h.log.Printf(`{"start":%q,"duration_seconds":%.6f,"status":%d,"host":"host-%d"}`, began.Format(time.RFC3339Nano), time.Since(began).Seconds(), status, h.number+1)
	w.WriteHeader(status)
	w.Write([]byte("{}\n"))
}

// enter waits for a worker. It reports false if the queue is full.
func (h *host) enter() bool {
	h.mu.Lock()
	if h.busy < h.workers() {
		h.busy++
		h.mu.Unlock()
		return true
	}
	if len(h.waiting) >= h.def.Queue.Limit {
		h.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	h.waiting = append(h.waiting, turn)
	h.mu.Unlock()
	<-turn
	return true
}

// fill gives free workers to those that wait.
func (h *host) fill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.busy < h.workers() && len(h.waiting) > 0 {
		close(h.waiting[0])
		h.waiting = h.waiting[1:]
		h.busy++
	}
}

// work takes its time: a stall stops it, and after a crash it takes longer.
func (h *host) work(left time.Duration) {
	for i := range h.def.Faults {
		f := &h.def.Faults[i]
		if since := h.now() - f.At - f.For; f.Kind == sim.Crash && since >= 0 && since < f.Warmup {
			left = time.Duration(float64(left) * (1 + (f.Cold-1)*(1-float64(since)/float64(f.Warmup))))
		}
	}
	for left > 0 {
		now, end := h.now(), time.Duration(1<<62)
		for i := range h.def.Faults {
			switch f := &h.def.Faults[i]; {
			case f.Kind != sim.Stall || f.Hosts > 0 && h.number >= f.Hosts || now >= f.At+f.For:
			case now >= f.At:
				h.until(f.At + f.For)
				now = h.now()
			default:
				end = min(end, f.At)
			}
		}
		step := min(left, end-now)
		h.until(now + step)
		left -= step
	}
}
