//go:build unix

package rabbitmq

import "syscall"

// ownGroup: an interrupt from the terminal is not for it, and it can be ended with all
// that it started.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
