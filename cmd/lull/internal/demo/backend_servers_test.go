//go:build servers

package demo

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// eventually waits until other goroutines have made something true. It asserts no speed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// visitors send requests over real sockets and count the answers by status.
type visitors struct {
	client *http.Client
	url    string
	wg     sync.WaitGroup
	ok     atomic.Int64
	busy   atomic.Int64
	lost   atomic.Int64
}

func (v *visitors) send(ctx context.Context, n int) {
	for range n {
		v.wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.url, nil)
			resp, err := v.client.Do(req)
			if err != nil {
				v.lost.Add(1)
				return
			}
			resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusOK:
				v.ok.Add(1)
			case http.StatusServiceUnavailable:
				v.busy.Add(1)
			}
		})
	}
}

func realBackend(t *testing.T, s setting) (*backend, *visitors) {
	t.Helper()
	start := time.Now()
	b, err := startBackend(s, func() time.Duration { return time.Since(start) })
	if err != nil {
		t.Fatal(err)
	}
	transport := newTransport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		b.close()
	})
	return b, &visitors{client: &http.Client{Transport: transport}, url: b.url}
}

func TestBackendQueueIsBounded(t *testing.T) {
	s := tenSeconds()
	s.Queue, s.Capacity = 5, 2000
	b, v := realBackend(t, s)
	b.gate.close()
	v.send(t.Context(), workers)
	eventually(t, "every worker has a request", func() bool { return total(b.attempts.copy()) == workers && len(b.queue) == 0 })
	v.send(t.Context(), s.Queue)
	eventually(t, "the queue is full", func() bool { return len(b.queue) == s.Queue })
	v.send(t.Context(), 7)
	eventually(t, "the others are sent away", func() bool { return v.busy.Load() == 7 })
	if v.ok.Load() != 0 {
		t.Errorf("%d answers from a frozen backend", v.ok.Load())
	}
	b.gate.open()
	v.wg.Wait()
	if v.ok.Load() != int64(workers+s.Queue) || v.busy.Load() != 7 || v.lost.Load() != 0 {
		t.Errorf("%d served, %d sent away, %d lost; want %d, 7, 0", v.ok.Load(), v.busy.Load(), v.lost.Load(), workers+s.Queue)
	}
	if n := total(b.attempts.copy()); n != workers+s.Queue+7 {
		t.Errorf("%d requests counted, want %d", n, workers+s.Queue+7)
	}
}

func TestBackendServesWhoHasGone(t *testing.T) {
	s := tenSeconds()
	s.Capacity = 2000
	b, v := realBackend(t, s)
	b.gate.close()
	ctx, hangUp := context.WithCancel(t.Context())
	const callers = workers + 20
	v.send(ctx, callers)
	eventually(t, "all are there", func() bool { return total(b.attempts.copy()) == callers && len(b.queue) == callers-workers })
	hangUp()
	v.wg.Wait()
	eventually(t, "the backend has noticed", func() bool { return b.left.Load() == callers })
	b.gate.open()
	// A worker counts what it has served before it counts it as wasted.
	eventually(t, "all are served, in vain", func() bool { return b.served.Load() == callers && b.wasted.Load() == callers })
	if v.lost.Load() != callers {
		t.Errorf("%d of %d callers hung up; want all", v.lost.Load(), callers)
	}
}

func TestBackendAnswers503WhileDown(t *testing.T) {
	s := tenSeconds()
	s.Kind, s.Capacity = errors503, 2000
	b, v := realBackend(t, s)
	b.gate.close()
	v.send(t.Context(), 10)
	v.wg.Wait()
	if v.busy.Load() != 10 {
		t.Errorf("%d of 10 were told 503", v.busy.Load())
	}
	b.gate.open()
	v.send(t.Context(), 10)
	v.wg.Wait()
	if v.ok.Load() != 10 || total(b.attempts.copy()) != 20 {
		t.Errorf("%d of 10 served when it is up, %d of 20 counted", v.ok.Load(), total(b.attempts.copy()))
	}
}
