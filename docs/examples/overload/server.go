package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/lullgo/lull/server/admission"
)

const (
	workers  = 4
	usual    = 20 * time.Millisecond
	capacity = float64(workers) * float64(time.Second) / float64(usual) // a second

	bound = admission.DefaultMaxWait
)

// server has a few workers, and a queue before them that has no end.
type server struct {
	mu    sync.Mutex
	work  sync.Cond
	queue []*item
	ended bool
	done  sync.WaitGroup // the workers

	spent time.Duration   // by workers at work
	took  []time.Duration // from the arrival of what was worked on to its answer
}

// item is the work that a request is. It is done, whether or not its caller is there:
// a worker has no way of knowing.
type item struct {
	arrived time.Time
	done    chan struct{}
}

func newServer() *server {
	s := &server{}
	s.work.L = &s.mu
	for range workers {
		s.done.Go(s.worker)
	}
	return s
}

func (s *server) worker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 && !s.ended {
			s.work.Wait()
		}
		if s.ended {
			return
		}
		i := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		began := time.Now()
		time.Sleep(usual)
		close(i.done)
		s.mu.Lock()
		s.spent += time.Since(began)
		s.took = append(s.took, time.Since(i.arrived))
	}
}

func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	s.work.Broadcast()
	s.mu.Unlock()
	s.done.Wait()
}

// restart forgets what was measured.
func (s *server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent, s.took = 0, nil
}

// measured returns the measurements since the restart.
func (s *server) measured() (took []time.Duration, perItem time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took, s.spent / time.Duration(max(len(s.took), 1))
}

type arrivedKey struct{}

// stamped notes when a request arrives, before anything else is done with it.
func stamped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrivedKey{}, time.Now())))
	})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := &item{arrived: r.Context().Value(arrivedKey{}).(time.Time), done: make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, i)
	s.mu.Unlock()
	s.work.Signal()
	select {
	case <-i.done:
	case <-r.Context().Done(): // there is nobody to answer; the work remains
	}
}
