// Command shown prints the table of docs/torture.md: the servers of package servers, and an nginx
// in front of the plain one if nginx is installed, each on 127.0.0.1.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lab/torture/probe"
	"github.com/lullgo/lull/lab/torture/probe/internal/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	serve := flag.String("serve", "", "serve lull, net/http or nginx until interrupted, and print the address")
	flag.Parse()
	must.Main("shown", 1, func() error { return run(ctx, *serve) })
}

func run(ctx context.Context, serve string) error {
	lull, plain := httptest.NewServer(must.Have(servers.Lull())), httptest.NewServer(servers.Plain())
	defer lull.Close()
	defer plain.Close()
	type shown struct{ name, url string }
	list := []shown{{"lull", lull.URL}, {"net/http", plain.URL}}
	if nginx, err := exec.LookPath("nginx"); err == nil {
		url, end := front(ctx, nginx, plain.Listener.Addr().String())
		defer end()
		list = append(list, shown{"nginx", url})
	}
	if serve != "" {
		i := slices.IndexFunc(list, func(s shown) bool { return s.name == serve })
		if i < 0 {
			return fmt.Errorf("there is no server %q", serve)
		}
		fmt.Println(list[i].url + servers.Orders)
		<-ctx.Done()
		return nil
	}
	var cards []*torture.Card
	for _, s := range list {
		card := must.Have(probe.Run(ctx, probe.Target{URL: s.url + servers.Orders, Post: servers.Payments, Slow: servers.Slow, Fail: servers.Fails}, probe.Options{}))
		card.Name = s.name
		cards = append(cards, card)
	}
	fmt.Print("| case |")
	for _, c := range cards {
		fmt.Printf(" %s |", c.Name)
	}
	fmt.Print("\n|---|" + strings.Repeat("---|", len(cards)))
	for i, r := range cards[0].Results {
		fmt.Printf("\n| %s |", r.Case)
		for _, c := range cards {
			fmt.Printf(" %s |", c.Results[i].Grade)
		}
	}
	fmt.Println()
	return nil
}

// front starts nginx with its limit of requests, in front of a server.
func front(ctx context.Context, nginx, behind string) (url string, end func()) {
	var port int
	must.Succeed(ports.Free(&port))
	address := fmt.Sprint("127.0.0.1:", port)
	folder := must.Have(os.MkdirTemp("", "lull-probe-"))
	text := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events {}
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  limit_req_zone $binary_remote_addr zone=all:1m rate=20r/s;
  limit_req_status 429;
  server {
    listen %[2]s;
    location / { proxy_pass http://%[3]s; proxy_http_version 1.1; }
    location = /orders { limit_req zone=all burst=10; proxy_pass http://%[3]s; proxy_http_version 1.1; }
  }
}
`, folder, address, behind)
	config := filepath.Join(folder, "nginx.conf")
	must.Succeed(os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.CommandContext(ctx, nginx, "-p", folder, "-c", config)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	server := must.Have(child.Start(cmd))
	end = func() {
		cmd.Process.Signal(os.Interrupt)
		<-server.Ended
		os.RemoveAll(folder)
	}
	err := server.Await(func() error {
		resp, err := http.Get("http://" + address + servers.Fails)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}, 50*time.Millisecond, 5*time.Second)
	if err != nil {
		end()
		must.Fail("nginx: %w", err)
	}
	return "http://" + address, end
}
