package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// Calls of all four kinds from many goroutines, with interceptors before and after lull's
// on both sides. Servers are stopped and started in the middle. Every answer belongs to its
// request, every call ends once, the reported attempts are those that were made, and nothing is
// left over. Under -race the interceptors assume, like others, that a stream has one caller.
func TestRestarts(t *testing.T) {
	for _, hedged := range []bool{false, true} {
		t.Run(fmt.Sprintf("hedged %v", hedged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { new(restarts).run(t, hedged) })
		})
	}
}

const (
	restartWorkers = 8
	restartCalls   = 50 // of each worker
	restartTimes   = 6
)

// restarts records all calls, by their number.
type restarts struct {
	mu    sync.Mutex
	calls map[int]*restartCall
	done  atomic.Int64
	bad   []string
}

// restartCall is the plan of a call, and what has happened to it.
type restartCall struct {
	kind     string
	fate     string // of each attempt in turn: see handle; later ones succeed
	begun    int    // attempts, as an interceptor after lull's has counted
	handled  []int  // the numbers of those that the server has begun with
	ended    int    // how many ends observers received
	reported int    // attempts, as observers received them
	finished int    // how often OnFinish was called
}

func (r *restarts) with(n int, f func(*restartCall)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.calls[n])
}

func (r *restarts) wrong(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

type restartKey struct{}

// Observe receives the ends of calls.
func (r *restarts) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		r.with(ctx.Value(restartKey{}).(int), func(c *restartCall) { c.ended, c.reported = c.ended+1, e.Attempt })
	}
}

// noting is a stream of an interceptor that counts its calls, without a lock.
type noting struct {
	grpc.ClientStream
	calls int
}

func (s *noting) note() { s.calls++ }

func (s *noting) SendMsg(m any) error {
	defer s.note()
	return s.ClientStream.SendMsg(m)
}

func (s *noting) RecvMsg(m any) error {
	defer s.note()
	return s.ClientStream.RecvMsg(m)
}

func (s *noting) CloseSend() error {
	defer s.note()
	return s.ClientStream.CloseSend()
}

func (s *noting) Header() (metadata.MD, error) {
	defer s.note()
	return s.ClientStream.Header()
}

// notingUnary and notingStream are the interceptors that count so. Those after lull's
// count attempts.
func (r *restarts) notingUnary(inner bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		before := fmt.Sprint(req)
		if inner {
			r.with(ctx.Value(restartKey{}).(int), func(c *restartCall) { c.begun++ })
		}
		err := invoker(ctx, method, req, reply, cc, opts...)
		if after := fmt.Sprint(req); after != before {
			r.wrong("a request was %s and is %s", before, after)
		}
		return err
	}
}

func (r *restarts) notingStream(inner bool) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		n := ctx.Value(restartKey{}).(int)
		both := false
		r.with(n, func(c *restartCall) {
			if both = c.kind == "bidi, two goroutines"; inner {
				c.begun++
			}
		})
		cs, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil || both {
			return cs, err
		}
		return &noting{ClientStream: cs}, nil
	}
}

// recoverUnary and recoverStream are the server's interceptors: a panic becomes INTERNAL.
func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
	defer recovered(&err)
	return h(ctx, req)
}

func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return h(srv, ss)
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = status.Error(codes.Internal, fmt.Sprint(p))
	}
}

// begin returns the number of the call, and the fate of this attempt.
func (r *restarts) begin(ctx context.Context) (n int, fate byte) {
	md, _ := metadata.FromIncomingContext(ctx)
	n, _ = strconv.Atoi(md["number"][0])
	attempt := lullgrpc.AttemptNumber(ctx) - 1
	fate = 'w'
	r.with(n, func(c *restartCall) {
		c.handled = append(c.handled, attempt)
		if attempt < len(c.fate) {
			fate = c.fate[attempt]
		}
	})
	grpc.SetTrailer(ctx, metadata.Pairs("number", md["number"][0]))
	if fate == 'h' {
		grpc.SendHeader(ctx, metadata.Pairs("number", md["number"][0]))
	}
	return n, fate
}

// handle makes an attempt succeed (w), be unavailable at once (u), in the middle (m), or after a
// header (h), be slow (s), or panic (p).
func (r *restarts) handle(ctx context.Context, fate byte) error {
	switch fate {
	case 'u', 'h':
		return fails(codes.Unavailable)
	case 'p':
		panic("as scripted")
	case 's':
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fails(codes.Unavailable)
		}
	}
	return nil
}

func (r *restarts) unary(ctx context.Context, _ int, in string) (string, error) {
	n, fate := r.begin(ctx)
	if in != strconv.Itoa(n) {
		return "", status.Errorf(codes.DataLoss, "call %d says that it is %s", n, in)
	}
	if fate == 'm' {
		fate = 'u'
	}
	return "answer " + in, r.handle(ctx, fate)
}

// stream expects "n:0", "n:1" and so on, in this order, and answers according to its kind.
func (r *restarts) stream(ss grpc.ServerStream, _ int) error {
	n, fate := r.begin(ss.Context())
	if err := r.handle(ss.Context(), fate); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(ss)
	for i := 0; ; i++ {
		m := nilString()
		err := ss.RecvMsg(m)
		switch {
		case err == io.EOF:
			if method == clientMethod {
				return answer(ss, fmt.Sprintf("answer %d of %d", n, i))
			}
			return nil
		case err != nil:
			return err
		case m.Value != fmt.Sprintf("%d:%d", n, i):
			return status.Errorf(codes.DataLoss, "call %d: message %d is %q", n, i, m.Value)
		case fate == 'm' && i == 0:
			return fails(codes.Unavailable)
		}
		switch method {
		case serverMethod:
			for k := range 5 {
				if err := answer(ss, fmt.Sprintf("answer %d: %d", n, k)); err != nil {
					return err
				}
			}
		case bidiMethod:
			if err := answer(ss, "answer "+m.Value); err != nil {
				return err
			}
		}
	}
}

// call makes the call with that number, and returns its error if it may have one.
func (r *restarts) call(ctx context.Context, cc *grpc.ClientConn, n int, kind string, opts ...grpc.CallOption) (err error) {
	ctx = metadata.AppendToOutgoingContext(context.WithValue(ctx, restartKey{}, n), "number", strconv.Itoa(n))
	want := func(got, want string) {
		if got != want {
			r.wrong("call %d (%s): %q, want %q", n, kind, got, want)
		}
	}
	var trailer metadata.MD
	opts = append(opts, grpc.Trailer(&trailer), grpc.OnFinish(func(error) { r.with(n, func(c *restartCall) { c.finished++ }) }))
	defer func() {
		if err == nil {
			want(strings.Join(trailer["number"], ","), strconv.Itoa(n))
		}
	}()
	if kind == "unary" {
		out, err := call(ctx, cc, strconv.Itoa(n), opts...)
		if err == nil {
			want(out, fmt.Sprint("answer ", n))
		}
		return err
	}
	method, desc, messages := bidiMethod, bidiStreams, 4
	switch kind {
	case "server":
		method, desc, messages = serverMethod, serverStreams, 1
	case "client":
		method, desc = clientMethod, clientStreams
	}
	cs, err := cc.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return err
	}
	m := nilString() // filled again and again, as it may be
	send := func(i int) error {
		m.Value = fmt.Sprintf("%d:%d", n, i)
		return cs.SendMsg(m)
	}
	receive := func(text string) error {
		got := nilString()
		err := cs.RecvMsg(got)
		if err == nil {
			want(got.Value, text)
		}
		return err
	}
	end := func() error {
		got := nilString()
		err := cs.RecvMsg(got)
		if err == nil {
			r.wrong("call %d (%s): %q after the end", n, kind, got.Value)
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
	sendAll := func() {
		for i := range messages {
			if send(i) != nil {
				return // the receiver learns why
			}
		}
		cs.CloseSend()
	}
	switch kind {
	case "client":
		sendAll()
		return receive(fmt.Sprintf("answer %d of %d", n, messages))
	case "server":
		sendAll()
		for k := range 5 {
			if err := receive(fmt.Sprintf("answer %d: %d", n, k)); err != nil {
				return err
			}
		}
		return end()
	case "bidi":
		for i := range messages {
			if send(i) != nil {
				return end()
			}
			if err := receive(fmt.Sprintf("answer %d:%d", n, i)); err != nil {
				return err
			}
		}
		cs.CloseSend()
		return end()
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(sendAll)
	for i := range messages {
		if err := receive(fmt.Sprintf("answer %d:%d", n, i)); err != nil {
			return err
		}
	}
	return end()
}

func (r *restarts) run(t *testing.T, hedged bool) {
	random := rand.New(rand.NewPCG(seed.Fresh(t), 0))
	lis := memnet.Listen()
	addr := lis.Addr().String()
	stop := func(bool) {}
	start := func(lis net.Listener) {
		s := grpc.NewServer(
			grpc.ChainUnaryInterceptor(recoverUnary, lullgrpc.UnaryServerInterceptor(), recoverUnary),
			grpc.ChainStreamInterceptor(recoverStream, lullgrpc.StreamServerInterceptor(), recoverStream))
		s.RegisterService(echoDesc(), &echo{unary: r.unary, stream: r.stream})
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.Serve(lis)
		}()
		stop = func(gracefully bool) {
			if gracefully {
				s.GracefulStop()
			} else {
				s.Stop()
			}
			<-served
		}
	}
	start(lis)

	p := quick()
	p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
	p.Attempts, p.Backoff = 500, backoff.Schedule{Base: 5 * time.Millisecond, Cap: 50 * time.Millisecond}
	p.Limit.InFlight = 2 * restartWorkers
	if hedged {
		p.Attempts = 0
		p.Hedge.Attempts, p.Hedge.Delay, p.Hedge.Share = 5, 3*time.Millisecond, -1
	}
	client := newClient(t, p, idempotent(), lullgrpc.WithObserver(r))
	opts := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(r.notingUnary(false)), grpc.WithChainStreamInterceptor(r.notingStream(false)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second,
		}),
	}
	opts = append(append(opts, local...), client.DialOptions()...)
	opts = append(opts, grpc.WithChainUnaryInterceptor(r.notingUnary(true)), grpc.WithChainStreamInterceptor(r.notingStream(true)))
	var conns []*grpc.ClientConn
	for range 2 {
		cc := must.Have(grpc.NewClient(addr, opts...))
		conns = append(conns, cc)
	}

	kinds := []string{"unary", "unary", "server", "client", "bidi", "bidi, two goroutines"}
	r.calls = make(map[int]*restartCall)
	const total = restartWorkers * restartCalls
	gone := make(map[int]bool) // whose callers leave
	for n := range total {
		fate := make([]byte, random.IntN(4))
		for i := range fate {
			fate[i] = "uuumshp"[random.IntN(7)]
		}
		r.calls[n] = &restartCall{kind: kinds[random.IntN(len(kinds))], fate: string(fate)}
		gone[n] = random.IntN(20) == 0
	}
	results := make([]error, total)
	var workers sync.WaitGroup
	for w := range restartWorkers {
		workers.Go(func() {
			for i := range restartCalls {
				n := w*restartCalls + i
				ctx, cancel := context.WithCancel(context.Background())
				if gone[n] {
					time.AfterFunc(2*time.Millisecond, cancel)
				}
				results[n] = r.call(ctx, conns[n%2], n, r.calls[n].kind, grpc.WaitForReady(n%3 == 0))
				cancel()
				r.done.Add(1)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := 1; i <= restartTimes; i++ {
			for r.done.Load() < int64(i*total/(restartTimes+2)) {
				time.Sleep(time.Millisecond)
			}
			stop(i%2 == 0)
			time.Sleep(10 * time.Millisecond) // noPeer listens
			for {
				again, err := memnet.ListenOn(addr)
				if err == nil {
					start(again)
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		workers.Wait()
	}()
	<-over
	for _, cc := range conns {
		cc.Close()
	}
	stop(false)
	synctest.Wait() // the end of a stream may be noted after its caller has it
	// The bubble ends only without goroutines.
	check.Equal(t, client.Dependency(t.Context(), addr, unaryMethod).Limiter().InFlight(), 0, "places that are taken")
	r.judge(t, results, gone, hedged)
}

// judge compares what callers, interceptors, observers and the server know of each call.
func (r *restarts) judge(t *testing.T, results []error, gone map[int]bool, hedged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.bad {
		t.Error(text)
	}
	well, repeated, beside, unsure := 0, 0, 0, 0
	for n, err := range results {
		c := r.calls[n]
		if err == nil {
			well++
		}
		if c.begun > 1 {
			repeated++
		}
		what := fmt.Sprintf("call %d (%s, %q): %v, %+v", n, c.kind, c.fate, err, *c)
		if c.ended != 1 || c.finished != 1 {
			t.Errorf("%s: an end is told once", what)
		}
		if c.begun != c.reported && !(hedged && c.kind == "unary" && c.begun < c.reported) { // a hedge that is due when the call ends
			t.Errorf("%s: %d attempts were made", what, c.begun)
		}
		slices.Sort(c.handled)
		if len(slices.Compact(slices.Clone(c.handled))) != len(c.handled) || len(c.handled) > 0 && c.handled[len(c.handled)-1] >= c.reported {
			t.Errorf("%s: the server has seen attempts %v", what, c.handled)
		}
		if hedged && len(c.handled) > 1 && strings.Contains(c.fate, "s") {
			beside++
		}
		call, lulls := errors.AsType[*lull.Error](err)
		switch code := status.Code(err); {
		case err == nil && len(c.handled) > 0:
		case gone[n] && code == codes.Canceled:
		case code == codes.Internal && strings.Contains(c.fate, "p"):
		case code == codes.Unavailable && !lulls && c.kind != "unary": // after the commit
		case code == codes.Unavailable && hedged && lulls && call.Attempts == c.reported:
		case code == codes.Unavailable && hedged && strings.Contains(c.fate, "p"): // the panic ended it, beside another
		case code == codes.Unavailable && len(c.handled) < c.begun && unsure < len(results)/100:
			// It failed without a connection, and there was one again at the check. That happens
			// now and then, on a machine so busy that the check took as long as the connection's
			// backoff.
			unsure++
		default:
			t.Errorf("%s", what)
		}
	}
	t.Logf("%d of %d calls were answered, %d had several attempts, %d perhaps side by side", well, len(results), repeated, beside)
	if well < len(results)/10 || repeated < len(results)/10 { // on a busy machine the server is away for longer
		t.Errorf("%d of %d calls were answered, %d had several attempts: the test proves nothing", well, len(results), repeated)
	}
}
