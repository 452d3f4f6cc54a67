package lullgrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
)

// A streamAttempt is one attempt at a stream. It is open when it is created. It is resolved when
// the engine may learn that it ended or was answered.
type streamAttempt struct {
	s          *stream
	cs         grpc.ClientStream
	ctx        context.Context
	detached   driver.Detached
	endContext func()      // ends ctx
	timer      *time.Timer // calls expire; nil: the attempt's time has no limit of its own
	once       sync.Once
	over       chan struct{} // closed by signalOver
	done       chan struct{} // closed when resolved

	// Guarded by s.mu.
	opened    bool
	expired   bool    // its time ended before its answer
	outcome   outcome // gRPC may write to it until it has finished
	replaying bool    // the engine's goroutine is sending, or about to look for more to send
	replayed  int     // messages
	closed    bool    // CloseSend was called on cs
	sending   bool    // somebody is in SendMsg or CloseSend of cs
	failing   bool    // RecvMsg of cs has returned an error
	upToDate  bool    // everything was sent on cs, and the sender may go on
	resolved  bool
	verdict   lull.Verdict
	err       error // how cs ended, if it was received from until its end, or was given up
	endedBy   error // the error that gRPC finished it with
}

// run is the engine's goroutine.
func (s *stream) run() {
	returned := false
	defer func() {
		p := recover()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !returned {
			if p == nil {
				p = errors.New("lullgrpc: the goroutine of a stream was ended from within (runtime.Goexit)")
			}
			s.panicked, s.ended = p, true
			s.passing.Store(nil)
		}
		s.changed.Broadcast()
	}()
	spec := s.method.spec(s.callerOptions)
	spec.Stream = !s.c.wholeStream
	r := s.d.Drive(s.ctx, spec, s.attempt, nil, s.lastError)
	s.endCall(r)
	returned = true
}

// endCall sets the error of a call that ended without a commit.
func (s *stream) endCall(r engine.Result) {
	s.mu.Lock()
	if s.committed {
		s.mu.Unlock()
		return
	}
	if r.Reason != engine.Success { // else a classifier took the error for an answer
		s.err = failure(s.d, s.method.name, r, s.err)
	}
	if s.last != nil {
		s.storeResults(s.last)
	}
	s.ended = true
	err := s.err
	s.mu.Unlock()
	s.callOnFinish(err)
}

func (s *stream) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return withRequestID(s.err, s.trailer)
}

// attempt opens an attempt, brings it up to date, and waits for its end or its answer.
func (s *stream) attempt(ctx context.Context) lull.Verdict {
	s.attempts++
	a := &streamAttempt{s: s, ctx: ctx, replaying: true, over: make(chan struct{}), done: make(chan struct{})}
	s.last = a
	if v, ok := s.openAttempt(a); !ok {
		return v
	}
	s.replay(a)
	select {
	case <-a.done:
	case <-a.over:
		s.inspectEnd(a)
	case <-ctx.Done():
		s.inspectEnd(a)
	}
	s.mu.Lock()
	kept := s.committed
	s.mu.Unlock()
	if !kept {
		a.release()
	}
	return a.verdict
}

// openAttempt opens the attempt's stream. The attempt's timeout runs on a timer beside its context. As the
// context's deadline it would be sent to the server, which would then end even a stream that is
// working.
func (s *stream) openAttempt(a *streamAttempt) (v lull.Verdict, ok bool) {
	until, bounded := a.ctx.Deadline()
	a.detached = driver.Detach(a.ctx)
	a.endContext = a.detached.Release
	if callerDeadline, has := s.ctx.Deadline(); a.detached == (driver.Detached{}) {
		a.ctx, a.endContext = context.WithCancel(a.ctx)
	} else if bounded && (!has || until.Before(callerDeadline)) {
		a.timer = time.AfterFunc(time.Until(until), a.expire)
	}
	ctx := withPreviousAttempts(a.ctx, s.attempts-1)
	a.outcome.reset()
	opts := append(s.opts[:len(s.opts):len(s.opts)], grpc.Peer(&a.outcome.peer), grpc.OnFinish(a.finished))
	if len(s.results.headers) > 0 {
		opts = append(opts, grpc.Header(&a.outcome.header))
	}
	if len(s.results.trailers) > 0 {
		opts = append(opts, grpc.Trailer(&a.outcome.trailer))
	}
	a.outcome.recordReady(s.cc)
	cs, err := s.streamer(ctx, s.desc, s.cc, s.method.name, opts...)

	s.mu.Lock()
	if a.expired && err == nil {
		err = errExpired
	}
	if err == nil {
		a.cs = cs
		a.opened, s.current, s.opened = true, a, true
		if a.timer != nil && !s.c.wholeStream {
			a.timer.Stop()
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if !s.c.wholeStream {
			driver.Accepted(a.ctx)
		}
		return v, true
	}
	f := Failure{Method: s.method.name, Err: err, NeverSent: a.outcome.neverSent()}
	connected := a.outcome.connected && attempt.CutOff(a.ctx, a.ctx) == engine.NotCutOff
	s.err, s.trailer = err, nil
	s.mu.Unlock()
	a.release()
	return s.c.verdictOf(s.method.rule, f, s.callerOptions.creds, connected), false
}

// errExpired is the end of an attempt that was opened or answered when its time was over.
var errExpired = status.Error(codes.DeadlineExceeded, "lullgrpc: the time of the attempt is over")

// expire is called by the timer.
func (a *streamAttempt) expire() {
	s := a.s
	s.mu.Lock()
	timedOut := !a.resolved && (!a.opened || s.c.wholeStream)
	a.expired = timedOut
	s.mu.Unlock()
	if timedOut {
		a.detached.Expire()
	}
}

func (a *streamAttempt) release() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.endContext()
}

// finished is called by gRPC when the attempt's stream is over: from within any call into gRPC, or
// from a goroutine of its own when the connection is closed or the context ends.
func (a *streamAttempt) finished(err error) {
	s := a.s
	connected := err != nil && isReady(s.cc)
	s.mu.Lock()
	a.outcome.finished, a.endedBy = true, err
	a.outcome.connected = a.outcome.connected && connected
	ours := s.committed && s.current == a && !a.failing
	if ours {
		s.storeResults(a)
	}
	s.mu.Unlock()
	a.signalOver()
	if ours {
		a.release()
		s.callOnFinish(err)
	}
}

// signalOver makes the engine inspect the attempt.
func (a *streamAttempt) signalOver() { a.once.Do(func() { close(a.over) }) }

// replay sends everything that was sent before; then the sender may go on. Receivers wait for the
// end of the replay. Interceptors further in expect that from a caller who sends and then receives.
// Receivers do not wait if the caller has done both at once: such a stream may be full in both
// directions.
func (s *stream) replay(a *streamAttempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		a.replaying = false
		s.changed.Broadcast()
	}()
	for a.err == nil {
		switch {
		case a.replayed < len(s.sent.messages):
			m, err := s.sent.messages[a.replayed].message()
			a.replayed++
			if err != nil {
				err = status.Error(codes.Internal, "lullgrpc: a message that was sent cannot be read back: "+err.Error())
				s.unlocked(func() { s.failedToSend(a, err) })
				return
			}
			if s.send(a, m) != nil {
				return
			}
		case s.sent.closed && !a.closed:
			s.closeAttempt(a)
		default:
			a.upToDate = true
			if s.committed {
				s.sent.forget()
			}
			s.passIfFinal(a)
			s.changed.Broadcast()
			return
		}
	}
}
