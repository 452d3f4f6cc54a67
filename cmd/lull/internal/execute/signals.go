package execute

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
)

type signals struct {
	received chan os.Signal
	done     chan struct{}

	mu       sync.Mutex // guards the rest
	running  *exec.Cmd  // nil between attempts
	ownGroup bool       // it has a process group of its own
	ending   os.Signal  // the first that ends the call, or nil
}

// catchSignals starts to pass signals on. Cancel is called after one that ends the call.
func catchSignals(cancel context.CancelFunc) *signals {
	s := &signals{received: make(chan os.Signal, 16), done: make(chan struct{})}
	signal.Notify(s.received, passedOn...)
	go func() {
		defer close(s.done)
		for got := range s.received {
			if s.pass(got) {
				cancel()
			}
		}
	}()
	return s
}

// pass passes a signal on, and reports whether it ends the call.
func (s *signals) pass(got os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := endsCall(got)
	if ends && s.ending == nil {
		s.ending = got
	}
	if s.running != nil {
		send(s.running, s.ownGroup, got)
	}
	return ends
}

// start starts an attempt. A signal that came just before reaches it too.
func (s *signals) start(c *exec.Cmd, own bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	s.running, s.ownGroup = c, own
	if s.ending != nil {
		send(c, own, s.ending)
	}
	return nil
}

func (s *signals) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
}

func (s *signals) endingSignal() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return number(s.ending)
}

func (s *signals) stop() {
	signal.Stop(s.received)
	close(s.received)
	<-s.done
}
