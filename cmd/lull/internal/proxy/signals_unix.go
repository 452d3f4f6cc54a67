//go:build unix

package proxy

import (
	"os"
	"os/signal"
	"syscall"
)

// onHangup returns a channel of SIGHUPs. They end the process no more, also while it drains.
func onHangup() <-chan os.Signal {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}

func closeOnExec(fd int) { syscall.CloseOnExec(fd) }
