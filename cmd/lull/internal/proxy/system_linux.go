package proxy

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shareAddress lets another process listen at the same address: after a restart the new one is there before the old one goes.
func shareAddress(_, _ string, c syscall.RawConn) error {
	return onSocket(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
}

// giveToNext sends new connections to the second of the sockets that share an address, in the order in which they were opened.
// Without a second one they come as before. A connection that is in the queue of a socket when that is closed would be reset.
func giveToNext(c syscall.RawConn) error {
	second := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	return onSocket(c, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: 1, Filter: &second[0]})
	})
}

func onSocket(c syscall.RawConn, set func(fd int) error) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = set(int(fd)) })
	return cmp.Or(err, failed)
}

func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}

// dropPages gives back the pages of the program that have been read so far: many are only for the start, and do not come back. A
// mapping into which the loader has written stays.
func dropPages() {
	own, _ := os.Executable()
	maps, _ := os.ReadFile("/proc/self/smaps")
	var from, to uintptr
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " r-") && strings.HasSuffix(strings.TrimSpace(line), own) {
			_, _ = fmt.Sscanf(line, "%x-%x", &from, &to)
		} else if written, found := strings.CutPrefix(line, "Anonymous:"); found {
			if strings.TrimSpace(written) == "0 kB" {
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) // nothing if both are 0
			}
			from, to = 0, 0
		}
	}
}
