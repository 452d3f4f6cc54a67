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

// runDemo shows a client without retries before and after a proxy, with a service that fails.
func runDemo(env cli.Env) error {
	ctx, stop := context.WithCancel(env.Context)
	defer stop()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(env.Stdout, format, args...) }
	var down atomic.Bool     // every request fails, not only every third
	var arrived atomic.Int64 // requests at the service
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := arrived.Add(1); down.Load() || n%3 == 0 {
			http.Error(w, "failed", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "an order\n")
	})}
	go service.Serve(l)
	defer service.Close()
	direct := "http://" + l.Addr().String()
	p, err := proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{"orders": {Listen: "127.0.0.1:0", To: []string{direct}}}}, proxy.Wiring{Drain: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := p.Listen(); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx) }()
	defer func() { stop(); <-served }()
	through := "http://" + p.Address("orders").String()

	client, get := demoClient()
	calls := func(how, url string) {
		before, answered := arrived.Load(), 0
		say("  %-18s  ", how)
		for i := 0; i < demoCalls && ctx.Err() == nil; i++ {
			mark := "x"
			if get(ctx, url) {
				mark = "."
				answered++
			}
			say("%s", mark)
			time.Sleep(demoPause)
		}
		say("  %d of %d answered, %d requests at the service\n", answered, demoCalls, arrived.Load()-before)
	}
	say("A service answers every third request with 503. The client is %s, which makes no retries.\n\n", client)
	calls("direct", direct)
	calls("through lull proxy", through)
	say("\nThe service is down: every request fails. Retries help nobody now.\n\n")
	down.Store(true)
	calls("direct", direct)
	calls("through lull proxy", through)
	say("\nThe service is up again. An open circuit lets a probe through after some seconds.\n\n")
	down.Store(false)
	for began := time.Now(); !get(ctx, through) && time.Since(began) < time.Minute && ctx.Err() == nil; {
		time.Sleep(4 * demoPause)
	}
	calls("through lull proxy", through)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Stdout, "\nThe same for your service: lull proxy --to https://api.example.com\n")
	return err
}

// demoClient returns a client that makes no retries: curl, or Go's net/http.
func demoClient() (name string, get func(ctx context.Context, url string) bool) {
	if path, err := exec.LookPath("curl"); err == nil {
		return "curl", func(ctx context.Context, url string) bool {
			return exec.CommandContext(ctx, path, "--fail", "--silent", "--noproxy", "*", "--output", "-", url).Run() == nil
		}
	}
	return "Go's net/http", func(_ context.Context, url string) bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}
