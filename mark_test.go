package lull_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

// layers makes a call through n layers of lull, each of which wraps what comes from below.
func layers(t *testing.T, n int, wrap func(error) error, op func() error, opts ...lull.Option) error {
	run := func(context.Context) error { return op() }
	for i := range n {
		inner, outermost := run, i == n-1
		d := newDependency(t, lull.Policy{Attempts: 3, Budget: plenty}, opts...)
		run = func(ctx context.Context) error {
			err := lull.Run(ctx, d, inner)
			if err != nil && !outermost {
				err = wrap(err)
			}
			return err
		}
	}
	return run(t.Context())
}

// Rule 13: an error of a call below is final. Marks and classifiers inside of it do not count,
// only a mark around it.
func TestRule13LayersDoNotMultiply(t *testing.T) {
	down := errors.New("down")
	eager := lull.WithClassifier(func(err error) lull.Verdict {
		return lull.Verdict{Kind: lull.KindTransient, Code: "eager"}
	})
	same := func(err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		wrap func(error) error
		opts []lull.Option
		want int
	}{
		{"marked at the bottom", lull.Transient(down), same, nil, 3},
		{"to be repeated later", lull.RetryAfter(down, time.Millisecond), same, nil, 3},
		{"known to be transient", syscall.ECONNRESET, same, nil, 3},
		{"an eager classifier in every layer", down, same, []lull.Option{eager}, 3},
		{"wrapped", lull.Transient(down), func(err error) error { return fmt.Errorf("layer: %w", err) }, nil, 3},
		{"joined, first", lull.Transient(down), func(err error) error { return errors.Join(err, errBlip) }, nil, 3},
		{"joined, second", lull.Transient(down), func(err error) error { return errors.Join(errBlip, err) }, nil, 3},
		{"joined with a mark on another failure", lull.Transient(down), func(err error) error { return errors.Join(lull.Transient(errBlip), err) }, nil, 3},
		{"in a tree", lull.Transient(down), func(err error) error { return fmt.Errorf("%w: %w", errBlip, errors.Join(errBlip, err)) }, nil, 3},
		{"found by As alone", lull.Transient(down), func(err error) error { return asOnly{err} }, nil, 3},
		{"marked around each layer", down, lull.Transient, []lull.Option{}, 9},
		{"marked around a wrapped one", down, func(err error) error { return fmt.Errorf("twice: %w", lull.Transient(fmt.Errorf("once: %w", err))) }, nil, 9},
		{"marked around a joined one", down, func(err error) error { return lull.Transient(errors.Join(errBlip, err)) }, nil, 9},
		{"marked as final around a mark", lull.Transient(down), func(err error) error { return lull.Permanent(lull.Transient(err)) }, nil, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			err := layers(t, 3, c.wrap, func() error { n++; return c.err }, c.opts...)
			var e *lull.Error
			if n != c.want || !errors.As(err, &e) {
				t.Errorf("%s: %d attempts, want %d: %v", c.name, n, c.want, err)
			}
		})
	}
}

// asOnly has no Unwrap.
type asOnly struct{ error }

func (a asOnly) As(target any) bool { return errors.As(a.error, target) }

// A mark around the error of a call below is the whole verdict: what the other dependency
// reported does not count for this one.
func TestRule13WhatIsInsideDoesNotCount(t *testing.T) {
	below := &lull.Error{Dependency: "below", Reason: engine.AttemptsExhausted, Attempts: 3, Last: lull.RetryAfter(lull.NeverSent(context.DeadlineExceeded), time.Hour)}
	final := lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeRetriedBelow}
	asked := func(error) lull.Verdict { t.Error("a classifier was asked"); return lull.Verdict{} }
	for name, c := range map[string]struct {
		err  error
		want lull.Verdict
	}{
		"itself":           {below, final},
		"wrapped":          {fmt.Errorf("wrapped: %w", below), final},
		"transient":        {lull.Transient(below), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}},
		"permanent":        {lull.Permanent(below), lull.Verdict{Kind: lull.KindPermanent, Code: "permanent"}},
		"after":            {lull.RetryAfter(below, time.Second), lull.Verdict{Kind: lull.KindRateLimited, Code: "rate_limited", After: time.Second}},
		"never sent":       {lull.NeverSent(below), lull.Verdict{Kind: lull.KindTransient, Code: "never_sent", NeverSent: true}},
		"marked by two":    {lull.Transient(fmt.Errorf("x: %w", lull.NeverSent(below))), lull.Verdict{Kind: lull.KindTransient, Code: "never_sent", NeverSent: true}},
		"found by As":      {asOnly{below}, final},
		"beside an answer": {errors.Join(below, lull.Permanent(errBlip)), final},
	} {
		check.Equal(t, lull.Classify(c.err), c.want, "%s", name)
		check.Equal(t, lull.VerdictOf(c.err, asked), c.want, "%s, with a classifier", name)
	}
}

// Rule 14: a mark adds to what is known of an error and takes nothing away.
func TestRule14MarksTakeNothingAway(t *testing.T) {
	busy := errors.New("busy")
	classify := func(err error) lull.Verdict {
		if errors.Is(err, busy) {
			return lull.Verdict{Kind: lull.KindRateLimited, Code: "busy", After: time.Minute, NeverSent: true}
		}
		return lull.Classify(err)
	}
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for name, c := range map[string]struct {
		err  error
		want lull.Verdict
	}{
		"transient timeout":   {lull.Transient(context.DeadlineExceeded), lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}},
		"wrapped on the way":  {fmt.Errorf("a: %w", lull.Transient(fmt.Errorf("b: %w", context.DeadlineExceeded))), lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}},
		"permanent timeout":   {lull.Permanent(context.DeadlineExceeded), lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeTimeout}},
		"timeout that waits":  {lull.RetryAfter(context.DeadlineExceeded, time.Second), lull.Verdict{Kind: lull.KindRateLimited, Code: engine.CodeTimeout, After: time.Second}},
		"transient refusal":   {lull.Transient(refused), lull.Verdict{Kind: lull.KindTransient, Code: "connection_refused", NeverSent: true}},
		"reset, never sent":   {lull.NeverSent(syscall.ECONNRESET), lull.Verdict{Kind: lull.KindTransient, Code: "connection_reset", NeverSent: true}},
		"classified":          {lull.Transient(busy), lull.Verdict{Kind: lull.KindRateLimited, Code: "busy", After: time.Minute, NeverSent: true}},
		"the longer wait":     {lull.RetryAfter(busy, time.Hour), lull.Verdict{Kind: lull.KindRateLimited, Code: "busy", After: time.Hour, NeverSent: true}},
		"not a shorter one":   {lull.RetryAfter(busy, time.Second), lull.Verdict{Kind: lull.KindRateLimited, Code: "busy", After: time.Minute, NeverSent: true}},
		"transient, that too": {lull.Transient(lull.RetryAfter(errBlip, time.Second)), lull.Verdict{Kind: lull.KindRateLimited, Code: "rate_limited", After: time.Second}},
		"joined, transient":   {errors.Join(errBlip, lull.Transient(errBlip), lull.Permanent(errBlip)), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}},
		"joined, permanent":   {errors.Join(lull.Permanent(errBlip), lull.Transient(errBlip)), lull.Verdict{Kind: lull.KindPermanent, Code: "permanent"}},
		"the outermost rules": {lull.Transient(lull.Permanent(errBlip)), lull.Verdict{Kind: lull.KindTransient, Code: "permanent"}},
	} {
		check.Equal(t, lull.VerdictOf(c.err, classify), c.want, "%s", name)
		check.Equal(t, lull.VerdictOf(c.err, func(err error) lull.Verdict { return lull.VerdictOf(err, classify) }), c.want, "%s, marks counted twice", name)
	}
}

// Rule 14: with a mark on every error, timeouts are still not repeated if the dependency answers
// nobody.
func TestRule14AMarkedTimeoutIsATimeout(t *testing.T) {
	for _, mark := range []func(error) error{func(err error) error { return err }, lull.Transient} {
		for _, hedged := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := lull.Policy{AttemptTimeout: time.Second}
				if hedged {
					p = hedging(2)
					p.AttemptTimeout, p.Hedge.Delay = time.Second, 5*time.Second
				}
				n := 0
				_, err := lull.DoHedged(t.Context(), newDependency(t, p), func(ctx context.Context) (int, error) {
					n++
					<-ctx.Done() // it stands still
					return 0, mark(ctx.Err())
				})
				var e *lull.Error
				if !errors.As(err, &e) || e.Reason != engine.Unanswered || e.Verdict.Code != engine.CodeTimeout || n != 1 {
					t.Errorf("hedged %v: %d attempts: %v", hedged, n, err)
				}
			})
		}
	}
}
