//go:build servers && unix

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/ports"
)

// TestMain is the program itself for the tests that send signals to it.
func TestMain(m *testing.M) {
	if path := os.Getenv("LULL_TEST_PROXY"); path != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(Program{File: path, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Replace: os.Getenv("LULL_TEST_REPLACE") != ""}.Run(ctx))
	}
	pace.Overlap(4)
	m.Run()
}

// A process is a proxy in a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	said   syncedBuffer
	ended  chan struct{}
	folder string
	file   string
}

type syncedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *syncedBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

// start starts a proxy with a file, and waits until it is ready. Its admin listener is a Unix socket in the folder.
func start(t *testing.T, folder, text string, change ...func(*exec.Cmd)) *process {
	t.Helper()
	p := &process{t: t, folder: folder, file: filepath.Join(folder, "proxy.yaml"), ended: make(chan struct{})}
	p.write(text)
	p.cmd = exec.Command(must.Have(os.Executable()))
	p.cmd.Env = append(os.Environ(), "LULL_TEST_PROXY="+p.file)
	p.cmd.Stderr, p.cmd.Stdout = &p.said, &p.said
	for _, c := range change {
		c(p.cmd)
	}
	must.Succeed(p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the proxy said:\n%s", &p.said)
		}
	})
	p.await("the doors to be open", func() bool { return strings.Contains(p.said.String(), "lull: open\n") })
	return p
}

func (p *process) write(text string) { must.Succeed(os.WriteFile(p.file, []byte(text), 0o600)) }

func (p *process) await(what string, is func() bool) {
	p.t.Helper()
	for until := time.Now().Add(pace.Stretch(20 * time.Second)); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			p.t.Fatalf("waited in vain for %s; it said:\n%s", what, &p.said)
		}
	}
}

func (p *process) says(text string) {
	p.t.Helper()
	p.await(text, func() bool { return strings.Contains(p.said.String(), text) })
}

// end waits for the end, and returns the exit code; -1: a signal has ended it.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(pace.Stretch(30 * time.Second)):
		p.t.Fatalf("it does not end; it said:\n%s", &p.said)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(s os.Signal) { must.Succeed(p.cmd.Process.Signal(s)) }

// admin makes a request of the admin listener, and returns the status and the text.
func (p *process) admin(method, path string) (int, string) {
	c := unixClient(filepath.Join(p.folder, "admin.sock"))
	defer c.CloseIdleConnections()
	resp, err := c.Do(must.Have(http.NewRequest(method, "http://localhost"+path, nil)))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

// An app counts requests, and holds those for /slow until it is released.
type app struct {
	*httptest.Server
	requests atomic.Int64
	slow     atomic.Int64 // that have arrived
	release  func()
}

func startApp(t *testing.T) *app {
	a := &app{}
	held := make(chan struct{})
	a.release = sync.OnceFunc(func() { close(held) })
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		if r.URL.Path == "/slow" {
			a.slow.Add(1)
			<-held
		}
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(func() { a.release(); a.Close() })
	return a
}

func freeAddress() string {
	var port int
	must.Succeed(ports.Free(&port))
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func fileFor(folder, listen, to, more string) string {
	if !strings.Contains(more, "log:") {
		more += "log: {to: none}\n"
	}
	return fmt.Sprintf("upstreams: {api: {listen: '%s', to: ['%s']}}\nadmin: {listen: unix:%s}\n%s", listen, to, filepath.Join(folder, "admin.sock"), more)
}

func get(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(text)), err
}

// fresh returns a client that opens a connection for each request.
func fresh() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

func TestSIGTERMEndsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	p := start(t, folder, fileFor(folder, address, a.URL, "drain: 1m\n"))
	if code, text := p.admin("GET", "/ready"); code != 200 {
		t.Errorf("ready: %d %s", code, text)
	}
	answer := make(chan string, 1)
	go func() { text, err := get(fresh(), "http://"+address+"/slow"); answer <- fmt.Sprint(text, err) }()
	p.await("the request to arrive", func() bool { return a.slow.Load() == 1 })
	p.signal(syscall.SIGTERM)
	p.says("draining")
	if code, text := p.admin("GET", "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("ready while it drains: %d %s", code, text)
	}
	if code, _ := p.admin("GET", "/health"); code != 200 {
		t.Errorf("health while it drains: %d", code)
	}
	if text, err := get(fresh(), "http://"+address+"/x"); text != "200 done" {
		t.Errorf("a client that does not know of the drain yet: %s, %v", text, err)
	}
	p.signal(syscall.SIGHUP) // which does not end it
	p.await("the door to be closed", func() bool { _, err := net.Dial("tcp", address); return errors.Is(err, syscall.ECONNREFUSED) })
	a.release()
	if got := <-answer; got != "200 done<nil>" {
		t.Errorf("the request in flight got %s", got)
	}
	if code := p.end(); code != exitDrained {
		t.Errorf("exit code %d", code)
	}
}

func TestTheDrainIsBounded(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	p := start(t, folder, fileFor(folder, address, a.URL, "drain: 200ms\n"))
	go func() { _, _ = get(fresh(), "http://"+address+"/slow") }()
	p.await("the request to arrive", func() bool { return a.slow.Load() == 1 })
	if code, text := p.admin("POST", "/drain"); code != http.StatusAccepted {
		t.Errorf("drain: %d %s", code, text)
	}
	if code := p.end(); code != exitFailed || !strings.Contains(p.said.String(), "api: requests were cut off after 200ms") {
		t.Errorf("exit code %d", code)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	p := start(t, folder, fileFor(folder, address, a.URL, "drain: 1h\n"))
	go func() { _, _ = get(fresh(), "http://"+address+"/slow") }()
	p.await("the request to arrive", func() bool { return a.slow.Load() == 1 })
	p.signal(syscall.SIGTERM)
	p.says("draining")
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != -1 {
		t.Errorf("exit code %d, want the end by the signal", code)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	a, folder, first, second := startApp(t), t.TempDir(), freeAddress(), freeAddress()
	p := start(t, folder, fileFor(folder, first, a.URL, ""))
	answers := func(address string) bool { text, _ := get(fresh(), "http://"+address+"/"); return text == "200 done" }

	p.write(strings.Replace(fileFor(folder, first, a.URL, ""), "listen: '", "listen: '9", 1))
	if code, text := p.admin("POST", "/reload"); code != http.StatusUnprocessableEntity || !strings.Contains(text, ":1:27: upstreams.api.listen is \"9") {
		t.Errorf("a wrong file: %d %s", code, text)
	}
	if !answers(first) || !strings.Contains(p.said.String(), "changes nothing") {
		t.Errorf("the wrong file has changed something; it said:\n%s", &p.said)
	}
	if code, text := p.admin("GET", "/ready"); code != 200 {
		t.Errorf("ready: %d %s", code, text)
	}

	p.write(fileFor(folder, second, a.URL, "drain: 2m\n"))
	p.signal(syscall.SIGHUP)
	p.says("proxy.yaml:3:8: drain needs a restart")
	if !answers(second) {
		t.Error("the new door does not answer")
	}
	p.await("the old door to be closed", func() bool { return !answers(first) })

	p.write(fileFor(folder, first, a.URL, "")) // and nobody says so
	p.await("the change to be noticed", func() bool { return answers(first) })
	if n := strings.Count(p.said.String(), "is in force"); n != 2 {
		t.Errorf("%d files came into force, want 2", n)
	}
}

// A restart as a new process beside the old one: nothing is refused, lost or sent twice.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SO_REUSEPORT shares connections on Linux alone")
	}
	a, address := startApp(t), freeAddress()
	var sent atomic.Int64
	var clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	load := func(c *http.Client) {
		for ctx.Err() == nil {
			sent.Add(1)
			resp, err := c.Post("http://"+address+"/", "text/plain", strings.NewReader("x"))
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("%v %v", resp, err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	folder := t.TempDir()
	p := start(t, folder, fileFor(folder, address, a.URL, ""))
	for range 4 {
		clients.Go(func() { load(fresh()) })
		clients.Go(func() { load(&http.Client{Transport: &http.Transport{}}) })
	}
	for range 3 {
		p.await("some requests", func() bool { return a.requests.Load() > 100 })
		folder = t.TempDir()
		next := start(t, folder, fileFor(folder, address, a.URL, ""), func(c *exec.Cmd) { c.Env = append(c.Env, "LULL_TEST_REPLACE=1") })
		p.signal(syscall.SIGTERM)
		if code := p.end(); code != exitDrained {
			t.Errorf("exit code %d", code)
		}
		p = next
	}
	stop()
	clients.Wait()
	if sent.Load() != a.requests.Load() {
		t.Errorf("%d requests were sent, %d arrived", sent.Load(), a.requests.Load())
	}
}

// A second proxy at the same address, started by mistake, would get half of the requests.
func TestAnAddressInUseIsRefused(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	start(t, folder, fileFor(folder, address, a.URL, ""))
	folder = t.TempDir()
	file := filepath.Join(folder, "proxy.yaml")
	must.Succeed(os.WriteFile(file, []byte(fileFor(folder, address, a.URL, "")), 0o600))
	second := exec.CommandContext(t.Context(), must.Have(os.Executable()))
	second.Env = append(os.Environ(), "LULL_TEST_PROXY="+file)
	out, _ := second.CombinedOutput()
	if second.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), address+": ") || !strings.Contains(string(out), "--replace") {
		t.Errorf("exit code %d, it said:\n%s", second.ProcessState.ExitCode(), out)
	}
}

// The reader of the access log may end: requests go on.
func TestTheReaderOfTheLogEnds(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	reader, writer, err := os.Pipe()
	must.Succeed(err)
	p := start(t, folder, fileFor(folder, address, a.URL, "log: {to: stdout}\n"), func(c *exec.Cmd) { c.Stdout = writer })
	writer.Close()
	reader.Close()
	for range 20 {
		if got, err := get(fresh(), "http://"+address+"/"); err != nil || !strings.HasPrefix(got, "200 ") {
			t.Fatalf("%s, %v", got, err)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != exitDrained {
		t.Errorf("exit code %d", code)
	}
}

// When the proxy ends for good, a client that opens a connection is answered, or refused: none is taken and then dropped.
func TestNoConnectionIsDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	p := start(t, folder, fileFor(folder, address, a.URL, "drain: 2s\n"))
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				got, err := get(fresh(), "http://"+address+"/")
				if errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
				if err != nil || got != "200 done" {
					t.Errorf("%s, %v", got, err)
					return
				}
			}
		})
	}
	p.await("some requests", func() bool { return a.requests.Load() > 100 })
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != exitDrained {
		t.Errorf("exit code %d", code)
	}
	clients.Wait()
}

// A manager holds the sockets: what connects while no proxy runs waits for the next one.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	a, folder := startApp(t), t.TempDir()
	l := must.Have(net.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener)
	defer l.Close()
	socket := must.Have(l.File())
	defer socket.Close()
	given := func(c *exec.Cmd) {
		c.Args = []string{"/bin/sh", "-c", "LISTEN_PID=$$ exec " + c.Path}
		c.Path, c.ExtraFiles = "/bin/sh", []*os.File{socket, socket}
		c.Env = append(c.Env, "LISTEN_FDS=2", "LISTEN_FDNAMES=api:other")
	}
	text := fileFor(folder, freeAddress(), a.URL, "")
	p := start(t, folder, text, given)
	p.says("the socket other was given, and no door has that name")
	if got, err := get(fresh(), "http://"+l.Addr().String()+"/"); got != "200 done" {
		t.Errorf("got %s, %v", got, err)
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != exitDrained {
		t.Errorf("exit code %d", code)
	}
	answer := make(chan string, 1)
	c := must.Have(net.Dial("tcp", l.Addr().String())) // nobody runs
	go func() {
		fmt.Fprint(c, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		text, _ := io.ReadAll(c)
		answer <- string(text)
	}()
	start(t, folder, text, given)
	if got := <-answer; !strings.Contains(got, "200 OK") {
		t.Errorf("who waited got %q", got)
	}
}

func TestUnixSockets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "door.sock")
	l := must.Have(net.Listen("unix", path)).(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	if _, err := listenUnix(path); err == nil {
		t.Error("a socket was replaced at which somebody listens")
	}
	l.Close() // the file stays
	again, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if mode := must.Have(os.Stat(path)).Mode().Perm(); mode != 0o660 {
		t.Errorf("mode %o", mode)
	}
	plain := filepath.Join(folder, "file")
	must.Succeed(os.WriteFile(plain, []byte("mine"), 0o600))
	if _, err := listenUnix(plain); err == nil || string(must.Have(os.ReadFile(plain))) != "mine" {
		t.Errorf("a file was replaced: %v", err)
	}
}

func TestTheManagerIsTold(t *testing.T) {
	t.Parallel()
	a, folder := startApp(t), t.TempDir()
	l := must.Have(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"}))
	defer l.Close()
	told := func() string {
		b := make([]byte, 200)
		_ = l.SetReadDeadline(time.Now().Add(pace.Stretch(20 * time.Second)))
		n, err := l.Read(b)
		if err != nil {
			return err.Error()
		}
		first, _, _ := strings.Cut(string(b[:n]), "\n")
		return first
	}
	p := start(t, folder, fileFor(folder, "127.0.0.1:0", a.URL, ""), func(c *exec.Cmd) {
		c.Env = append(c.Env, "NOTIFY_SOCKET="+filepath.Join(folder, "notify"))
	})
	got := []string{told()}
	p.signal(syscall.SIGHUP)
	got = append(got, told(), told())
	p.signal(syscall.SIGTERM)
	got = append(got, told())
	if text := strings.Join(got, " "); text != "READY=1 RELOADING=1 READY=1 STOPPING=1" {
		t.Errorf("it was told %s", text)
	}
}

// logrotate moves the file away.
func TestTheAccessLogIsOpenedAgain(t *testing.T) {
	t.Parallel()
	a, folder, address := startApp(t), t.TempDir(), freeAddress()
	path := filepath.Join(folder, "access.log")
	p := start(t, folder, fileFor(folder, address, a.URL, "log: {to: "+path+"}\n"))
	has := func(file, text string) func() bool {
		return func() bool { data, _ := os.ReadFile(file); return strings.Contains(string(data), text) }
	}
	_, _ = get(fresh(), "http://"+address+"/first?secret=1")
	p.await("a line", has(path, `"path":"/first"`))
	must.Succeed(os.Rename(path, path+".1"))
	_, _ = get(fresh(), "http://"+address+"/other")
	p.await("a line", has(path, `"path":"/other"`))
	if has(path+".1", "secret")() || has(path+".1", "/other")() {
		t.Error("the old file has what it should not have")
	}
}

// The admin listener cannot be reached through a door, whatever the door allows.
func TestNoDoorLeadsToTheAdmin(t *testing.T) {
	t.Parallel()
	folder, address, admin := t.TempDir(), freeAddress(), freeAddress()
	start(t, folder, fmt.Sprintf("forward: {listen: '%s', hosts: ['*', '%s', 'localhost%s']}\nadmin: {listen: '%s'}\ndependencies: {x: }\n", address, admin, strings.TrimPrefix(admin, "127.0.0.1"), admin))
	if got, err := get(fresh(), "http://"+admin+"/health"); got != "200 healthy\n" {
		t.Fatalf("itself: %s, %v", got, err)
	}
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(must.Have(url.Parse("http://" + address)))}}
	for _, host := range []string{admin, strings.Replace(admin, "127.0.0.1", "localhost", 1), strings.Replace(admin, "127.0.0.1", "127.0.0.2", 1), strings.Replace(admin, "127.0.0.1", "0.0.0.0", 1)} {
		if got, err := get(through, "http://"+host+"/health"); err == nil && strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s", host, got)
		}
	}
}
