//go:build servers

package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Clients that send requests all the time, each on a connection that it keeps, lose none while the proxy drains: a request
// is answered, or its connection was refused before it was sent.
func TestDrainLosesNothing(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond) // requests are in flight at any time
		_, _ = io.WriteString(w, "ok")
	}))
	defer service.Close()
	p, err := New(Config{Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}}}, WithDrain(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Listen(); err != nil {
		t.Fatal(err)
	}
	url := "http://" + p.Address("service").String()
	ctx, drain := context.WithCancel(t.Context())
	defer drain()
	served := make(chan error)
	go func() { served <- p.Serve(ctx) }()
	var answered atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for {
				// A POST: net/http would send a GET again by itself.
				resp, err := client.Post(url, "text/plain", nil)
				if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				resp.Body.Close()
				if answered.Add(1) == 500 {
					drain()
				}
			}
		})
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	clients.Wait()
	t.Log(answered.Load(), "requests")
}
