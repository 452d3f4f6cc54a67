package lullgrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/admission"
)

// admitted is a server with admission control, and what connects to it.
func admitted(t *testing.T, e *echo, c admission.Config, observe func(admission.Event), trust ...lullgrpc.ServerOption) (g *admission.Gate, connect func(...grpc.DialOption) *grpc.ClientConn) {
	t.Helper()
	a := must.Have(admission.New(c, admission.WithObserver(observe), admission.WithRand(seed.Source(t))))
	g = admission.NewGate(a)
	return g, served(t, e, grpc.UnaryInterceptor(lullgrpc.AdmitUnary(g, trust...)), grpc.StreamInterceptor(lullgrpc.AdmitStream(g, trust...)))
}

// A refused call learns when to come back, the second time not to. lull's client obeys, and a call
// that is let in gives its place back.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{
			unary: func(_ context.Context, _ int, in string) (string, error) {
				time.Sleep(8 * time.Second)
				return in, nil
			},
			stream: func(grpc.ServerStream, int) error { time.Sleep(8 * time.Second); return nil },
		}
		var refused []admission.Event
		g, connect := admitted(t, e, admission.Config{Limit: 1, MaxWait: -1}, func(e admission.Event) {
			if e.Decision.Outcome == admission.Refused {
				refused = append(refused, e)
			}
		})
		cc := connect(newClient(t, quick(), idempotent()).DialOptions()...)
		first := make(chan error)
		go func() {
			_, err := call(t.Context(), cc, "first")
			first <- err
		}()
		time.Sleep(time.Second)
		if s := g.Snapshot(); s.InFlight != 1 {
			t.Errorf("%d in flight, want the first", s.InFlight)
		}
		_, err := call(t.Context(), cc, "second")
		if status.Code(err) != codes.Unavailable || !errors.Is(err, lull.ErrOverloaded) || len(refused) != 2 || refused[0].Decision.DontRetry || !refused[1].Decision.DontRetry {
			t.Errorf("%v after refusals %+v", err, refused)
		}
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod)
		if err == nil {
			err = receiveErr(t, cs)
		}
		if status.Code(err) != codes.Unavailable || len(refused) != 4 {
			t.Errorf("a stream: %v after %d refusals", err, len(refused))
		}
		if err := <-first; err != nil {
			t.Errorf("the first call: %v", err)
		}
		if s := g.Snapshot(); s.InFlight != 0 || s.Departed(admission.Done) != 1 {
			t.Errorf("afterwards: %+v", s)
		}
		if cs, err = cc.NewStream(t.Context(), bidiStreams, bidiMethod); err != nil {
			t.Fatal(err)
		}
		receiveEOF(t, cs)
		synctest.Wait()
		if s := g.Snapshot(); s.InFlight != 0 || s.Departed(admission.Unmeasured) != 1 {
			t.Errorf("after a stream: %+v", s)
		}
	})
}

// The claims of a request reach the controller, as far as they are believed. Malformed ones are
// ignored.
func TestWhatAdmissionKnowsOfARequest(t *testing.T) {
	everybody := lullgrpc.WithTrust(lullgrpc.TrustEverybody)
	nobody := lullgrpc.WithTrust(lullgrpc.TrustNobody)
	for _, c := range []struct {
		md       []string
		trust    lullgrpc.ServerOption
		class    admission.AttemptKind
		priority admission.Priority
	}{
		{nil, nil, admission.First, admission.Critical},
		{[]string{"grpc-previous-rpc-attempts", "1"}, nil, admission.Retry, admission.Critical},
		{[]string{"grpc-previous-rpc-attempts", "1", "lull-hedge", "?1"}, nil, admission.Hedge, admission.Critical},
		{[]string{"lull-hedge", "no"}, nil, admission.First, admission.Critical},
		{[]string{"lull-criticality", "critical-plus"}, nil, admission.First, admission.Critical},
		{[]string{"lull-criticality", "sheddable"}, everybody, admission.First, admission.Sheddable},
		{[]string{"lull-criticality", "critical-plus", "grpc-previous-rpc-attempts", "1"}, everybody, admission.Retry, admission.CriticalPlus},
		{[]string{"lull-criticality", "nonsense"}, everybody, admission.First, admission.Critical},
		{[]string{"lull-criticality", "critical-plus", "grpc-previous-rpc-attempts", "1", "lull-hedge", "?1"}, nobody, admission.First, admission.Critical},
	} {
		synctest.Test(t, func(t *testing.T) {
			var events []admission.Event
			_, connect := admitted(t, &echo{unary: func(context.Context, int, string) (string, error) { return "", nil }}, admission.Config{}, func(e admission.Event) {
				events = append(events, e)
			}, c.trust)
			cc := connect(grpc.WithDisableRetry())
			_, err := call(metadata.AppendToOutgoingContext(t.Context(), c.md...), cc, "")
			if err != nil || len(events) == 0 || events[0].Class != c.class || events[0].Priority != c.priority {
				t.Errorf("%q: %v, %+v", c.md, err, events)
			}
		})
	}
}

// A caller that goes while its call waits is not served.
func TestACallerThatHasGoneIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(_ context.Context, _ int, in string) (string, error) {
			time.Sleep(50 * time.Millisecond)
			return in, nil
		}}
		g, connect := admitted(t, e, admission.Config{Limit: 1, MaxWait: time.Second}, nil)
		cc := connect(grpc.WithDisableRetry())
		go call(t.Context(), cc, "first")
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		// Its time ends at one moment for both: either may report it first.
		if _, err := call(ctx, cc, "second"); status.Code(err) != codes.DeadlineExceeded && status.Code(err) != codes.Unavailable {
			t.Errorf("the second: %v", err)
		}
		time.Sleep(time.Second)
		if n := e.count(); n != 1 {
			t.Errorf("%d calls were worked on", n)
		}
		if s := g.Snapshot(); s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}
