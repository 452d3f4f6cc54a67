package lullpostgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/pace"
)

// useServer is the variable that names a server to use instead of one that the tests start: a
// connection string of a role that may create tables.
const useServer = "LULLPOSTGRES_SERVER"

// server is the PostgreSQL of these tests, started by the first test that needs it.
var server struct {
	once   sync.Once
	dsn    string
	err    error
	absent bool
	stop   func()
}

func TestMain(m *testing.M) {
	pace.Overlap(16)
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// dsn returns the address of the server. Without one the test is skipped; with CI set it fails.
func dsn(t testing.TB) string {
	t.Helper()
	server.once.Do(func() {
		if server.dsn = os.Getenv(useServer); server.dsn == "" {
			server.dsn, server.stop, server.absent, server.err = start("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
		}
	})
	if server.absent && os.Getenv("CI") == "" {
		t.Skip(server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.dsn
}

// start starts a server on a free port of 127.0.0.1, in a new directory.
func start(options ...string) (dsn string, stop func(), absent bool, err error) {
	initdb, postgres, err := programs()
	if err != nil {
		return "", nil, true, err
	}
	dir, err := os.MkdirTemp("", "lullpostgres")
	if err != nil {
		return "", nil, false, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	data := filepath.Join(dir, "data")
	user, err := unprivileged(dir) // PostgreSQL refuses to run as root
	if err != nil {
		return "", nil, false, err
	}
	init := exec.Command(initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C")
	init.Dir, init.SysProcAttr = dir, user
	if out, err := init.CombinedOutput(); err != nil {
		return "", nil, false, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 3 { // the port may be taken by another meanwhile
		if dsn, stop, err = launch(postgres, data, user, options); err == nil {
			kill := stop
			return dsn, func() { kill(); os.RemoveAll(dir) }, false, nil
		}
	}
	return "", nil, false, err
}

func launch(postgres, data string, user *sysProcAttr, options []string) (dsn string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	args := append([]string{
		"-D", data, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=400", "-c", "max_prepared_transactions=0",
	}, options...)
	var log strings.Builder
	cmd, end := outlivesNobody(postgres, args)
	cmd.Dir, cmd.SysProcAttr, cmd.Stderr = data, user, &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	stop = func() {
		end(cmd, stdin)
		<-ended
	}
	dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			return "", nil, fmt.Errorf("postgres has ended:\n%s", log.String())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var conn *pgx.Conn
		if conn, err = pgx.Connect(ctx, dsn); err == nil {
			conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return dsn, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("postgres does not answer: %w\n%s", err, log.String())
}

// outlivesNobody returns a server that stops when the process of the test ends, however it ends:
// its standard input is closed then. Without a shell it may be left behind.
func outlivesNobody(postgres string, args []string) (*exec.Cmd, func(*exec.Cmd, io.Closer)) {
	end := func(_ *exec.Cmd, stdin io.Closer) { stdin.Close() }
	shell, err := exec.LookPath("sh")
	if err != nil {
		return exec.Command(postgres, args...), func(c *exec.Cmd, _ io.Closer) { c.Process.Kill() }
	}
	const script = `exec 3<&0; "$@" <&- 3<&- & read x <&3; kill -INT $!; wait $!`
	return exec.Command(shell, append([]string{"-c", script, "sh", postgres}, args...)...), end
}

// programs finds initdb and postgres: in PATH, or in Debian's folders, the newest.
func programs() (initdb, postgres string, err error) {
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
	return "", "", errors.New("no initdb and postgres in PATH or /usr/lib/postgresql/*/bin: install PostgreSQL (apt-get install postgresql), or name a server in " + useServer)
}

func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

// newPool returns a pool of connections to the server at dsn.
func newPool(t testing.TB, dsn string, options ...string) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(strings.Join(append([]string{dsn}, options...), "&"))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
