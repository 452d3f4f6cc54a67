//go:build servers

package shipped

import (
	"net"
	"testing"
)

// tooLate is half of what a caller waits: a machine that stood still for so long was an outage itself.
const tooLate = 250 * ms

// onSockets is a port of its own.
func onSockets() (net.Listener, dialer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return l, (&net.Dialer{}).DialContext, err
}

// On sockets and the real clock the boundary is where it is in virtual time. If timers were late, a run proves
// nothing. If they were not, and it disagrees, it is repeated.
func TestBoundaryOnSockets(t *testing.T) {
	ps := places(t, boundaries(true), *whole)
	ls := land(t, onSockets, ps, 1)
	var again []place
	for i, p := range ps {
		switch {
		case p.right(t, ls[i]):
		case ls[i].late > tooLate:
			t.Logf("%v: not compared, since timers were late; in virtual time it was", p)
		default:
			again = append(again, p)
		}
	}
	table(t, ps, ls)
	for i, l := range land(t, onSockets, again, 1001) {
		if !again[i].right(t, l) && l.late <= tooLate {
			t.Errorf("%v: %s in earnest, twice, and on the map %s", again[i], l.state, again[i].want)
		}
	}
}
