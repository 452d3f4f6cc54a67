package shipped

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"
)

// pooled is a scenario of one process with a pool, which leaves nothing to chance: calls come like clockwork, in bursts
// with pauses between, and each takes as long as the others. Now and then the service stands still, or crashes.
func pooled(r *rand.Rand, kind sim.PoolKind) sim.Scenario {
	// Odd nanoseconds keep moments apart.
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) | 1 }
	one := func(n int) bool { return r.IntN(n) == 0 }
	p := sim.Pool{On: true, Kind: kind, RoundTrips: 1 + r.IntN(3), Handshake: sim.Distribution{Mean: between(0, 30*ms)}}
	if !one(4) {
		p.Size = 1 + r.IntN(12)
	}
	switch r.IntN(4) {
	case 0:
		p.Idle = -1
	case 1:
		p.Idle = 1 + r.IntN(6)
	}
	if one(2) {
		p.IdleFor = between(500*ms, 4*time.Second)
	}
	service := sim.Service{Name: "api", Time: sim.Distribution{Mean: between(5*ms, 150*ms)}}
	const last = 20 * time.Second
	for at := between(ms, 5*time.Second); at < last; at += between(6*time.Second, 12*time.Second) {
		f := sim.Fault{Kind: sim.Stall, At: at, For: between(100*ms, 3*time.Second)}
		if kind == sim.HTTP && one(3) {
			f.Kind = sim.Crash
		}
		service.Faults = append(service.Faults, f)
	}
	a := sim.Arrivals{Kind: sim.Constant, Rate: 5 + 100*r.Float64(), Ramp: []sim.RampPoint{{At: 0, Factor: 1}}}
	for at, factor := between(ms, 4*time.Second), 0.0; at < last; at, factor = at+between(ms, 4*time.Second), 1-factor {
		a.Ramp = append(a.Ramp, sim.RampPoint{At: at, Factor: 1 - factor}, sim.RampPoint{At: at, Factor: factor})
	}
	end := a.Ramp[len(a.Ramp)-1].Factor
	a.Ramp = append(a.Ramp, sim.RampPoint{At: last, Factor: end}, sim.RampPoint{At: last, Factor: 0})
	return sim.Scenario{
		Horizon: 2 * time.Minute, Step: time.Second, Services: []sim.Service{service},
		Fleets: []sim.Fleet{{
			Name: "process", Calls: "api", Arrivals: a, AttemptTimeout: between(50*ms, 2*time.Second),
			Network: sim.Network{Latency: sim.Distribution{Mean: between(ms, 20*ms)}, Pool: p},
		}},
	}
}

// poolFigures are what has to be the same.
type poolFigures struct {
	Succeeded, TimedOut, Failed int64 // calls
	Dials, DialsFailed          int64
	Waits                       int64
	Waited, Mean, Longest       time.Duration
	Broken                      int64
}

func figuresOfPool(r sim.Result) poolFigures {
	t, c := r.Totals, r.Connections
	return poolFigures{t.Succeeded, t.AttemptsTimedOut, t.AttemptsFailed, c.Dials, c.Failed, c.Waits, c.Waited, r.Latency.Mean, r.Latency.Max, c.Broken}
}

// same reports whether two are the same, but for the nanosecond to which the moments of calls are rounded.
func (f poolFigures) same(other poolFigures) bool {
	near := func(a *time.Duration, b time.Duration, n int64) {
		if d := *a - b; -n <= int64(d) && int64(d) <= n {
			*a = b
		}
	}
	near(&f.Waited, other.Waited, f.Waits)
	near(&f.Mean, other.Mean, 2)
	near(&f.Longest, other.Longest, 1)
	return f == other
}

// A backend is the real service, in virtual time.
type backend struct {
	s       *sim.Scenario
	clock   func() time.Duration
	server  *server
	latency time.Duration

	mu sync.Mutex // guards f
	f  poolFigures
}

func (b *backend) count(change func(*poolFigures)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.f)
}

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
var errReset = fmt.Errorf("read: %w", syscall.ECONNRESET)

// crash returns the number of crashes up to now, whether the service is down, and when it crashes next.
func (b *backend) crash(now time.Duration) (before int, down bool, next time.Duration) {
	next = -1
	for _, f := range b.s.Services[0].Faults {
		switch {
		case f.Kind != sim.Crash:
		case f.At <= now:
			before++
			down = down || now < f.At+f.For
		case next < 0:
			next = f.At
		}
	}
	return before, down, next
}

// dial takes the time of a connection. It returns how often the service had crashed when it accepted it.
func (b *backend) dial(ctx context.Context) (epoch int, err error) {
	b.count(func(f *poolFigures) { f.Dials++ })
	defer func() {
		if err != nil {
			b.count(func(f *poolFigures) { f.DialsFailed++ })
		}
	}()
	if err := sleep(ctx, b.latency); err != nil {
		return 0, err
	}
	epoch, down, next := b.crash(b.clock())
	p := &b.s.Fleets[0].Network.Pool
	if down {
		if err := sleep(ctx, b.latency); err != nil {
			return 0, err
		}
		return 0, errRefused
	}
	rest := b.latency + 2*b.latency*time.Duration(p.RoundTrips-1) + p.Handshake.Mean
	if next >= 0 && next < b.clock()+rest-b.latency { // else it is there before the news of the crash
		if err := sleep(ctx, next+b.latency-b.clock()); err != nil {
			return 0, err
		}
		return 0, errRefused
	}
	return epoch, sleep(ctx, rest)
}

// serve takes the time of a request over a connection of that epoch.
func (b *backend) serve(ctx context.Context, epoch int) error {
	if err := sleep(ctx, b.latency); err != nil {
		return err
	}
	now := b.clock()
	before, _, next := b.crash(now)
	end := b.server.finish(now, b.s.Services[0].Time.Mean)
	switch {
	case before != epoch:
		end = now
	case next >= 0 && next < end:
		end = next
	default:
		return sleep(ctx, end+b.latency-now)
	}
	if err := sleep(ctx, end+b.latency-now); err != nil {
		return err
	}
	return errReset
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clockwork are the moments of constant arrivals, whose clock stands still where the ramp is 0, and else is 1. It ends at 0.
func clockwork(a *sim.Arrivals) (all []time.Duration) {
	n, before := 1, 0.0 // seconds that the clock has gone
	for i := 1; i < len(a.Ramp); i++ {
		from, to := a.Ramp[i-1], a.Ramp[i]
		if from.Factor == 0 {
			continue
		}
		for ; float64(n)/a.Rate < before+(to.At-from.At).Seconds(); n++ {
			all = append(all, from.At+time.Duration((float64(n)/a.Rate-before)*float64(time.Second)))
		}
		before += (to.At - from.At).Seconds()
	}
	return all
}

// A client makes calls over a real pool. got is called when the call has a connection.
type client interface {
	call(ctx context.Context, got func()) error
	close()
}

// fly plays the scenario with a real pool.
func flyPool(s *sim.Scenario, open func(*backend) client) poolFigures {
	start := time.Now()
	b := &backend{s: s, clock: func() time.Duration { return time.Since(start) }, latency: s.Fleets[0].Network.Latency.Mean}
	stalls := s.Services[0]
	stalls.Faults = nil
	for _, f := range s.Services[0].Faults {
		if f.Kind == sim.Stall {
			stalls.Faults = append(stalls.Faults, f)
		}
	}
	b.server = &server{def: &stalls}
	c := open(b)
	var calls sync.WaitGroup
	var took time.Duration
	for _, at := range clockwork(&s.Fleets[0].Arrivals) {
		time.Sleep(at - b.clock())
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), s.Fleets[0].AttemptTimeout)
			defer cancel()
			began := b.clock()
			with := time.Duration(-1)
			err := c.call(ctx, func() { with = b.clock() })
			ended := b.clock()
			b.count(func(f *poolFigures) {
				if wait := with - began; wait != 0 {
					f.Waits++
					if with < 0 {
						wait = ended - began
					}
					f.Waited += wait
				}
				switch {
				case err == nil:
					f.Succeeded++
					took += ended - began
					f.Longest = max(f.Longest, ended-began)
				case ctx.Err() != nil:
					f.TimedOut++
				default:
					f.Failed++
				}
				if err != nil && with >= 0 {
					f.Broken++
				}
			})
		})
	}
	calls.Wait()
	time.Sleep(s.Horizon - b.clock()) // connections may still be dialled, for calls that have ended
	b.mu.Lock()
	defer c.close()
	defer b.mu.Unlock()
	if b.f.Succeeded > 0 {
		b.f.Mean = took / time.Duration(b.f.Succeeded)
	}
	return b.f
}

// httpPool is net/http's.
type httpPool struct {
	b         *backend
	transport *http.Transport
	server    *http.Server
	accepted  chan net.Conn
	over      chan struct{}
	serving   sync.WaitGroup
}

type epochOf struct{}

// serverConn is a connection that ends with a crash if it carries no request then.
type serverConn struct {
	net.Conn
	epoch int
	mu    sync.Mutex
	busy  bool
}

func openHTTP(b *backend) client {
	p := &b.s.Fleets[0].Network.Pool
	c := &httpPool{b: b, accepted: make(chan net.Conn), over: make(chan struct{})}
	c.transport = &http.Transport{
		MaxConnsPerHost: p.Size, MaxIdleConnsPerHost: p.Idle, IdleConnTimeout: p.IdleFor, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			epoch, err := b.dial(ctx)
			if err != nil {
				return nil, err
			}
			here, there := net.Pipe()
			c.accepted <- &serverConn{Conn: there, epoch: epoch}
			return here, nil
		},
	}
	if p.Idle == 0 {
		c.transport.MaxIdleConnsPerHost = 1 << 20
	}
	c.server = &http.Server{
		Handler: c,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, epochOf{}, conn)
		},
	}
	c.serving.Go(func() { c.server.Serve(c) })
	return c
}

func (c *httpPool) Accept() (net.Conn, error) {
	select {
	case conn := <-c.accepted:
		if _, _, next := c.b.crash(c.b.clock()); next >= 0 {
			v := conn.(*serverConn)
			time.AfterFunc(next-c.b.clock(), func() {
				v.mu.Lock()
				defer v.mu.Unlock()
				if !v.busy {
					v.Close()
				}
			})
		}
		return conn, nil
	case <-c.over:
		return nil, net.ErrClosed
	}
}

func (c *httpPool) Addr() net.Addr { return &net.TCPAddr{} }
func (c *httpPool) Close() error   { return nil }

func (c *httpPool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := r.Context().Value(epochOf{}).(*serverConn)
	busy := func(is bool) {
		v.mu.Lock()
		v.busy = is
		v.mu.Unlock()
	}
	busy(true)
	defer busy(false)
	if err := c.b.serve(r.Context(), v.epoch); err != nil {
		panic(http.ErrAbortHandler)
	}
	if epoch, _, _ := c.b.crash(c.b.clock()); epoch != v.epoch { // the end of the connection comes behind the answer
		w.Header().Set("Connection", "close")
		c.b.count(func(f *poolFigures) { f.Broken++ })
	}
}

// call posts: net/http repeats a GET by itself when a connection that was used before breaks.
func (c *httpPool) call(ctx context.Context, got func()) error {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got() }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api/", nil)
	if err != nil {
		return err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func (c *httpPool) close() {
	c.transport.CloseIdleConnections()
	close(c.over)
	c.server.Close()
	c.serving.Wait()
}

// sqlPool is that of database/sql.
type sqlPool struct {
	b  *backend
	db *sql.DB
}

func openSQL(b *backend) client {
	p := &b.s.Fleets[0].Network.Pool
	c := &sqlPool{b: b}
	c.db = sql.OpenDB(c)
	c.db.SetMaxOpenConns(p.Size)
	c.db.SetMaxIdleConns(p.Idle)
	if p.Idle == 0 {
		c.db.SetMaxIdleConns(1 << 20)
	}
	c.db.SetConnMaxIdleTime(p.IdleFor)
	return c
}

func (c *sqlPool) Connect(ctx context.Context) (driver.Conn, error) {
	epoch, err := c.b.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &sqlConn{b: c.b, epoch: epoch}, nil
}

func (c *sqlPool) Driver() driver.Driver { return nil }

type gotKey struct{}

func (c *sqlPool) call(ctx context.Context, got func()) error {
	_, err := c.db.ExecContext(context.WithValue(ctx, gotKey{}, got), "")
	return err
}

func (c *sqlPool) close() { c.db.Close() }

// sqlConn is a connection that is of no use after a statement that was given up, as with most drivers.
type sqlConn struct {
	b      *backend
	epoch  int
	broken bool
}

func (c *sqlConn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	ctx.Value(gotKey{}).(func())()
	err := c.b.serve(ctx, c.epoch)
	c.broken = err != nil
	return driver.ResultNoRows, err
}

func (c *sqlConn) IsValid() bool                       { return !c.broken }
func (c *sqlConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *sqlConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c *sqlConn) Close() error                        { return nil }

// poolScripts is how many random scripts of a pool are played.
func poolScripts() int {
	if long {
		return 150
	}
	return 24
}

// simulatePool returns the figures of a simulated pool.
func simulatePool(t *testing.T, s sim.Scenario, seed uint64) poolFigures {
	t.Helper()
	r := must.Have(sim.Run(t.Context(), s, sim.None(), sim.Options{Seed: seed}))
	return figuresOfPool(r)
}

// realPool returns those of a real one.
func realPool(t *testing.T, s sim.Scenario, open func(*backend) client) (f poolFigures) {
	synctest.Test(t, func(*testing.T) { f = flyPool(&s, open) })
	return f
}

// net/http's pool and the simulated one are the same: dials, dials without a result, attempts that wait, for how long,
// and what becomes of them.
func TestPoolOfHTTP(t *testing.T) {
	t.Parallel()
	luck := seed.Rand(t)
	for n := range poolScripts() {
		s := pooled(luck, sim.HTTP)
		if got, real := simulatePool(t, s, 1), realPool(t, s, openHTTP); !got.same(real) {
			t.Errorf("%d: simulated\n%+v\nreal\n%+v\n%+v", n, got, real, s)
		}
	}
}

// database/sql's pool hands connections to whoever waits at random. Where that makes no difference it and the simulated one
// are the same; over all scripts of the lab, in which chance evens out, they differ by less than a twentieth.
func TestPoolOfSQL(t *testing.T) {
	t.Parallel()
	luck := seed.Rand(t)
	const seeds = 6
	sums := map[string][2]float64{}
	same := 0
scripts:
	for n := range poolScripts() {
		s := pooled(luck, sim.SQL)
		var all []poolFigures
		chance := false
		for seed := range uint64(seeds) {
			f := simulatePool(t, s, seed)
			f.Longest = 0 // by whom, is chance
			all = append(all, f)
			chance = chance || !f.same(all[0])
		}
		real := realPool(t, s, openSQL)
		real.Longest = 0
		for i, f := range append(all, real) {
			add := func(what string, v float64) {
				sum := sums[what]
				if i == seeds {
					sum[1] += v
				} else {
					sum[0] += v / seeds
				}
				sums[what] = sum
			}
			add("succeeded", float64(f.Succeeded))
			add("timed out", float64(f.TimedOut))
			add("dials", float64(f.Dials))
			add("dials that came to nothing", float64(f.DialsFailed))
			add("waits", float64(f.Waits))
			add("waited", f.Waited.Seconds())
		}
		if chance {
			continue
		}
		for range 3 { // what happens seldom may not be among the seeds
			if all[0].same(real) {
				same++
				continue scripts
			}
			real = realPool(t, s, openSQL)
			real.Longest = 0
		}
		t.Errorf("%d: simulated\n%+v\nreal\n%+v\n%+v", n, all[0], real, s)
	}
	t.Logf("%d of %d scripts have nothing to do with chance, and are the same; simulated and real: %v", same, poolScripts(), sums)
	for what, sum := range sums {
		if long && math.Abs(sum[0]-sum[1]) > 0.05*sum[1]+3 {
			t.Errorf("%s: %.4g simulated, %.4g real", what, sum[0], sum[1])
		}
	}
	if same < poolScripts()/4 {
		t.Errorf("only %d of %d scripts have nothing to do with chance", same, poolScripts())
	}
}
