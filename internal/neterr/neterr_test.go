package neterr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"testing"
	"time"
)

func check(t *testing.T, err error, want Class) {
	t.Helper()
	if err == nil {
		t.Fatal("the operation succeeded, so there is nothing to classify")
	}
	got, ok := Classify(err)
	if !ok || got != want {
		t.Errorf("Classify(%v) = %+v, %v, want %+v", err, got, ok, want)
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	l := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s
}

func TestRefused(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	_, err := net.Dial("tcp", addr)
	want := Class{Kind: Transient, NeverSent: true, Code: "connection_refused"}
	check(t, err, want)
	check(t, fmt.Errorf("get user: %w", err), want)
	check(t, &url.Error{Op: "Get", URL: "http://x", Err: err}, want)
}

// A connected UDP socket hears "refused" on a later read or write: the datagram
// had left.
func TestRefusedAfterSendingIsNotNeverSent(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := pc.LocalAddr().String()
	pc.Close()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	c.Write([]byte("x"))
	_, err = c.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Skip("this system does not report ICMP errors on UDP sockets")
	}
	check(t, err, Class{Kind: Transient, Code: "connection_refused"})
}

func TestReset(t *testing.T) {
	c, s := pair(t)
	s.SetLinger(0) // close with RST
	s.Close()
	_, err := c.Read(make([]byte, 1))
	check(t, err, Class{Kind: Transient, Code: "connection_reset"})
}

func TestBrokenPipe(t *testing.T) {
	c, s := pair(t)
	s.SetLinger(0)
	s.Close()
	c.Read(make([]byte, 1)) // take the RST in
	_, err := c.Write([]byte("x"))
	check(t, err, Class{Kind: Transient, Code: "connection_reset"})
}

func TestTimeouts(t *testing.T) {
	want := Class{Kind: Transient, Code: "timeout"}
	c, _ := pair(t)
	c.SetReadDeadline(time.Unix(1, 0))
	_, err := c.Read(make([]byte, 1))
	check(t, err, want)

	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	check(t, ctx.Err(), want)
	check(t, os.ErrDeadlineExceeded, want)
	check(t, fmt.Errorf("a: %w", fmt.Errorf("b: %w", ctx.Err())), want)

	// url.Error answers Timeout for its direct cause only.
	check(t, &url.Error{Op: "Get", URL: "http://x", Err: fmt.Errorf("wrapped: %w", onlyTimeout{})}, want)

	d := net.Dialer{Deadline: time.Unix(1, 0)}
	_, err = d.Dial("tcp", listen(t).Addr().String())
	check(t, err, Class{Kind: Transient, NeverSent: true, Code: "timeout"})
}

type onlyTimeout struct{}

func (onlyTimeout) Error() string   { return "it took too long" }
func (onlyTimeout) Timeout() bool   { return true }
func (onlyTimeout) Temporary() bool { return false }

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	want := Class{Kind: Canceled, Code: "canceled"}
	check(t, ctx.Err(), want)
	var d net.Dialer
	_, err := d.DialContext(ctx, "tcp", listen(t).Addr().String())
	check(t, err, want)
}

func TestDNS(t *testing.T) {
	dial := func(e *net.DNSError) error { return &net.OpError{Op: "dial", Net: "tcp", Err: e} }
	for _, c := range []struct {
		name string
		err  error
		want Class
	}{
		{"nxdomain", dial(&net.DNSError{Name: "x.invalid", IsNotFound: true}), Class{Kind: Permanent, NeverSent: true, Code: "nxdomain"}},
		{"nxdomain of a look-up", &net.DNSError{Name: "x.invalid", IsNotFound: true}, Class{Kind: Permanent, NeverSent: true, Code: "nxdomain"}},
		{"servfail", dial(&net.DNSError{IsTemporary: true}), Class{Kind: Transient, NeverSent: true, Code: "dns"}},
		{"resolver silent", dial(&net.DNSError{IsTimeout: true}), Class{Kind: Transient, NeverSent: true, Code: "dns"}},
		{"resolver silent until the deadline", dial(&net.DNSError{IsTimeout: true, UnwrapErr: context.DeadlineExceeded}), Class{Kind: Transient, NeverSent: true, Code: "dns"}},
		{"not known", dial(&net.DNSError{}), Class{Kind: Permanent, NeverSent: true, Code: "dns"}},
		{"caller left", dial(&net.DNSError{UnwrapErr: context.Canceled}), Class{Kind: Canceled, NeverSent: false, Code: "canceled"}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.err, c.want) })
	}
}

func TestBadAddressIsPermanent(t *testing.T) {
	_, err := net.Dial("tcp", "127.0.0.1")
	check(t, err, Class{Kind: Permanent, NeverSent: true, Code: "dial"})
	_, err = net.Dial("nonsense", "127.0.0.1:1")
	check(t, err, Class{Kind: Permanent, NeverSent: true, Code: "dial"})
}

func TestProxiesAreDials(t *testing.T) {
	for _, op := range []string{"dial", "proxyconnect", "socks connect"} {
		check(t, &net.OpError{Op: op, Err: os.NewSyscallError("connect", errnos[0].err)}, Class{Kind: Transient, NeverSent: true, Code: "connection_refused"})
	}
}

func TestEarlyEnd(t *testing.T) {
	want := Class{Kind: Transient, Code: "unexpected_eof"}
	check(t, io.ErrUnexpectedEOF, want)
	check(t, &url.Error{Op: "Get", URL: "http://x", Err: io.EOF}, want)
	check(t, &net.OpError{Op: "read", Err: io.EOF}, want)
}

func TestNotOfTheNetwork(t *testing.T) {
	for _, err := range []error{
		nil,
		io.EOF, // for example the end of a listing
		fmt.Errorf("no more rows: %w", io.EOF),
		errors.New("connection refused"), // a text is no evidence
		errors.New("i/o timeout"),
		os.ErrPermission,
		&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")},
	} {
		if got, ok := Classify(err); ok {
			t.Errorf("Classify(%v) = %+v, want it unknown", err, got)
		}
	}
}

// Two causes mean two exchanges, and one of them may have gone out.
func TestJoinedErrorsNeverProveNotSent(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errnos[0].err)}
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", errnos[1].err)}
	check(t, errors.Join(refused, reset), Class{Kind: Transient, Code: "connection_refused"})
	check(t, fmt.Errorf("%w, then %w", refused, reset), Class{Kind: Transient, Code: "connection_refused"})
	check(t, fmt.Errorf("both: %w", errors.Join(refused, errors.New("other"))), Class{Kind: Transient, Code: "connection_refused"})
	check(t, errors.Join(refused), Class{Kind: Transient, NeverSent: true, Code: "connection_refused"})
}

func TestEveryErrno(t *testing.T) {
	for _, e := range errnos {
		own := e.code == codeResources
		check(t, &net.OpError{Op: "read", Err: os.NewSyscallError("read", e.err)}, Class{Kind: Transient, NeverSent: false, CallerSide: own, Code: e.code})
		check(t, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", e.err)}, Class{Kind: Transient, NeverSent: true, CallerSide: own, Code: e.code})
	}
}

func BenchmarkClassify(b *testing.B) {
	refused := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errnos[0].err)}}
	unknown := fmt.Errorf("a: %w", errors.New("b"))
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Classify(refused)
		}
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Classify(unknown)
		}
	})
}
