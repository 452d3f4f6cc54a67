package lull_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
)

// Rule 8: an operation that was accepted, and is then silent, is a probe beside which other calls
// pass. Only its own call can accept it.
func TestRule08AcceptedStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		accept  bool
		inside  bool // another call, made within the attempt, is accepted
		want    breaker.CircuitState
	}{
		{"in a context of its own", time.Minute, true, false, breaker.Closed},
		{"without timeouts", lull.NoTimeout, true, false, breaker.Closed},
		{"not accepted", time.Minute, false, false, breaker.Open},
		{"another call is accepted", time.Minute, true, true, breaker.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lull.Policy{AttemptTimeout: c.timeout, Deadline: c.timeout}
				p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1, ProbeTimeout: 5 * time.Second}
				d := newDependency(t, p)
				other := newDependency(t, p)
				_ = lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) }, lull.Once())
				time.Sleep(d.Breaker().RetryAt(d.Now()) - d.Now())
				done := make(chan struct{})
				d.Drive(t.Context(), engine.Spec{Stream: true}, func(ctx context.Context) lull.Verdict {
					switch {
					case c.inside:
						_ = lull.Run(ctx, other, func(ctx context.Context) error { driver.Accepted(ctx); return nil })
					case c.accept:
						driver.Accepted(ctx)
					}
					time.Sleep(5 * time.Second)
					if s := d.Breaker().State(d.Now()); s != c.want {
						t.Errorf("%v after the timeout of probes, want %v", s, c.want)
					}
					close(done)
					return lull.Verdict{Kind: lull.KindSuccess}
				}, nil, nil)
				<-done
			})
		})
	}
}
