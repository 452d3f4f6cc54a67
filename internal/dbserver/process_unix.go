//go:build unix

package dbserver

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lullgo/lull/internal/child"
)

const (
	kill   = int(syscall.SIGKILL)
	freeze = int(syscall.SIGSTOP)
	thaw   = int(syscall.SIGCONT)
)

// unprivileged returns the user who runs the server, and makes it the owner of dir: the user of
// the tests, or if that is root, the one with that name or nobody.
func unprivileged(dir, name string) (*syscall.SysProcAttr, error) {
	attr := child.OwnGroup()
	if os.Getuid() != 0 {
		return attr, nil
	}
	for _, name := range []string{name, "nobody"} {
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
	return nil, errors.New("a database does not run as root, and there is no user " + name + " or nobody")
}

// signal sends a signal to the process and to those that it has started, until there are no new ones: on a busy machine a
// process may start one more before it stops.
func signal(pid, what int) {
	sent := map[int]bool{}
	for more := true; more; time.Sleep(10 * time.Millisecond) {
		more = false
		for _, p := range append([]int{pid}, childrenOf(pid)...) {
			if !sent[p] {
				sent[p], more = true, true
				syscall.Kill(p, syscall.Signal(what))
			}
		}
	}
}

// childrenOf returns the processes that pid has started. (Those of PostgreSQL have process groups of their own.)
func childrenOf(pid int) (children []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if fields := strings.Fields(rest); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, id)
		}
	}
	return children
}
