//go:build unix

package neterr

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// A dial of a Unix socket fails at once where a dial over TCP would wait, and with numbers that mean
// something else elsewhere.
func TestUnixSockets(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	check(t, refused, Class{NeverSent: true, Code: "connection_refused"})
	missing := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}
	check(t, missing, Class{NeverSent: true, Code: "no_socket"})
	for op, network := range map[string]string{"dial": "tcp", "read": "unix", "open": "unix"} {
		if c, known := Classify(&net.OpError{Op: op, Net: network, Err: os.NewSyscallError("connect", syscall.ENOENT)}); c.Code == "no_socket" {
			t.Errorf("%s of %s: %+v, %v", op, network, c, known)
		}
	}
	full := func(op, network string) error {
		return &net.OpError{Op: op, Net: network, Err: os.NewSyscallError("connect", syscall.EAGAIN)}
	}
	check(t, full("dial", "unix"), Class{NeverSent: true, Code: "backlog_full"})
	check(t, full("dial", "unixpacket"), Class{NeverSent: true, Code: "backlog_full"})
	check(t, full("dial", "tcp"), Class{NeverSent: true, CallerSide: true, Code: "local_resources"})
	check(t, full("read", "unix"), Class{Code: "timeout"})
}

// A proxy that hangs up while a connection is set up has not passed anything on.
func TestProxyHangsUp(t *testing.T) {
	for _, op := range []string{"proxyconnect", "socks connect"} {
		for _, err := range []error{io.EOF, io.ErrUnexpectedEOF} {
			check(t, &net.OpError{Op: op, Err: err}, Class{NeverSent: true, Code: "unexpected_eof"})
		}
	}
}
