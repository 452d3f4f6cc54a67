//go:build servers && unix

package neterr

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// The kernel's errors of Unix sockets are those of TestUnixSockets.
func TestRealUnixSockets(t *testing.T) {
	dir := must.Have(os.MkdirTemp("", "s")) // the path of a socket must be short
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "d")
	dial := func() (net.Conn, error) { return net.Dial("unix", path) }

	_, err := dial()
	check(t, err, Class{NeverSent: true, Code: "no_socket"})

	fd := must.Have(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))
	must.Succeed(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	_, err = dial() // nobody listens
	check(t, err, Class{NeverSent: true, Code: "connection_refused"})

	if runtime.GOOS != "linux" {
		return // others refuse where the backlog is full
	}
	must.Succeed(syscall.Listen(fd, 0))
	t.Cleanup(func() { syscall.Close(fd) })
	for range 2 { // the backlog takes one
		_, err = dial()
	}
	check(t, err, Class{NeverSent: true, Code: "backlog_full"})
}

func TestNoMoreFiles(t *testing.T) {
	var limit syscall.Rlimit
	must.Succeed(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 1
	addr := listen(t).Addr().String()
	must.Succeed(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := net.Dial("tcp", addr)
	must.Succeed(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	check(t, err, Class{NeverSent: true, CallerSide: true, Code: "local_resources"})
}
