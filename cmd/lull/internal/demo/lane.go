package demo

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A lane is one client, the backend that serves it alone, and the counts of both.
type lane struct {
	name    string
	backend *backend
	call    caller
	clock   func() time.Duration
	base    *http.Transport

	calls      sync.WaitGroup
	dialErrors atomic.Int64

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
	l.call, err = c.make(s, countingTransport{base: base, dialErrors: &l.dialErrors}, l.backend.url)
	return err
}

// begin starts one call and returns at once.
func (l *lane) begin(ctx context.Context) {
	start := l.clock()
	l.count(begun, start)
	tally := &requestTally{lane: l}
	ctx = context.WithValue(ctx, tallyKey{}, tally)
	l.calls.Go(func() {
		ok := l.call(ctx)
		if ctx.Err() != nil && !ok {
			return // the demo ended it: its result is not known
		}
		end := l.clock()
		if ok {
			l.count(succeeded, end)
		} else {
			l.count(bad, end)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = append(l.ended, callRecord{start: start, took: end - start, ok: ok, sent: int(tally.sent.Load())})
	})
}

func (l *lane) count(what kind, at time.Duration) { l.backend.counts.add(what, at) }

// unfinished returns the number of calls that the demo ended.
func (l *lane) unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return total(l.backend.counts.copy()[begun]) - len(l.ended)
}

func (l *lane) close() {
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
	l.backend.close()
}
