//go:build unix

package proxy

import (
	"net"
	"os"
	"syscall"
)

// takeLast returns the connections that wait in the queue of a listener, and ends it in the same moment: the system resets
// those that wait in a listener that is closed.
func takeLast(l net.Listener) (last []net.Conn) {
	c, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		var taken []int
		for {
			n, _, err := syscall.Accept(int(fd))
			if err != nil {
				break
			}
			taken = append(taken, n)
		}
		_ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR)
		for _, n := range taken {
			syscall.CloseOnExec(n)
			f := os.NewFile(uintptr(n), "")
			if c, err := net.FileConn(f); err == nil {
				last = append(last, c)
			}
			f.Close()
		}
	})
	return last
}
