package shipped

import (
	"cmp"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A server is a sim.Service as an HTTP server. Its work is a timer and takes no processor time, so its capacity does
// not depend on the machine. Like the simulated one it does not look
// whether its caller still waits.
type server struct {
	def   *sim.Service
	clock func() time.Duration
	url   string

	queue chan *job // nil where there are as many workers as it takes
	stop  chan struct{}
	done  sync.WaitGroup
	http  *http.Server

	mu     sync.Mutex // guards what follows
	luck   *rand.Rand
	tokens float64       // of the rate limit
	filled time.Duration // when they were counted
}

// A job is a request in the queue.
type job struct {
	at, work time.Duration
	done     chan struct{}
}

// serve starts a server that serves until close.
func serve(listener net.Listener, def *sim.Service, clock func() time.Duration, seed uint64) *server {
	s := &server{
		def: def, clock: clock, url: "http://" + listener.Addr().String(),
		stop: make(chan struct{}), luck: rand.New(rand.NewPCG(seed, 1)), tokens: float64(def.Rate.Burst),
	}
	if def.Workers > 0 {
		s.queue = make(chan *job, def.Queue.Limit)
		for range def.Workers {
			s.done.Go(s.work)
		}
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.done.Go(func() { _ = s.http.Serve(listener) })
	return s
}

// close ends the server and its workers, whatever they are doing.
func (s *server) close() {
	close(s.stop)
	_ = s.http.Close()
	s.done.Wait()
}

// ServeHTTP asks what a simulated service asks, in the same order.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.clock()
	if f := s.fault(now); f != nil && (f.Share == 0 || s.chance(f.Share)) {
		s.refuse(w, r, http.StatusServiceUnavailable, now+cmp.Or(f.After, s.def.ErrorTime), f.RetryAfter, f.DontRetry)
		return
	}
	if s.chance(s.def.Errors) {
		s.refuse(w, r, http.StatusServiceUnavailable, now+s.def.ErrorTime, 0, false)
		return
	}
	if !s.pays(now) {
		s.refuse(w, r, http.StatusTooManyRequests, now, s.def.Rate.RetryAfter, false)
		return
	}
	work := s.takes()
	if s.queue == nil {
		if s.sleep(s.finish(now, work), r.Context().Done()) {
			_, _ = io.WriteString(w, "ok\n")
		}
		return
	}
	j := &job{at: now, work: work, done: make(chan struct{})}
	select {
	case s.queue <- j:
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, now, s.def.Queue.RetryAfter, s.def.Queue.DontRetry)
		return
	}
	select {
	case <-j.done:
		_, _ = io.WriteString(w, "ok\n")
	case <-r.Context().Done(): // it stays in the queue, and will be worked on
	case <-s.stop:
	}
}

// work serves one job after the other. It keeps to a plan of when it is free
// again, so that timers that ring late do not lower the capacity.
func (s *server) work() {
	var free time.Duration
	for {
		select {
		case j := <-s.queue:
			free = s.finish(max(free, j.at), j.work)
			if !s.sleep(free, nil) {
				return
			}
			close(j.done)
		case <-s.stop:
			return
		}
	}
}

// sleep waits for the clock to read t; false means that stop or gone came first.
func (s *server) sleep(t time.Duration, gone <-chan struct{}) bool {
	left := t - s.clock()
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
	case <-s.stop:
	}
	return false
}

// refuse answers with an error at the given time.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, status int, at, hint time.Duration, dontRetry bool) {
	if !s.sleep(at, r.Context().Done()) {
		return
	}
	switch {
	case hint%time.Second != 0:
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(hint.Milliseconds(), 10))
	case hint > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(hint/time.Second)))
	}
	if dontRetry {
		w.Header().Set("X-Should-Retry", "false")
	}
	http.Error(w, "no", status)
}

// fault is the fault that makes requests fail now, or nil.
func (s *server) fault(now time.Duration) *sim.Fault {
	for i := range s.def.Faults {
		if f := &s.def.Faults[i]; f.Kind == sim.Errors && f.At <= now && now < f.At+f.For {
			return f
		}
	}
	return nil
}

// finish is when work that begins at the given time is done: while the service is
// stalled it stands still.
func (s *server) finish(at, work time.Duration) time.Duration {
	end := at + work
	for i := range s.def.Faults {
		f := &s.def.Faults[i]
		if f.Kind == sim.Stall && f.At < end && at < f.At+f.For {
			end += f.At + f.For - max(at, f.At)
		}
	}
	return end
}

func (s *server) chance(share float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.luck.Float64() < share
}

// pays takes a token for a request, if the rate limit has one.
func (s *server) pays(now time.Duration) bool {
	if s.def.Rate.PerSecond == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = min(s.tokens+(now-s.filled).Seconds()*s.def.Rate.PerSecond, float64(s.def.Rate.Burst))
	s.filled = now
	if s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}

// takes is how long the work on one request takes.
func (s *server) takes() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := &s.def.Time; d.Kind {
	case sim.Exponential:
		return time.Duration(s.luck.ExpFloat64() * float64(d.Mean))
	case sim.Uniform:
		return d.Min + time.Duration(s.luck.Int64N(int64(d.Max-d.Min)+1))
	default: // Fixed
		return d.Mean
	}
}
