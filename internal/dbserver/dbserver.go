// Package dbserver starts PostgreSQL and MariaDB for tests: the ones that are installed, each as a
// child of the process, with which it ends, on a free port of 127.0.0.1.
package dbserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/internal/tail"
)

// ErrAbsent is the error if a server is not installed.
var ErrAbsent = errors.New("the server is not installed")

// A Server is a database with a directory and a port of its own. It can be ended, started again
// with the same data, and frozen.
type Server struct {
	Port int

	program    string
	args       []string
	stopSignal string // the signal that ends it at once, but in order
	dir        string
	user       *syscall.SysProcAttr
	ready      func(addr string) error
	child      *child.Child
}

// Postgres starts a PostgreSQL with the options. Its user is postgres, without a password. ready
// reports whether it answers.
func Postgres(ready func(addr string) error, options ...string) (*Server, error) {
	initdb, postgres, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	args := []string{"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=400", "-c", "max_prepared_transactions=0"}
	s := &Server{program: postgres, args: append(args, options...), stopSignal: "INT", ready: ready}
	return s.create("postgres", func(data string) []string {
		s.args = append(s.args, "-D", data)
		return []string{initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C"}
	}, "-p")
}

// HasPostgres reports whether PostgreSQL is installed.
func HasPostgres() bool {
	_, _, err := postgresPrograms()
	return err == nil
}

// MariaDB starts a MariaDB. Its user is root, without a password. ready reports whether it
// answers.
func MariaDB(ready func(addr string) error) (*Server, error) {
	program, err := findProgram("mariadbd", "/usr/sbin")
	install, err2 := findProgram("mariadb-install-db", "/usr/bin")
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("%w: apt-get install mariadb-server (without it: %w)", ErrAbsent, err)
	}
	s := &Server{program: program, stopSignal: "TERM", ready: ready}
	return s.create("mysql", func(data string) []string {
		s.args = []string{"--no-defaults", "--datadir=" + data, "--bind-address=127.0.0.1", "--socket=" + data + ".socket", "--skip-log-bin", "--skip-name-resolve",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=0", "--performance-schema=OFF", "--max-connections=400", "--lower-case-table-names=0"}
		return []string{install, "--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--innodb-use-native-aio=0"}
	}, "--port")
}

// create makes the directory with the data, and starts the server on a free port.
func (s *Server) create(user string, install func(data string) []string, port string) (_ *Server, err error) {
	defer func() {
		if err != nil {
			os.RemoveAll(s.dir)
		}
	}()
	defer must.Catch(&err)
	s.dir = must.Have(os.MkdirTemp("", "lull-"+user))
	s.user = must.Have(unprivileged(s.dir, user)) // PostgreSQL refuses to run as root
	args := install(filepath.Join(s.dir, "data"))
	for try := 1; ; try++ { // MariaDB's fails now and then when several are at work
		out, err := s.install(args)
		if err == nil {
			break
		}
		os.RemoveAll(filepath.Join(s.dir, "data"))
		if try == 3 {
			must.Fail("%s: %w\n%s", args[0], err, out)
		}
	}
	fixed := s.args
	for range 3 { // the port may be taken by another meanwhile
		must.Succeed(ports.Free(&s.Port))
		s.args = append(slices.Clip(fixed), port, strconv.Itoa(s.Port))
		if err = s.Start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// installing lets one server at a time make its data.
var installing sync.Mutex

func (s *Server) install(args []string) (out []byte, err error) {
	installing.Lock()
	defer installing.Unlock()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.user
	return cmd.CombinedOutput()
}

// Addr is host and port of the server.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// script runs the server until its standard input ends: with the process of the test, however
// that ends.
const script = `exec 3<&0; end=$1; pid=$2; shift 2; "$@" <&- 3<&- & echo $! >"$pid"; read x <&3; kill -$end $!; wait $!`

// Start starts the server, and returns when it answers.
func (s *Server) Start() error {
	log := &tail.Tail{}
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", s.stopSignal, s.pidFile(), s.program}, s.args...)...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = s.dir, s.user, log, log
	var err error
	if s.child, err = child.Start(cmd); err != nil {
		return err
	}
	err = s.child.Await(func() error {
		c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err != nil {
			return err // drivers write of refused connections
		}
		c.Close()
		return s.ready(s.Addr())
	}, 20*time.Millisecond, time.Minute)
	if err != nil {
		s.Kill()
		return fmt.Errorf("%s: %w\n%s", s.program, err, log)
	}
	return nil
}

func (s *Server) pidFile() string { return filepath.Join(s.dir, "pid") }

// longestStop is how long a server may take to end in order. After that it is killed.
const longestStop = 20 * time.Second

// Stop ends the server in order, at once, and waits for its end.
func (s *Server) Stop() {
	s.Thaw()
	slow := time.AfterFunc(longestStop, func() { s.signal(kill) })
	defer slow.Stop()
	s.child.CloseInput()
}

// Close stops the server and removes its data.
func (s *Server) Close() {
	s.Stop()
	os.RemoveAll(s.dir)
}

// Kill kills the server with all its processes.
func (s *Server) Kill() {
	s.signal(kill)
	s.child.CloseInput()
}

// Freeze stops all processes of the server. They hold their connections and do not answer.
func (s *Server) Freeze() { s.signal(freeze) }

// Thaw lets them continue.
func (s *Server) Thaw() { s.signal(thaw) }

// signal sends a signal to the server and the processes that it has started.
func (s *Server) signal(what int) {
	text, _ := os.ReadFile(s.pidFile())
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		signal(pid, what)
	}
}

func findProgram(name, dir string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	return exec.LookPath(filepath.Join(dir, name))
}

// postgresPrograms finds initdb and postgres: in PATH, or in Debian's folders, the newest.
func postgresPrograms() (initdb, postgres string, err error) {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(installed, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append(dirs, installed...) {
		initdb, err1 := exec.LookPath(filepath.Join(dir, "initdb"))
		postgres, err2 := exec.LookPath(filepath.Join(dir, "postgres"))
		if err1 == nil && err2 == nil {
			return initdb, postgres, nil
		}
	}
	return "", "", fmt.Errorf("%w: no initdb and postgres in PATH or /usr/lib/postgresql/*/bin: apt-get install postgresql", ErrAbsent)
}

func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

// A Shared starts the servers of a package's tests: one that they share, when the first of them needs it, and others that
// belong to one test.
type Shared struct {
	Start func() (*Server, error)

	once   sync.Once
	server *Server
	err    error
}

// Server returns the shared server.
func (s *Shared) Server() (*Server, error) {
	s.once.Do(func() { s.server, s.err = s.Start() })
	return s.server, s.err
}

// Addr returns host and port of the shared server.
func (s *Shared) Addr(t testing.TB) string {
	t.Helper()
	server, err := s.Server()
	Need(t, err)
	return server.Addr()
}

// Own starts a server that ends with the test.
func (s *Shared) Own(t testing.TB) *Server {
	t.Helper()
	server, err := s.Start()
	Need(t, err)
	t.Cleanup(server.Close)
	return server
}

// Close stops the shared server, if there is one. It is for TestMain.
func (s *Shared) Close() {
	if s.server != nil {
		s.server.Close()
	}
}

// Need fails the test with err. If the server is not installed, it skips the test, unless CI is set.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
