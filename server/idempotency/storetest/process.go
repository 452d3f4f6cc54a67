package storetest

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/tail"
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
			child.KillSelf()
		}
	}
	store := o.Open(t, c.Place)
	config := idempotency.Config{Lease: c.Lease, Resume: c.Resume, Transactional: o.Transactional}
	m := must.Have(idempotency.New(steps{store, kill}, config, idempotency.WithScope(idempotency.SharedScope)))
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
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	answer := m.Wrap(http.HandlerFunc(handler))
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.ServeHTTP(w, r)
		kill(afterResponse)
	}))
	fmt.Printf("\n%s%s\n", ready, l.Addr())
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A server is one in a process of its own.
type server struct {
	*child.Child
	url string
	out tail.Tail
}

func startServer(t *testing.T, c childConfig) *server {
	t.Helper()
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.Command(must.Have(os.Executable()), "-test.run="+strings.Join(pattern, "/"), "-test.count=1", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), childEnv+"="+string(must.Have(json.Marshal(c))))
	p := &server{}
	cmd.Stdout, cmd.Stderr = &p.out, os.Stderr
	p.Child = must.Have(child.Start(cmd))
	t.Cleanup(p.Kill)
	err := p.Await(func() error {
		_, after, _ := strings.Cut(p.out.String()+"\n", ready)
		addr, _, ok := strings.Cut(after, "\n")
		if !ok {
			return errors.New("it prints no address")
		}
		p.url = "http://" + addr + "/effects"
		return nil
	}, 5*time.Millisecond, time.Minute)
	if err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, &p.out)
	}
	return p
}

// wait is for a server that kills itself.
func (p *server) wait(t *testing.T, killed bool) {
	t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(30 * time.Second):
		t.Errorf("the server has not ended by itself")
		p.Kill()
	}
	// A process that was killed by a signal has no exit code, except on Windows.
	if signalled := p.ProcessState.ExitCode() == -1; killed == p.ProcessState.Success() || killed && !signalled && runtime.GOOS != "windows" {
		t.Errorf("the server ended with %v, and printed %q", p.ProcessState, &p.out)
	}
}

// stop ends a server that is well.
func (p *server) stop(t *testing.T) {
	t.Helper()
	p.In.Close()
	p.wait(t, false)
}
