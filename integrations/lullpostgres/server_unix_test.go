//go:build unix

package lullpostgres

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

type sysProcAttr = syscall.SysProcAttr

// unprivileged returns the user who runs the server, and makes it the owner of dir: the user of the
// tests, or if that is root, postgres or nobody.
func unprivileged(dir string) (*sysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is not for it
	if os.Getuid() != 0 {
		return attr, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 != nil || err2 != nil {
			continue
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attr, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
