package lullgrpc

import (
	"cmp"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/lullgo/lull"
)

// This file has the ends of attempts, and the commit of a stream to one.

// inspectEnd inspects an attempt that is over, unless a receiver is about to. It waits for a sender
// first: its SendMsg ends with the attempt.
func (s *stream) inspectEnd(a *streamAttempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for (s.receiving || a.sending) && !a.resolved {
		s.changed.Wait()
	}
	if a.resolved {
		return
	}
	s.receiving, s.settling = true, true
	defer func() {
		s.settling = false
		s.changed.Broadcast()
	}()
	s.unlocked(func() { s.inspect(a) })
}

// beginReceiving waits until there is an attempt to receive from and nobody else receives. Its
// caller must call answered, failed or inspect.
func (s *stream) beginReceiving() (*streamAttempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.rePanic()
		a := s.current
		switch {
		case s.ended:
			return nil, s.err
		case a != nil && a.err != nil:
			return nil, a.err
		case a != nil && !s.receiving && (!a.replaying || s.both):
			s.receiving = true
			return a, nil
		}
		s.changed.Wait()
	}
}

// inspect waits for the attempt's header. Without one the stream has ended and no message can have
// come, so RecvMsg returns only the status.
func (s *stream) inspect(a *streamAttempt) metadata.MD {
	md, err := a.cs.Header()
	if md != nil && err == nil {
		s.answered(a, nil)
		return md
	}
	if err == nil {
		err = a.cs.RecvMsg(new(emptypb.Empty))
	}
	switch err {
	case nil:
		s.failed(a, status.Error(codes.Internal, "lullgrpc: a message came without a header"), true)
	case io.EOF:
		s.answered(a, err)
	default:
		s.failed(a, err, false)
	}
	return nil
}

// answered commits the stream to the attempt: the server has sent its header, a message, or (err is
// io.EOF) an end without failure. It returns false if the attempt has been given up meanwhile,
// because sending on it failed or its time is over.
func (s *stream) answered(a *streamAttempt, err error) bool {
	s.mu.Lock()
	s.receiving = false
	s.changed.Broadcast()
	if s.current != a {
		s.mu.Unlock()
		return false
	}
	if a.expired { // the answer came too late, and nobody has seen it
		s.mu.Unlock()
		s.failed(a, errExpired, false)
		return false
	}
	over := a.outcome.finished || err != nil
	if over {
		s.storeResults(a)
	}
	if err != nil {
		a.err = err
	}
	s.commit(a)
	s.resolve(a, lull.Verdict{Kind: lull.KindSuccess})
	err = cmp.Or(err, a.endedBy)
	s.mu.Unlock()
	if over {
		a.release()
		s.callOnFinish(err)
	}
	return true
}

// failed ends an attempt with err. If the stream is committed to it, err is the stream's end, and
// failed returns it. A header commits the stream even if nobody has seen it: the server has begun
// to answer.
func (s *stream) failed(a *streamAttempt, err error, header bool) error {
	trailer := a.cs.Trailer()
	s.mu.Lock()
	s.receiving = false
	s.changed.Broadcast()
	if a.sending && !a.resolved { // an error of SendMsg is more exact than its echo here
		a.failing = true
		s.unlocked(a.release) // if an interceptor further in has failed, SendMsg may block for long
		for a.sending && !a.resolved {
			s.changed.Wait()
		}
	}
	f := Failure{Method: s.method.name, Err: err, Trailer: trailer, NeverSent: a.outcome.neverSent()}
	s.mu.Unlock()
	if s.giveUp(a, f, s.c.classify(s.method.rule, f), header) {
		return err
	}
	return nil
}

// failedToSend ends an attempt with an error of this side. A message that is too large is too large
// the next time as well.
func (s *stream) failedToSend(a *streamAttempt, err error) {
	f := Failure{Method: s.method.name, Err: err}
	v := s.c.classify(s.method.rule, f)
	if v.Kind == lull.KindRateLimited {
		v = notRepeated(false)
	}
	s.giveUp(a, f, v, false)
}

// giveUp resolves an attempt that has failed, and reports whether the stream is committed to it.
func (s *stream) giveUp(a *streamAttempt, f Failure, v lull.Verdict, header bool) (committed bool) {
	s.mu.Lock()
	if s.current != a { // it was given up before
		s.mu.Unlock()
		return false
	}
	if header && !a.expired { // else nobody has seen it
		s.commit(a)
	}
	committed = s.committed
	if committed {
		v = v.Committed()
		s.storeResults(a)
	}
	a.err, s.err = f.Err, f.Err
	if !committed {
		s.current, s.trailer = nil, f.Trailer
	}
	s.resolve(a, v)
	s.mu.Unlock()
	if committed {
		a.release()
		s.callOnFinish(f.Err)
	}
	return committed
}

// resolve lets the engine continue. It is called with mu held.
func (s *stream) resolve(a *streamAttempt, v lull.Verdict) {
	if !a.resolved {
		a.resolved, a.verdict = true, v
		close(a.done)
	}
	s.passIfFinal(a)
	s.changed.Broadcast()
}

// commit makes a the last attempt. It is called with mu held.
func (s *stream) commit(a *streamAttempt) {
	if s.committed || s.current != a {
		return
	}
	s.committed = true
	if a.upToDate {
		s.sent.forget()
	}
	s.passIfFinal(a)
	s.changed.Broadcast()
}

// passIfFinal sets passing if calls only have to be passed through from now on. It is called with mu held.
func (s *stream) passIfFinal(a *streamAttempt) {
	if s.committed && s.current == a && a.resolved && a.upToDate && a.err == nil {
		s.passing.Store(a)
	}
}

// committedAttempt returns the attempt that the stream is committed to, or nil. It waits while the
// attempt is replayed, as beginReceiving does.
func (s *stream) committedAttempt() *streamAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.committed && s.current.replaying && !s.both && s.panicked == nil {
		s.changed.Wait()
	}
	s.rePanic()
	if !s.committed {
		return nil
	}
	return s.current
}
