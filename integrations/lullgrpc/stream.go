package lullgrpc

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/lullgo/lull"
)

// newStream is the stream interceptor. It returns when the first attempt is open, or the call has
// ended without one.
func (c *Client) newStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	m := c.methods.Get(name)
	s := &stream{
		c: c, d: c.dependency(ctx, targetOf(cc), m), method: m,
		ctx: ctx, desc: desc, cc: cc, streamer: streamer, limit: c.buffer,
	}
	s.changed.L = &s.mu
	s.opts, s.callerOptions = splitOptions(nil, opts)
	s.opts, s.results = splitResultVars(s.opts)
	if s.callerOptions.buffer > 0 {
		s.limit = s.callerOptions.buffer - 1
	}
	go s.run()

	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.opened && !s.ended {
		s.changed.Wait()
	}
	s.rePanic()
	if s.ended && !s.opened && s.err != nil {
		return nil, s.err
	}
	return s, nil
}

// A stream is the ClientStream that the caller gets. It passes the caller's calls to the attempt
// that is open, and keeps what was sent for the next one, until it is committed to an attempt.
// After that it only passes calls through.
//
// The engine runs on a goroutine of its own, from the opening of the stream to the commit, since it
// must wait for an attempt's end whatever the caller does. It opens the attempts and replays; the
// caller's goroutines do the rest. All of them share mu. No call into gRPC is made with mu held,
// since gRPC calls back (OnFinish) from within.
type stream struct {
	c             *Client
	d             *lull.Dependency
	method        *method
	ctx           context.Context // the caller's
	desc          *grpc.StreamDesc
	cc            *grpc.ClientConn
	streamer      grpc.Streamer
	opts          []grpc.CallOption // those for each attempt
	callerOptions callerOptions
	results       resultVars
	limit         int // bytes to keep

	attempts int            // used by the engine's goroutine alone
	last     *streamAttempt // likewise: the attempt with that number

	// passing is the attempt to which every call is passed through. It is set when everything below
	// about sending and receiving is final.
	passing atomic.Pointer[streamAttempt]

	mu            sync.Mutex
	changed       sync.Cond      // any field below has changed
	current       *streamAttempt // nil: none is open, for now or (if ended) for good
	opened        bool           // an attempt was open
	sent          replay
	committed     bool // to current
	receiving     bool // somebody is in RecvMsg or Header of current
	settling      bool // the engine's goroutine is receiving: the caller does not send meanwhile
	sends         bool // the caller is in SendMsg or CloseSend
	receives      bool // the caller is in RecvMsg or Header
	both          bool // the caller has sent and received at once, so interceptors further in may see both
	ended         bool // the engine has ended without a commit: see err
	err           error
	trailer       metadata.MD // of the last attempt that was given up
	panicked      any
	finishCalled  bool // callerOptions.finish was called
	resultsStored bool // results has its final values
}

// RecvMsg receives from the attempt that is open. The engine handles a failure before the stream is
// committed. Then RecvMsg returns a message of another attempt, or the call's error.
func (s *stream) RecvMsg(m any) error {
	if a := s.passing.Load(); a != nil {
		err := a.cs.RecvMsg(m)
		if err != nil {
			a.release()
			s.callOnFinish(err)
		}
		return err
	}
	s.enter(&s.receives)
	defer s.leave(&s.receives)
	for {
		a, err := s.beginReceiving()
		if err != nil {
			return err
		}
		if err, end := s.receive(a, m); end {
			return err
		}
	}
}

// receive receives from a, and reports whether the caller's call ends with this result.
func (s *stream) receive(a *streamAttempt, m any) (err error, end bool) {
	returned := false
	defer func() {
		if !returned { // a panic below must not keep the engine waiting
			s.mu.Lock()
			s.receiving = false
			s.changed.Broadcast()
			s.mu.Unlock()
		}
	}()
	err = a.cs.RecvMsg(m)
	if err == nil || err == io.EOF {
		end = s.answered(a, err)
	} else {
		md, _ := a.cs.Header()
		err = s.failed(a, err, md != nil)
		end = err != nil
	}
	returned = true
	return err, end
}

// Header waits for the header of the attempt that is open. A stream with a header is committed.
func (s *stream) Header() (metadata.MD, error) {
	if a := s.passing.Load(); a != nil {
		return a.cs.Header()
	}
	s.enter(&s.receives)
	defer s.leave(&s.receives)
	for {
		if a := s.committedAttempt(); a != nil {
			return a.cs.Header()
		}
		a, err := s.beginReceiving()
		if err != nil {
			return nil, nil // RecvMsg returns the error, by contract
		}
		if md := s.inspect(a); md != nil {
			return md, nil
		}
	}
}

// Trailer returns the trailer of the attempt that the stream is committed to, else of the last.
func (s *stream) Trailer() metadata.MD {
	if a := s.committedAttempt(); a != nil {
		return a.cs.Trailer()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trailer
}

// Context commits the stream to the attempt that is open, as in gRPC: the caller must not read
// values from it that change later.
func (s *stream) Context() context.Context {
	s.mu.Lock()
	a := s.current
	if a != nil {
		s.commit(a)
	}
	s.mu.Unlock()
	if a == nil {
		return s.ctx
	}
	return a.cs.Context()
}

// enter and leave record which calls the caller is in.
func (s *stream) enter(at *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = true
	if s.sends && s.receives && !s.both {
		s.both = true
		s.changed.Broadcast()
	}
}

func (s *stream) leave(at *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = false
}

// CloseSend ends sending, to this attempt and to those that follow.
func (s *stream) CloseSend() error {
	if a := s.passing.Load(); a != nil {
		return a.cs.CloseSend()
	}
	s.enter(&s.sends)
	defer s.leave(&s.sends)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.closed = true
	for s.settling {
		s.changed.Wait()
	}
	a := s.current
	if a == nil || !a.upToDate || a.closed {
		return nil // the goroutine that replays closes as well
	}
	return s.closeAttempt(a)
}

// closeAttempt is CloseSend of a. It releases the lock meanwhile.
func (s *stream) closeAttempt(a *streamAttempt) (err error) {
	a.closed, a.sending = true, true
	defer s.sentOn(a)
	s.unlocked(func() { err = a.cs.CloseSend() })
	return err
}

// sentOn records that nobody is in SendMsg or CloseSend of a any more.
func (s *stream) sentOn(a *streamAttempt) {
	a.sending = false
	s.changed.Broadcast()
}

// SendMsg sends on the attempt that is open, and keeps a copy for the next. If none is open it
// blocks until one is. It returns io.EOF when there will be none: RecvMsg returns the reason. It
// returns errors of this side itself.
func (s *stream) SendMsg(m any) error {
	if a := s.passing.Load(); a != nil {
		return a.cs.SendMsg(m)
	}
	var c replayMessage
	copied := false
	kept := false // c is in s.sent: the goroutine that replays sends it
	ours := false // the last attempt to send it failed on this side
	s.enter(&s.sends)
	defer s.leave(&s.sends)
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := s.limit - s.sent.size - frameBytes; room >= 0 && !s.committed && !s.ended { // else it is not kept
		s.unlocked(func() { c, copied = copyOf(m, room) })
	}
	for {
		s.rePanic()
		a := s.current
		switch {
		case s.ended && ours:
			return s.err
		case s.ended, a != nil && a.err != nil: // and the stream is committed to a
			return io.EOF
		case s.committed && !a.replaying && !a.upToDate: // a ended before everything was sent on it
			return io.EOF
		case a == nil || !a.upToDate || s.settling:
			s.changed.Wait()
		case kept:
			return nil
		case s.committed:
			return s.send(a, m)
		case !copied, s.sent.closed, !s.desc.ClientStreams && len(s.sent.messages) > 0: // gRPC returns the error for what must not be sent
			s.commit(a)
		default:
			s.sent.messages = append(s.sent.messages, c)
			s.sent.size += len(c.bytes) + frameBytes
			kept = true
			err := s.send(a, m)
			if err == nil {
				return nil
			}
			for !a.resolved && !s.committed {
				s.changed.Wait()
			}
			if s.current == a { // committed to a, whatever its end will be
				return err
			}
			ours = err != io.EOF
		}
	}
}

// send sends on a. It releases the lock meanwhile. If sending fails it starts the inspection of the
// attempt.
func (s *stream) send(a *streamAttempt, m any) (err error) {
	a.sending = true
	defer s.sentOn(a)
	s.unlocked(func() {
		switch err = a.cs.SendMsg(m); err {
		case nil:
		case io.EOF:
			a.signalOver()
		default:
			s.failedToSend(a, err)
		}
	})
	return err
}

// unlocked runs f without the lock. The lock is held again afterwards, even if f panics.
func (s *stream) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

// rePanic panics on the caller's goroutine if the engine's has panicked.
func (s *stream) rePanic() {
	if s.panicked != nil {
		panic(s.panicked)
	}
}

// storeResults gives the caller the results of the attempt that counts, before the caller can know that
// it counts. It is called with mu held.
func (s *stream) storeResults(a *streamAttempt) {
	if !s.resultsStored && a.outcome.finished {
		s.results.store(&a.outcome)
	}
	s.resultsStored = true
}

func (s *stream) callOnFinish(err error) {
	if len(s.callerOptions.onFinish) == 0 {
		return
	}
	s.mu.Lock()
	first := !s.finishCalled
	s.finishCalled = true
	s.mu.Unlock()
	if !first {
		return
	}
	if err == io.EOF {
		err = nil
	}
	s.callerOptions.finish(err)
}
