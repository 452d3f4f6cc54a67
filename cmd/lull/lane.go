package main

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A lane is one client with the backend that serves nobody else, and what was
// counted on either side.
type lane struct {
	name    string
	backend *backend
	call    caller
	clock   func() time.Duration
	base    *http.Transport

	calls    sync.WaitGroup
	began    atomic.Int64
	troubles atomic.Int64
	good     buckets // calls by the time they ended
	bad      buckets

	mu    sync.Mutex
	ended []callRecord
}

// newLane starts the backend and connects the client to it.
func newLane(s setting, c client, clock func() time.Duration) (*lane, error) {
	b, err := startBackend(s, clock)
	if err != nil {
		return nil, err
	}
	l := &lane{name: c.name, backend: b, clock: clock, base: newTransport()}
	l.call, err = c.make(s, watch{base: l.base, troubles: &l.troubles}, b.url)
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// begin starts one call and returns at once.
func (l *lane) begin(ctx context.Context) {
	l.began.Add(1)
	start := l.clock()
	l.calls.Go(func() {
		ok := l.call(ctx)
		if ctx.Err() != nil && !ok {
			return // the demo ended it: nobody knows how it would have gone
		}
		end := l.clock()
		if ok {
			l.good.add(end)
		} else {
			l.bad.add(end)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = append(l.ended, callRecord{start: start, took: end - start, ok: ok})
	})
}

// figures of the calls up to end; the lane must have come to rest.
func (l *lane) figures(s setting, end time.Duration) figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return measure(s, end, l.name, int(l.began.Load()), l.ended, l.backend.attempts.copy())
}

// unfinished is the number of calls that the demo ended before they did.
func (l *lane) unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.began.Load()) - len(l.ended)
}

func (l *lane) close() {
	l.base.CloseIdleConnections()
	l.backend.close()
}
