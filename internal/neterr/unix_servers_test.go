//go:build servers && unix

package neterr

import (
	"net"
	"os"
	"path/filepath"
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

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	_, err = dial()
	check(t, err, Class{NeverSent: true, Code: "connection_refused"})
}
