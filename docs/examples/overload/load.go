package main

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
)

const (
	patience = 300 * time.Millisecond // with an attempt
	tries    = 3                      // of a naive client
	warmUp   = 2 * time.Second        // in which the queue fills, or the limit is found
)

// figures of one part.
type figures struct {
	goodput, ofCapacity float64
	p50, p99            time.Duration
	attempts            float64 // for each call
}

// counting is a transport that counts attempts.
type counting struct {
	http.RoundTripper
	n atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// A network is where the server listens, and how it is dialled.
type network struct {
	listen func() (net.Listener, error)
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

func loopback() network {
	return network{func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }, (&net.Dialer{}).DialContext}
}

// fly makes calls to a server for the time in the setting.
func fly(s setting, n network, admitted, obeying bool) (f figures, err error) {
	defer must.Catch(&err)
	b := newServer()
	defer b.end()
	var handler http.Handler = b
	if admitted {
		handler = must.Have(admission.NewMiddleware(admission.Config{})).Handler(b)
	}
	listener := must.Have(n.listen())
	hs := &http.Server{Handler: stamped(handler)}
	defer hs.Close()
	go hs.Serve(listener)
	url := "http://" + listener.Addr().String() + "/"

	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext, base.MaxIdleConns, base.MaxIdleConnsPerHost = n.dial, 0, 10_000
	defer base.CloseIdleConnections()
	counted := &counting{RoundTripper: base}
	luck := rand.New(s.draws)
	call := naive(&http.Client{Transport: counted, Timeout: patience}, url, luck)
	if obeying {
		policy := lull.Policy{AttemptTimeout: patience, Deadline: 5 * time.Second}
		client := must.Have(lullhttp.NewClient(policy, lullhttp.WithBase(counted), lullhttp.With(lull.WithRand(s.draws))))
		call = func(ctx context.Context) bool { return get(ctx, client, url, 1) }
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	var made, succeeded atomic.Int64
	start := time.Now()
	at := time.Duration(0)
	measuring := false
	for ; at < warmUp+s.duration; at += time.Duration(luck.ExpFloat64() * float64(time.Second) / (s.times * capacity)) {
		if !measuring && at >= warmUp {
			measuring = true
			b.restart()
			made.Store(0)
			succeeded.Store(0)
			counted.n.Store(0)
		}
		time.Sleep(time.Until(start.Add(at)))
		made.Add(1)
		calls.Go(func() {
			if call(ctx) {
				succeeded.Add(1)
			}
		})
	}
	// As many calls are under way now as were when the measuring began.
	seconds := time.Since(start.Add(warmUp)).Seconds()
	took, perItem := b.measured()
	took = slices.Sorted(slices.Values(took))
	f.goodput = float64(succeeded.Load()) / seconds
	f.ofCapacity = f.goodput / (workers / perItem.Seconds())
	f.p50, f.p99 = percentile(took, 0.5), percentile(took, 0.99)
	f.attempts = float64(counted.n.Load()) / float64(made.Load())
	return f, nil
}

// naive is a client that repeats whatever fails, after a short pause.
func naive(client *http.Client, url string, luck *rand.Rand) func(context.Context) bool {
	return func(ctx context.Context) bool {
		for n := 1; ; n++ {
			if get(ctx, client, url, n) {
				return true
			}
			if n == tries || ctx.Err() != nil {
				return false
			}
			time.Sleep(time.Duration(luck.Int64N(int64(100 * time.Millisecond))))
		}
	}
}

// get reports whether an attempt succeeds.
func get(ctx context.Context, client *http.Client, url string, attempt int) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	if attempt > 1 {
		r.Header["X-Stainless-Retry-Count"] = []string{string(rune('0' + attempt - 1))}
	}
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// percentile is the least of the sorted values that the share p does not exceed.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
