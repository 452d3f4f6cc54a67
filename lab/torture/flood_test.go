package torture

import (
	"errors"
	"io"
	"net"
	"testing"
)

// What there is no room for is not kept.
func TestAttemptsAreBounded(t *testing.T) {
	l := newLog(mostAttempts, func() {})
	for i := range mostAttempts + 1000 {
		l.arrive(Attempt{Call: i, Conn: i})
	}
	seen, events := l.seen(Case{})
	if !seen.Flood || len(seen.Attempts) != mostAttempts || len(l.numbers) > mostAttempts || len(l.carried) > mostAttempts || len(events) > mostEvents+1 {
		t.Errorf("flood is %v, %d attempts, %d calls, %d connections, %d events", seen.Flood, len(seen.Attempts), len(l.numbers), len(l.carried), len(events))
	}
}

// An error that will pass ends no server.
func TestAcceptGoesOn(t *testing.T) {
	inner := &full{left: 3, end: io.ErrClosedPipe}
	if _, err := (&gate{Listener: inner, log: newLog(1, nil)}).Accept(); !errors.Is(err, io.ErrClosedPipe) || inner.left != 0 {
		t.Errorf("%v, and %d errors were left", err, inner.left)
	}
}

// full is a listener that has too many files a few times, and then ends.
type full struct {
	net.Listener
	left int
	end  error
}

func (f *full) Accept() (net.Conn, error) {
	if f.left == 0 {
		return nil, f.end
	}
	f.left--
	return nil, passing{}
}

type passing struct{ error }

func (passing) Temporary() bool { return true }
