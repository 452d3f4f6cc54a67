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

// Whatever wraps an error, it is found.
func TestWrapped(t *testing.T) {
	want := Class{Kind: Transient, NeverSent: true, Code: "connection_refused"}
	err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errnos[0].err)}
	check(t, fmt.Errorf("get user: %w", err), want)
	check(t, &url.Error{Op: "Get", URL: "http://x", Err: err}, want)
}

func TestTimeouts(t *testing.T) {
	want := Class{Kind: Transient, Code: "timeout"}
	check(t, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, want)

	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0)) //clock: it is past
	defer cancel()
	check(t, ctx.Err(), want)
	check(t, os.ErrDeadlineExceeded, want)
	check(t, fmt.Errorf("a: %w", fmt.Errorf("b: %w", ctx.Err())), want)

	// url.Error answers Timeout for its direct cause only.
	check(t, &url.Error{Op: "Get", URL: "http://x", Err: fmt.Errorf("wrapped: %w", onlyTimeout{})}, want)

	d := net.Dialer{Deadline: time.Unix(1, 0)} //outside: nothing is dialled
	_, err := d.Dial("tcp", "127.0.0.1:1")     // it is past: nothing is dialled
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
	var d net.Dialer                                   //outside: nothing is dialled
	_, err := d.DialContext(ctx, "tcp", "127.0.0.1:1") // nothing is dialled
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
	_, err := net.Dial("tcp", "127.0.0.1") //outside: the address has no port, so nothing is dialled
	check(t, err, Class{Kind: Permanent, NeverSent: true, Code: "dial"})
	_, err = net.Dial("nonsense", "127.0.0.1:1") //outside: there is no such network
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
