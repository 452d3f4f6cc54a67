package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An opener opens the listeners of the doors: those that a manager has opened already, by the names of doors, or new ones.
type opener struct {
	say     func(any)
	replace bool                // another process has the addresses, and will end
	given   map[string]*os.File // by name
	doors   map[string]string   // addresses by name; guarded by running.reloading

	mu     sync.Mutex
	shared []*net.TCPListener // that another process may share
}

// newOpener has the sockets that the manager has opened (sd_listen_fds).
func newOpener(doors map[string]string, getenv func(string) string, say func(any)) (*opener, error) {
	o := &opener{say: say, given: map[string]*os.File{}, doors: doors}
	count, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return o, nil
	}
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	if len(names) != count {
		return nil, fmt.Errorf("LISTEN_FDNAMES is %q: want the names of %d doors, as FileDescriptorName= of a socket unit has them", getenv("LISTEN_FDNAMES"), count)
	}
	for i, name := range names {
		o.given[name] = os.NewFile(uintptr(3+i), name)
		if doors[name] == "" && name != "admin" {
			say(fmt.Sprintf("the socket %s was given, and no door has that name", name))
		}
	}
	return o, nil
}

// listen is for package proxy.
func (o *opener) listen(address string) (net.Listener, error) {
	for name, at := range o.doors {
		if at == address {
			return o.open(name, address)
		}
	}
	return nil, fmt.Errorf("no door has the address %s", address)
}

func (o *opener) open(name, address string) (net.Listener, error) {
	l, err := o.listener(name, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	o.say(fmt.Sprintf("%s listens at %v", name, l.Addr()))
	return l, nil
}

func (o *opener) listener(name, address string) (net.Listener, error) {
	if f := o.given[name]; f != nil {
		l, err := net.FileListener(f)
		return managed{l}, err
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	if !o.replace { // two processes that share an address by mistake would get half of the requests each
		l, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: --replace takes the place of another lull proxy", err)
		}
		if err != nil {
			return nil, err
		}
		l.Close()
	}
	config := net.ListenConfig{Control: shareAddress}
	config.SetMultipathTCP(false) // giveToNext is for plain TCP
	l, err := config.Listen(context.Background(), "tcp", address)
	if tcp, ok := l.(*net.TCPListener); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.shared = append(o.shared, tcp)
	}
	return l, err
}

// managed is a listener whose queue stays with the manager when it is closed. It hides what package proxy ends a queue with.
type managed struct{ net.Listener }

// listenUnix listens at path, where owner and group may connect. A file of a process that is gone is replaced.
func listenUnix(path string) (net.Listener, error) {
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		c.Close()
		return nil, errors.New("another process answers there")
	case errors.Is(err, syscall.ECONNREFUSED):
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	return l, err
}

// retire gives new connections to the process that shares the addresses, if there is one. Those that wait here are still accepted.
func (o *opener) retire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.shared {
		if c, err := l.SyscallConn(); err == nil {
			if err := giveToNext(c); err != nil && !errors.Is(err, net.ErrClosed) {
				o.say(fmt.Errorf("%v: new connections may come here until it is closed: %w", l.Addr(), err))
			}
		}
	}
}

// A manager is the address of what wants to know how far this process is (sd_notify). Empty: nobody.
type manager string

func (m manager) tell(state string) {
	if m == "" {
		return
	}
	if c, err := net.Dial("unixgram", string(m)); err == nil {
		_, _ = c.Write([]byte(state))
		c.Close()
	}
}
