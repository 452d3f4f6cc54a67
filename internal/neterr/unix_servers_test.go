//go:build servers && unix

package neterr

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// The kernel's errors of Unix sockets are those of TestUnixSockets.
func TestRealUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "d")
	dial := func() (net.Conn, error) { return net.Dial("unix", path) }

	_, err = dial()
	check(t, err, Class{NeverSent: true, Code: "no_socket"})

	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	_, err = dial() // nobody listens
	check(t, err, Class{NeverSent: true, Code: "connection_refused"})

	if runtime.GOOS != "linux" {
		return // others refuse where the backlog is full
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	for range 2 { // the backlog takes one
		_, err = dial()
	}
	check(t, err, Class{NeverSent: true, Code: "backlog_full"})
}

func TestNoMoreFiles(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 1
	addr := listen(t).Addr().String()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := net.Dial("tcp", addr)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	check(t, err, Class{NeverSent: true, CallerSide: true, Code: "local_resources"})
}
