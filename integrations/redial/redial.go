package redial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/sleep"
)

// DefaultMaxDials is how many dials a Group has in flight at most, if Config.MaxDials is zero.
const DefaultMaxDials = 4

// A Config configures a Group. Its zero value is the recommended one.
type Config struct {
	// Policy determines when a connection is dialled.
	Policy engine.RedialPolicy
	// MaxDials is the most dials in flight. Zero means DefaultMaxDials.
	MaxDials int
	// DownAfter is how long an outage lasts before Down is called. Zero: Down must be nil.
	DownAfter time.Duration
	// Down is called once for each outage that lasts for DownAfter: no connection has lasted since. It gets the time
	// since the outage began and the last failure, and runs on the goroutine of Keep.
	Down func(since time.Duration, last error)
}

// A Group has the connections of a process to one thing, and the dials in flight that they share.
// Its methods may be called concurrently.
type Group struct {
	d     *lull.Dependency
	plan  *engine.RedialPlan
	c     Config
	dials chan struct{} // holds one for each dial in flight
}

// New returns a group whose dials are calls to d.
func New(d *lull.Dependency, c Config) (*Group, error) {
	if d == nil {
		return nil, errors.New("redial: New: the dependency is nil: make one with lull.NewDependency")
	}
	plan, err := engine.NewRedialPlan(c.Policy)
	switch {
	case err != nil:
		return nil, fmt.Errorf("redial: New: Config.Policy: %w", err)
	case c.MaxDials < 0:
		return nil, fmt.Errorf("redial: New: Config.MaxDials is %d: want a positive number, or 0 for the default of %d", c.MaxDials, DefaultMaxDials)
	case c.DownAfter < 0:
		return nil, fmt.Errorf("redial: New: Config.DownAfter is %v: want a positive duration, or 0 for none", c.DownAfter)
	case (c.DownAfter > 0) != (c.Down != nil):
		return nil, errors.New("redial: New: Config.DownAfter and Config.Down go together: set both or neither")
	case c.MaxDials == 0:
		c.MaxDials = DefaultMaxDials
	}
	return &Group{d: d, plan: plan, c: c, dials: make(chan struct{}, c.MaxDials)}, nil
}

// Keep dials, calls use with the connection, and dials again when use returns, until ctx ends or
// a failure is permanent: one that the program has marked with lull.Permanent, or the refusal of a
// server ([Upgrade], a close code such as 1008) as long as no connection has lasted. Later refusals
// are dialled again like other failures. Keep returns the error that ended it: what ended ctx, or
// the permanent failure (of a dial, a [*lull.Error]).
//
// Dial gets a context that ends with the attempt's timeout; the connection must outlive it. Use
// gets ctx, owns the connection and closes it. It returns why the connection ended, nil if it does
// not know. Marks of package lull and [Drain] on that error decide about the next dial. A panic in
// either is not recovered.
func Keep[C any](ctx context.Context, g *Group, dial func(context.Context) (C, error), use func(context.Context, C) error) error {
	k := keeper{g: g, redial: g.plan.Redial()}
	wait := k.redial.Start(g.d.Now(), g.d.Rand())
	for {
		if err := k.sleep(ctx, wait); err != nil {
			return err
		}
		var conn C
		step, connected := k.dial(ctx, func(ctx context.Context) (err error) {
			conn, err = dial(ctx)
			return err
		})
		if connected {
			k.redial.Connected(g.d.Now())
			k.cause = use(ctx, conn)
			step = k.lost(ctx)
		}
		if step.Done {
			return k.end(ctx)
		}
		wait = step.Wait
	}
}

// keeper is one connection.
type keeper struct {
	g            *Group
	redial       engine.Redial
	cause        error // how the last dial or connection that there was ended
	last         error // the last failure: cause, or the error of the call
	downReported bool  // Down was called for this outage
}

// dial makes one dial, when there is room, and reports whether it succeeded. Its failure is in k.last.
func (k *keeper) dial(ctx context.Context, dial func(context.Context) error) (step engine.Step, connected bool) {
	g := k.g
	select {
	case g.dials <- struct{}{}:
	case <-ctx.Done():
		return k.redial.Failed(g.d.Now(), lull.Verdict{Kind: engine.KindCanceled}, nil), false
	}
	defer func() { <-g.dials }()
	spec := engine.Spec{Operation: "dial", Once: true}
	r := g.d.Drive(ctx, spec, func(ctx context.Context) lull.Verdict {
		if k.cause = dial(ctx); k.cause == nil {
			return lull.Verdict{Kind: lull.KindSuccess}
		}
		return verdict(k.cause)
	}, nil, func() error { return k.cause })
	if r.Reason == engine.Success {
		return step, true
	}
	v := r.Verdict
	v.After = max(v.After, r.RetryAt) // of an open circuit
	v.Kind = kind(ctx, k.cause, v.Kind)
	k.last = g.d.Error(spec.Operation, r, k.cause)
	return k.redial.Failed(g.d.Now(), v, g.d.Rand()), false
}

// lost returns the step after the end of a connection.
func (k *keeper) lost(ctx context.Context) engine.Step {
	k.last = k.cause
	var v lull.Verdict
	drain := time.Duration(0)
	if k.cause != nil {
		v, drain = verdict(k.cause), restartSpread(k.cause)
		if e, ok := errors.AsType[*drained](k.cause); ok {
			drain = e.over
		}
	}
	v.Kind = kind(ctx, k.cause, v.Kind)
	now := k.g.d.Now()
	k.downReported = k.downReported && k.redial.Down(now, true) > 0
	return k.redial.Lost(now, v, drain, k.g.d.Rand())
}

// kind returns the kind of a failure: canceled if ctx has ended or the program itself wants no other
// connection.
func kind(ctx context.Context, err error, of engine.VerdictKind) engine.VerdictKind {
	return choice.Either(hasEnded(ctx) || final(err), engine.KindCanceled, of)
}

// hasEnded reports whether ctx has ended. An error about a context is no proof: it may be about another one.
func hasEnded(ctx context.Context) bool { return attempt.CutOff(ctx, ctx) != engine.NotCutOff }

func (k *keeper) end(ctx context.Context) error {
	if hasEnded(ctx) {
		<-ctx.Done() // its timer may be late
		return context.Cause(ctx)
	}
	return k.last
}

// sleep waits, and escalates when it is time for that.
func (k *keeper) sleep(ctx context.Context, wait time.Duration) error {
	for {
		part := wait
		if escalate := k.g.c.DownAfter; escalate > 0 && !k.downReported {
			down := k.redial.Down(k.g.d.Now(), false)
			if down >= escalate {
				k.downReported = true
				k.g.c.Down(down, k.last)
				continue
			}
			part = min(wait, escalate-down)
		}
		if err := sleep.For(ctx, part); err != nil {
			return err
		}
		if wait -= part; wait <= 0 {
			return nil
		}
	}
}
