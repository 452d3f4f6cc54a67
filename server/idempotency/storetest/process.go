package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

// childEnv is the variable that makes a process a server, and its value is which one.
const childEnv = "LULL_IDEMPOTENCY_STORETEST"

// ready is what a server prints before its address.
const ready = "storetest: listening on "

type childConfig struct {
	Place  string
	Dir    string // of files for effects
	Kill   point
	Resume bool
	Lease  time.Duration
}

// A point is a place between two steps of the protocol at which a server may be killed.
type point string

const (
	beforeClaim   point = "before claim"
	afterClaim    point = "after claim"
	beforeEffect  point = "before effect"
	afterEffect   point = "after effect"
	afterHandler  point = "after handler"
	afterComplete point = "after complete" // before the response is sent
	afterResponse point = "after response"
)

// steps is a store that calls its function `at` at each point.
type steps struct {
	idempotency.Store
	at func(point)
}

func (s steps) Claim(ctx context.Context, c idempotency.Claim) (idempotency.ClaimResult, error) {
	s.at(beforeClaim)
	a, err := s.Store.Claim(ctx, c)
	if err == nil && a.State == idempotency.Claimed {
		s.at(afterClaim)
	}
	return a, err
}

func (s steps) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	s.at(afterHandler)
	err := s.Store.Complete(ctx, key, token, record, retention)
	s.at(afterComplete)
	return err
}

func (s steps) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, bool) ([]byte, bool)) (idempotency.ClaimResult, error) {
	s.at(beforeClaim)
	a, err := s.Store.(idempotency.Transactor).Transact(ctx, c, func(ctx context.Context, resumed bool) ([]byte, bool) {
		s.at(afterClaim)
		record, keep := run(ctx, resumed)
		s.at(afterHandler)
		return record, keep
	})
	s.at(afterComplete)
	return a, err
}

// serveChild is a server, until its standard input ends or it kills itself.
func serveChild(t *testing.T, o Outliving, c childConfig) {
	kill := func(p point) {
		if p == c.Kill {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "storetest: cannot kill myself:", err)
				os.Exit(3)
			}
			select {} // until the signal is there
		}
	}
	store := o.Open(t, c.Place)
	m, err := idempotency.New(steps{store, kill}, idempotency.Config{
		Lease:         c.Lease,
		Resume:        c.Resume,
		Transactional: o.Transactional,
	}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		t.Fatal(err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		name, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kill(beforeEffect)
		outcome := "ran"
		a := idempotency.KeyedRequestFrom(r.Context())
		if a.Resumed {
			outcome = "resumed"
		}
		if c.Kill == "" {
			time.Sleep(50 * time.Millisecond) // for others to come meanwhile
		}
		if !a.Resumed || o.Effects(t, c.Place, string(name)) == 0 { // resumed: look first
			if err := o.Effect(r.Context(), store, string(name)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		kill(afterEffect)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, outcome)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer := m.Wrap(http.HandlerFunc(handler))
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.ServeHTTP(w, r)
		kill(afterResponse)
	}))
	fmt.Printf("\n%s%s\n", ready, l.Addr())
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// child is a server in a process of its own.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
	rest  chan string // what it printed on after it was ready
}

func startChild(t *testing.T, c childConfig) *child {
	t.Helper()
	env, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.Command(self, "-test.run="+strings.Join(pattern, "/"), "-test.count=1", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &child{cmd: cmd, stdin: stdin, rest: make(chan string, 1)}
	t.Cleanup(func() { cmd.Process.Kill() }) // nothing, if it has ended
	lines := bufio.NewScanner(stdout)
	var printed strings.Builder
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), ready); ok {
			p.url = "http://" + addr + "/effects"
			break
		}
		printed.WriteString(lines.Text() + "\n")
	}
	if p.url == "" {
		t.Fatalf("the server did not start: %v\n%s", cmd.Wait(), printed.String())
	}
	go func() {
		b, _ := io.ReadAll(stdout)
		p.rest <- string(b)
	}()
	return p
}

// wait is for a server that kills itself.
func (p *child) wait(t *testing.T, killed bool) {
	t.Helper()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Errorf("the server has not ended by itself")
			p.cmd.Process.Kill()
		}
	}()
	rest := <-p.rest
	err := p.cmd.Wait()
	// A process that was killed by a signal has no exit code, except on Windows.
	if signalled := p.cmd.ProcessState.ExitCode() == -1; killed != (err != nil) || killed && !signalled && runtime.GOOS != "windows" {
		t.Errorf("the server ended with %v, and printed %q", err, rest)
	}
}

// stop ends a server that is well.
func (p *child) stop(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	p.wait(t, false)
}
