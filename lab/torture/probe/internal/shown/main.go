// Command shown prints the table of docs/torture.md: the servers of package servers, and an nginx
// in front of the plain one if nginx is installed, each on 127.0.0.1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lab/torture/probe"
	"github.com/lullgo/lull/lab/torture/probe/internal/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	serve := flag.String("serve", "", "serve lull, net/http or nginx until interrupted, and print the address")
	flag.Parse()
	if err := run(ctx, *serve); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, serve string) error {
	behind, err := servers.Lull()
	if err != nil {
		return err
	}
	lull, plain := httptest.NewServer(behind), httptest.NewServer(servers.Plain())
	defer lull.Close()
	defer plain.Close()
	type shown struct{ name, url string }
	list := []shown{{"lull", lull.URL}, {"net/http", plain.URL}}
	if nginx, err := exec.LookPath("nginx"); err == nil {
		address, end, err := front(ctx, nginx, plain.Listener.Addr().String())
		if err != nil {
			return err
		}
		defer end()
		list = append(list, shown{"nginx", "http://" + address})
	}
	if serve != "" {
		for _, s := range list {
			if s.name == serve {
				fmt.Println(s.url + servers.Orders)
				<-ctx.Done()
				return nil
			}
		}
		return fmt.Errorf("there is no server %q", serve)
	}
	var cards []*torture.Card
	for _, s := range list {
		card, err := probe.Run(ctx, probe.Target{URL: s.url + servers.Orders, Post: servers.Payments, Slow: servers.Slow, Fail: servers.Fails}, probe.Options{})
		if err != nil {
			return err
		}
		card.Name = s.name
		cards = append(cards, card)
	}
	fmt.Print("| case |")
	for _, c := range cards {
		fmt.Printf(" %s |", c.Name)
	}
	fmt.Print("\n|---|")
	for range cards {
		fmt.Print("---|")
	}
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
func front(ctx context.Context, nginx, behind string) (address string, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	l.Close()
	folder, err := os.MkdirTemp("", "lull-probe-")
	if err != nil {
		return "", nil, err
	}
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
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, nginx, "-p", folder, "-c", config)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		os.RemoveAll(folder)
	}
	for range 100 {
		resp, err := http.Get("http://" + address + servers.Fails)
		if err == nil {
			resp.Body.Close()
			return address, end, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	end()
	return "", nil, errors.New("nginx does not answer")
}
