package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/server/proxy"
)

// demoCalls is how many calls each line of the demo makes, and demoPause the time between two.
const (
	demoCalls = 30
	demoPause = 50 * time.Millisecond
)

// A demo is a service that fails, a client without retries, and a proxy between them.
type demo struct {
	env     cli.Env
	down    atomic.Bool  // every request fails, not only every third
	arrived atomic.Int64 // requests at the service
	client  string       // what it is called
	get     func(ctx context.Context, url string) bool
}

func (d *demo) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if n := d.arrived.Add(1); d.down.Load() || n%3 == 0 {
		http.Error(w, "failed", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "an order\n")
}

// runDemo shows a client before and after the proxy.
func runDemo(env cli.Env) error {
	d := &demo{env: env}
	d.client, d.get = demoClient()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = service.Serve(l) }()
	defer service.Close()
	direct := "http://" + l.Addr().String()
	p, err := proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{"orders": {Listen: "127.0.0.1:0", To: []string{direct}}}}, proxy.Wiring{Drain: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := p.Listen(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(env.Context)
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx) }()
	defer func() { stop(); <-served }()
	through := "http://" + p.Address("orders").String()

	fmt.Fprintf(env.Stdout, "A service answers every third request with 503. The client is %s, which makes no retries.\n\n", d.client)
	d.calls("direct", direct)
	d.calls("through lull proxy", through)
	fmt.Fprint(env.Stdout, "\nThe service is down: every request fails. Retries help nobody now.\n\n")
	d.down.Store(true)
	d.calls("direct", direct)
	d.calls("through lull proxy", through)
	fmt.Fprint(env.Stdout, "\nThe service is up again. An open circuit lets a probe through after some seconds.\n\n")
	d.down.Store(false)
	for began := time.Now(); !d.get(ctx, through) && time.Since(began) < time.Minute && ctx.Err() == nil; {
		time.Sleep(4 * demoPause)
	}
	d.calls("through lull proxy", through)
	if err := context.Cause(env.Context); err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Stdout, "\nThe same for your service: lull proxy --to https://api.example.com\n")
	return err
}

// calls makes calls one after the other, and prints a mark for each: a dot for an answer, an x for a failure.
func (d *demo) calls(how, url string) {
	before, answered := d.arrived.Load(), 0
	fmt.Fprintf(d.env.Stdout, "  %-18s  ", how)
	for range demoCalls {
		if d.env.Context.Err() != nil {
			break
		}
		mark := "x"
		if d.get(d.env.Context, url) {
			mark = "."
			answered++
		}
		_, _ = io.WriteString(d.env.Stdout, mark)
		time.Sleep(demoPause)
	}
	fmt.Fprintf(d.env.Stdout, "  %d of %d answered, %d requests at the service\n", answered, demoCalls, d.arrived.Load()-before)
}

// demoClient returns a client that makes no retries: curl, Python's urllib or Go's net/http.
func demoClient() (name string, get func(context.Context, string) bool) {
	for _, program := range [][]string{
		{"curl", "--fail", "--silent", "--output", "-"},
		{"python3", "-c", "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"},
	} {
		path, err := exec.LookPath(program[0])
		if err != nil {
			continue
		}
		return program[0], func(ctx context.Context, url string) bool {
			c := exec.CommandContext(ctx, path, append(program[1:len(program):len(program)], url)...)
			c.Env = append(c.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
			return c.Run() == nil
		}
	}
	return "Go's net/http", func(ctx context.Context, url string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}
