package lullgrpc_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

const ms = time.Millisecond

// hedging sends up to n attempts, 10 ms apart, without a limit on the share of hedged calls.
func hedging(n int) lull.Policy {
	return lull.Policy{
		Hedge:   hedge.Config{Attempts: n, Delay: 10 * ms, Share: -1},
		Budget:  budget.Config{Unlimited: true},
		Breaker: breaker.Config{Off: true},
	}
}

// least draws the least value of every range.
func least() lullgrpc.Option { return lullgrpc.With(lull.WithRand(func() uint64 { return 0 })) }

// answered is a server's answer to one attempt: a delay, which is cut short if the client goes
// away, a status and maybe a pushback.
type errorWithID struct {
	after    time.Duration
	code     codes.Code
	pushback string
}

// inTurn answers attempts in the order in which they come. It records the number of each, and
// counts those whose client went away first.
type inTurn struct {
	echo
	begun []time.Duration // since the first
	start time.Time
	gone  atomic.Int64
}

func newInTurn(answers ...errorWithID) *inTurn {
	s := new(inTurn)
	s.unary = func(ctx context.Context, call int, _ string) (string, error) {
		s.mu.Lock()
		if s.start.IsZero() {
			s.start = time.Now()
		}
		s.begun = append(s.begun, time.Since(s.start))
		s.mu.Unlock()
		if call >= len(answers) {
			return "", fails(codes.FailedPrecondition)
		}
		a := answers[call]
		select {
		case <-time.After(a.after):
		case <-ctx.Done():
			s.gone.Add(1)
			return "", ctx.Err()
		}
		if a.pushback != "" {
			return "", pushback(ctx, a.code, a.pushback)
		}
		if a.code != codes.OK {
			return "", fails(a.code)
		}
		return "answer " + strconv.Itoa(call+1), nil
	}
	return s
}

// starts returns when attempts reached the server.
func (s *inTurn) starts() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.begun)
}

// Hedging as gRFC A6 has it, over a server: codes, pushbacks, and which attempts the server is told of. Package engine has the rest.
func TestHedging(t *testing.T) {
	const never = time.Hour
	is := idempotent()
	for _, c := range []struct {
		name    string
		policy  lull.Policy
		answers []errorWithID
		want    string // an answer, or a code
		took    time.Duration
		begun   []time.Duration // when each attempt reached the server
		gone    int64           // attempts whose end the server learnt of
		opts    []lullgrpc.Option
		call    []grpc.CallOption
	}{
		{name: "the hedge is quicker, and the first is cancelled", policy: hedging(2), answers: []errorWithID{{after: never}, {after: 5 * ms}},
			want: "answer 2", took: 15 * ms, begun: []time.Duration{0, 10 * ms}, gone: 1},
		{name: "the first is quicker, and the hedge is cancelled", policy: hedging(2), answers: []errorWithID{{after: 30 * ms}, {after: never}},
			want: "answer 1", took: 30 * ms, begun: []time.Duration{0, 10 * ms}, gone: 1},
		{name: "a fast NOT_FOUND is the answer", policy: hedging(2), answers: []errorWithID{{after: never}, {after: ms, code: codes.NotFound}},
			want: "NotFound", took: 11 * ms, begun: []time.Duration{0, 10 * ms}, gone: 1},
		{name: "five", policy: hedging(5), answers: []errorWithID{{after: never}, {after: never}, {after: never}, {after: never}, {after: 5 * ms}},
			want: "answer 5", took: 45 * ms, begun: []time.Duration{0, 10 * ms, 20 * ms, 30 * ms, 40 * ms}, gone: 4},
		// gRFC A6: the next hedge in n ms, later ones at n + hedgingDelay.
		{name: "a pushback delays", policy: hedging(3), answers: []errorWithID{{after: 5 * ms, code: codes.Unavailable, pushback: "50"}, {after: never}, {after: ms}},
			want: "answer 3", took: 66 * ms, begun: []time.Duration{0, 55 * ms, 65 * ms}, gone: 1},
		{name: "a pushback delays beside an attempt in flight", policy: hedging(3), answers: []errorWithID{{after: never}, {after: ms, code: codes.Unavailable, pushback: "50"}, {after: ms}},
			want: "answer 3", took: 62 * ms, begun: []time.Duration{0, 10 * ms, 61 * ms}, gone: 1},
		{name: "a pushback of no time sends the next at once", policy: hedging(2), answers: []errorWithID{{after: ms, code: codes.Unavailable, pushback: "0"}, {after: ms}},
			want: "answer 2", took: 2 * ms, begun: []time.Duration{0, ms}},
		{name: "a pushback forbids", policy: hedging(3), answers: []errorWithID{{after: ms, code: codes.Unavailable, pushback: "-1"}},
			want: "Unavailable", took: ms, begun: []time.Duration{0}},
		{name: "a pushback forbids hedges, and ends none", policy: hedging(3), answers: []errorWithID{{after: 50 * ms}, {after: ms, code: codes.Unavailable, pushback: "-1"}},
			want: "answer 1", took: 50 * ms, begun: []time.Duration{0, 10 * ms}},
		{name: "RESOURCE_EXHAUSTED sends none at once", policy: hedging(2), answers: []errorWithID{{after: ms, code: codes.ResourceExhausted, pushback: "2000"}, {after: ms}},
			want: "answer 2", took: 2002 * ms, begun: []time.Duration{0, 2001 * ms}},
		{name: "not idempotent, as far as anybody knows", policy: hedging(2), answers: []errorWithID{{after: 100 * ms}}, opts: []lullgrpc.Option{},
			want: "answer 1", took: 100 * ms, begun: []time.Duration{0}},
		{name: "and after a failure", policy: hedging(2), answers: []errorWithID{{after: 100 * ms, code: codes.Unavailable}}, opts: []lullgrpc.Option{},
			want: "Unavailable", took: 100 * ms, begun: []time.Duration{0}},
		{name: "not idempotent, the call says", policy: hedging(2), answers: []errorWithID{{after: 100 * ms}}, call: []grpc.CallOption{lullgrpc.NotIdempotent()},
			want: "answer 1", took: 100 * ms, begun: []time.Duration{0}},
		{name: "idempotent, the call says", policy: hedging(2), answers: []errorWithID{{after: never}, {after: 5 * ms}}, opts: []lullgrpc.Option{}, call: []grpc.CallOption{lullgrpc.Idempotent()},
			want: "answer 2", took: 15 * ms, begun: []time.Duration{0, 10 * ms}, gone: 1},
		{name: "the deadline is for all attempts", policy: func() lull.Policy { p := hedging(3); p.Deadline = 35 * ms; return p }(), answers: []errorWithID{{after: never}, {after: never}, {after: never}},
			want: "DeadlineExceeded", took: 35 * ms, begun: []time.Duration{0, 10 * ms, 20 * ms}, gone: 3},
	} {
		run(t, c.name, func(t *testing.T) {
			s := newInTurn(c.answers...)
			opts := c.opts
			if opts == nil {
				opts = []lullgrpc.Option{is}
			}
			cc := inMemory(t, &s.echo, c.policy, append(opts, least())...)
			start := time.Now()
			got, err := call(t.Context(), cc, "", c.call...)
			took := time.Since(start)
			synctest.Wait()
			if err != nil {
				got = status.Code(err).String()
			}
			if got != c.want || took != c.took {
				t.Errorf("%q (%v) after %v, want %q after %v", got, err, took, c.want, c.took)
			}
			check.Slices(t, s.starts(), c.begun, "attempts at")
			for i, n := range s.attempts() { // the attempts that were started before
				check.Equal(t, n, strings.TrimPrefix(strconv.Itoa(i), "0"), "what attempt %d says of those before", i+1)
			}
			check.Equal(t, s.gone.Load(), c.gone, "ends of attempts that the server was told of")
		})
	}
}

// The results of an attempt reach the caller from the one that counts, and from no other.
func TestAHedgedCallHasOneAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		delays []time.Duration
		codes  []codes.Code
		winner string
	}{
		{"the hedge", []time.Duration{time.Hour, 5 * ms}, []codes.Code{0, 0}, "1"},
		{"the first", []time.Duration{20 * ms, time.Hour}, []codes.Code{0, 0}, "0"},
		{"the hedge, which fails", []time.Duration{time.Hour, 5 * ms}, []codes.Code{0, codes.NotFound}, "1"},
		{"the first, which fails last", []time.Duration{20 * ms, 5 * ms}, []codes.Code{codes.Unavailable, codes.Unavailable}, "0"},
	} {
		run(t, c.name, func(t *testing.T) {
			e := &echo{unary: func(ctx context.Context, call int, _ string) (string, error) {
				n := strconv.Itoa(call)
				grpc.SendHeader(ctx, metadata.Pairs("from", n))
				grpc.SetTrailer(ctx, metadata.Pairs("by", n))
				select {
				case <-time.After(c.delays[call]):
				case <-ctx.Done():
				}
				if c.codes[call] != codes.OK {
					return "", fails(c.codes[call])
				}
				return n, nil
			}}
			cc := inMemory(t, e, hedging(2), idempotent())
			header, trailer := metadata.Pairs("from", "before"), metadata.Pairs("by", "before")
			var header2 metadata.MD
			var from peer.Peer
			told := 0
			reply := wrapperspb.String("what was there before")
			err := cc.Invoke(t.Context(), unaryMethod, wrapperspb.String(""), reply,
				grpc.Header(&header), grpc.Header(&header2), grpc.Trailer(&trailer), grpc.Peer(&from), grpc.OnFinish(func(error) { told++ }))
			code := c.codes[c.winner[0]-'0']
			if status.Code(err) != code || err == nil && reply.Value != c.winner {
				t.Errorf("%q, %v", reply.Value, err)
			}
			want := []string{c.winner}
			if !slices.Equal(header["from"], want) || !slices.Equal(header2["from"], want) || !slices.Equal(trailer["by"], want) {
				t.Errorf("header %v and %v, trailer %v; want those of attempt %s", header, header2, trailer, c.winner)
			}
			if from.Addr == nil || from.Addr.Network() != "bufconn" {
				t.Errorf("peer %v", from.Addr)
			}
			check.Equal(t, told, 1, "calls of OnFinish")
		})
	}
}

// slots makes a unary call through the interceptor alone, with a stub for each of
// its attempts.
func slots(t *testing.T, p lull.Policy, req, reply any, opts []grpc.CallOption, each ...grpc.UnaryInvoker) error {
	t.Helper()
	var n atomic.Int64
	stub := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		return each[n.Add(1)-1](ctx, method, req, reply, cc, opts...)
	}
	return newClient(t, p, idempotent()).UnaryClientInterceptor()(t.Context(), unaryMethod, req, reply, nil, stub, opts...)
}

// writesLate puts a text into the reply, and returns err, when its context has ended.
func writesLate(text string, err error) grpc.UnaryInvoker {
	return func(ctx context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		<-ctx.Done()
		proto.Merge(reply.(proto.Message), wrapperspb.String(text))
		return err
	}
}

func writes(text string, err error) grpc.UnaryInvoker {
	return func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		proto.Merge(reply.(proto.Message), wrapperspb.String(text))
		return err
	}
}

func TestALosersReplyIsNeverSeen(t *testing.T) {
	for _, c := range []struct {
		name  string
		first error
		hedge error
		want  string
	}{
		{"two answers", nil, nil, "hedge"},
		{"half an answer", fails(codes.Unavailable), nil, "hedge"},
		{"half an answer, and an empty one", fails(codes.Unavailable), nil, ""},
		{"an answer after the end", nil, fails(codes.NotFound), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			reply := new(wrapperspb.StringValue)
			err := slots(t, hedging(2), wrapperspb.String(""), reply, nil, writesLate("first", c.first), writes(c.want, c.hedge))
			if status.Code(err) != status.Code(c.hedge) || reply.Value != c.want {
				t.Errorf("%s: %q, %v; want %q", c.name, reply.Value, err, c.want)
			}
		})
	}
	// A hedge that answers after the call writes nothing to the caller's memory.
	synctest.Test(t, func(t *testing.T) {
		reply := new(wrapperspb.StringValue)
		first := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			time.Sleep(20 * ms)
			reply.(*wrapperspb.StringValue).Value = "first"
			return nil
		}
		var loser proto.Message
		hedge := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			loser = reply.(proto.Message)
			return writesLate("hedge", nil)(ctx, method, req, reply, cc, opts...)
		}
		must.Succeed(slots(t, hedging(2), wrapperspb.String(""), reply, nil, first, hedge))
		synctest.Wait()
		if reply.Value != "first" || proto.Message(reply) == loser {
			t.Errorf("answer %q", reply.Value)
		}
	})
}

// When the call has returned, the caller may change its request and its slice of options, however
// long losers take (run under -race).
func TestTheRequestIsTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, reply := wrapperspb.String("as it was"), new(wrapperspb.StringValue)
		var header metadata.MD
		seen := make(chan string, 1)
		hedge := func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			<-ctx.Done()
			time.Sleep(ms) // the caller is at work by now
			defer func() { seen <- fmt.Sprint(req.(*wrapperspb.StringValue).Value, ", ", len(opts), " options") }()
			for _, o := range opts {
				if h, ok := o.(grpc.HeaderCallOption); ok {
					*h.HeaderAddr = metadata.Pairs("from", "a loser")
				}
			}
			return ctx.Err()
		}
		first := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			time.Sleep(20 * ms)
			return nil
		}
		opts := []grpc.CallOption{grpc.WaitForReady(true), grpc.Header(&header)}
		must.Succeed(slots(t, hedging(2), req, reply, opts, first, hedge))
		req.Value, opts[0], header = "something else", nil, nil
		if got := <-seen; got != "as it was, 5 options" || header != nil {
			t.Errorf("the hedge saw %q, and the caller header %v", got, header)
		}
	})
}

// A call that was refused has no header, and leaves the caller's variables unchanged.
func TestARefusedCallLeavesTheCallersVariables(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	header, from := metadata.Pairs("from", "before"), peer.Peer{LocalAddr: &net.TCPAddr{}}
	cc := dialWith(t, "passthrough:///nobody", newClient(t, hedging(2), idempotent()).DialOptions()...)
	_, err := call(ctx, cc, "", grpc.Header(&header), grpc.Trailer(&header), grpc.Peer(&from))
	wantFailure(t, err, codes.Canceled, context.Canceled, 0)
	if header == nil || from.LocalAddr == nil {
		t.Errorf("header %v, peer %v", header, from)
	}
}

// An attempt that was never sent is repeated although the call is not idempotent, one attempt after
// the other. An attempt without a connection has no peer.
func TestAHedgedCallThatWasNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := unused()
		for _, idempotent := range []grpc.CallOption{lullgrpc.NotIdempotent(), lullgrpc.Idempotent()} {
			var ev events
			p := hedging(2)
			p.Backoff = backoff.Schedule{Base: ms, Jitter: backoff.None}
			cc := dial(t, nobody, p, ev.watch())
			from := peer.Peer{LocalAddr: &net.TCPAddr{}}
			_, err := call(t.Context(), cc, "", idempotent, grpc.Peer(&from))
			wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 2)
			waits := 1
			if idempotent == lullgrpc.Idempotent() {
				waits = 0
				if from.LocalAddr == nil || from.Addr != nil {
					t.Errorf("peer %+v of a call that was never sent", from)
				}
			}
			check.Equal(t, len(ev.waits()), waits, "waits, of %v", ev.waits())
		}
	})
}

func TestHedgedLegacyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := &legacy{Value: "before"}
		hedge := func(_ context.Context, _ string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			reply.(*legacy).Value = req.(*legacy).Value + " back"
			return nil
		}
		late := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := slots(t, hedging(2), &legacy{Value: "there and"}, reply, nil, late, hedge); err != nil || reply.Value != "there and back" {
			t.Errorf("%q, %v", reply.Value, err)
		}
	})
}

// Calls with messages that cannot be copied have one attempt at a time.
func TestWhatIsNoMessageIsNotHedged(t *testing.T) {
	text := wrapperspb.String("")
	for _, c := range []struct{ req, reply any }{{"a text", text}, {text, new(string)}, {nil, nil}, {text, (*wrapperspb.StringValue)(nil)}} {
		synctest.Test(t, func(t *testing.T) {
			fast := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
			slow := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				time.Sleep(time.Second)
				return fails(codes.Unavailable)
			}
			start := time.Now()
			check.Equal(t, slots(t, hedging(2), c.req, c.reply, nil, slow, fast), nil, "%T, %T", c.req, c.reply)
			if took := time.Since(start); took < time.Second {
				t.Errorf("%T, %T: hedged, after %v", c.req, c.reply, took)
			}
		})
	}
}

// Under a policy that hedges, streams are retried as often as the policy hedges, one attempt after
// the other.
func TestStreamsAreNotHedged(t *testing.T) {
	e := &echo{stream: steps(
		func(ss grpc.ServerStream) error {
			time.Sleep(time.Second)
			return fails(codes.Unavailable)
		},
		func(ss grpc.ServerStream) error {
			time.Sleep(time.Second)
			return answer(ss, "at last")
		},
	)}
	inBubble(t, serverStreams, e, hedging(2), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		start := time.Now()
		send(t, cs, "go")
		receive(t, cs, "at last")
		receiveEOF(t, cs)
		if took := time.Since(start); took < 2*time.Second || e.count() != 2 {
			t.Errorf("%d attempts in %v", e.count(), took)
		}
	})
}

func TestEventsOfHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ev events
		s := newInTurn(errorWithID{after: time.Hour}, errorWithID{after: ms, code: codes.Unavailable}, errorWithID{after: ms})
		cc := inMemory(t, &s.echo, hedging(3), idempotent(), ev.watch())
		must.Have(call(t.Context(), cc, ""))
		failed, started, ended := ev.of(event.AttemptFailed), ev.of(event.HedgeStarted), ev.of(event.CallEnded)
		if len(started) != 2 || len(failed) != 1 || status.Code(failed[0].Err) != codes.Unavailable || failed[0].Attempt != 2 {
			t.Errorf("hedges %+v, failures %+v", started, failed)
		}
		if len(ended) != 1 || ended[0].Attempt != 3 || ended[0].Reason != engine.Success || ended[0].Operation != unaryMethod {
			t.Errorf("end %+v", ended)
		}
	})
}

// A throttle of gRPC's kind stops hedges as it stops retries (gRFC A6).
func TestTheThrottleBoundsHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := parsed(t, `{"methodConfig":[{"name":[{}],"hedgingPolicy":
			{"maxAttempts":2,"hedgingDelay":"0.01s","nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":4,"tokenRatio":1}}`)
		bad, slow := errorWithID{code: codes.Unavailable}, errorWithID{after: 50 * ms}
		s := newInTurn(bad, bad, slow, slow, slow)
		p := lull.Policy{Breaker: breaker.Config{Off: true}}
		cc := inMemory(t, &s.echo, p, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 2)
		// Two failures have left 2 of 4 tokens, which is not more than half. The next
		// success makes them 3, which is.
		for _, want := range []int{1, 2} {
			before := s.count()
			if _, err := call(t.Context(), cc, ""); err != nil || s.count()-before != want {
				t.Errorf("%d attempts, %v; want %d", s.count()-before, err, want)
			}
		}
	})
}

// Only codes that a hedgingPolicy lists are followed by another attempt. Any other code ends the
// call if no attempt is in flight.
func TestAHedgingPolicyDecides(t *testing.T) {
	for _, c := range []struct {
		list string
		code codes.Code
		want string
		took time.Duration
	}{
		{`["UNAVAILABLE"]`, codes.Unavailable, "answer 2", 6 * ms},
		{`["unavailable", 10]`, codes.Aborted, "answer 2", 6 * ms},
		{`["INTERNAL"]`, codes.Internal, "answer 2", 6 * ms},
		{`["NOT_FOUND"]`, codes.NotFound, "answer 2", 6 * ms},
		{`["NOT_FOUND"]`, codes.Unavailable, "Unavailable", 5 * ms},
		{`[]`, codes.Unavailable, "Unavailable", 5 * ms},
		{`null`, codes.ResourceExhausted, "ResourceExhausted", 5 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			sc := parsed(t, `{"methodConfig":[{"name":[{"service":"lull.test.Echo"}],"hedgingPolicy":
				{"maxAttempts":2,"hedgingDelay":"0.01s","nonFatalStatusCodes":`+c.list+`}}]}`)
			s := newInTurn(errorWithID{after: 5 * ms, code: c.code}, errorWithID{after: ms})
			p := lull.Policy{Attempts: 7, Breaker: breaker.Config{Off: true}} // the config overrules it
			cc := inMemory(t, &s.echo, p, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
			start := time.Now()
			got, err := call(t.Context(), cc, "")
			if err != nil {
				got = status.Code(err).String()
			}
			if took := time.Since(start); got != c.want || took != c.took {
				t.Errorf("%v after %s: %q after %v, want %q after %v", c.list, c.code, got, took, c.want, c.took)
			}
		})
	}
	// No hedgingDelay: all are sent at once.
	synctest.Test(t, func(t *testing.T) {
		sc := parsed(t, `{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":9}}]}`)
		s := newInTurn(slices.Repeat([]errorWithID{{after: 5 * ms}}, 5)...)
		p := lull.Policy{Budget: budget.Config{Stock: 10}}
		cc := inMemory(t, &s.echo, p, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
		_, err := call(t.Context(), cc, "")
		if got := s.starts(); err != nil || !slices.Equal(got, make([]time.Duration, 5)) {
			t.Errorf("attempts at %v, %v; want five at once", got, err)
		}
	})
}
