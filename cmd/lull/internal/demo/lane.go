package demo

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
	begins   buckets // calls by the time they began
	good     buckets // calls by the time they ended
	bad      buckets
	extra    buckets // requests beyond the first of their call, by the time they were sent
	held     buckets // those that the client would have sent, but for its policy

	mu      sync.Mutex // guards what follows
	ended   []callRecord
	recents []recent
}

// newLane starts the backend and connects the client to it.
func newLane(s setting, c client, clock func() time.Duration) (*lane, error) {
	b, err := startBackend(s, clock)
	if err != nil {
		return nil, err
	}
	base := newTransport()
	l := &lane{name: c.name, backend: b, clock: clock, base: base}
	if err := l.connect(s, c, base); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// connect has the client send its requests through base.
func (l *lane) connect(s setting, c client, base http.RoundTripper) (err error) {
	l.call, err = c.make(s, watch{base: base, troubles: &l.troubles}, l.backend.url)
	return err
}

// begin starts one call and returns at once.
func (l *lane) begin(ctx context.Context) {
	l.began.Add(1)
	start := l.clock()
	l.begins.add(start)
	tally := &callTally{lane: l}
	ctx = context.WithValue(ctx, tallyKey{}, tally)
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
		l.ended = append(l.ended, callRecord{start: start, took: end - start, ok: ok, sent: int(tally.sent.Load())})
	})
}

// figures of the calls up to end; the lane must have come to rest.
func (l *lane) figures(s setting, end time.Duration) figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return measure(s, end, l.name, int(l.began.Load()), l.ended, l.backend.attempts.copy())
}

// tailFigures are figures of the other scenario.
func (l *lane) tailFigures(s setting, end time.Duration) tailFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return measureTail(s, end, l.name, total(l.backend.attempts.copy()), l.ended, l.flow())
}

func (l *lane) flow() flow { return flow{l.begins.copy(), l.extra.copy(), l.held.copy()} }

// unfinished is the number of calls that the demo ended before they did.
func (l *lane) unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.began.Load()) - len(l.ended)
}

func (l *lane) close() {
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
	l.backend.close()
}
