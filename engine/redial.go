package engine

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// The defaults of the zero RedialPolicy.
const (
	DefaultRedialStart  = time.Second
	DefaultRedialSpread = 15 * time.Second
	DefaultRedialBase   = time.Second
	DefaultRedialCap    = time.Minute
	DefaultLasting      = time.Minute
)

// A RedialPolicy describes when a connection that must last is dialled. It is plain data. The
// zero RedialPolicy is the recommended one.
type RedialPolicy struct {
	// Start is the time over which the first dials of processes that start together are spread.
	// Zero means DefaultRedialStart.
	Start time.Duration
	// Spread is the longest wait before a lost connection is dialled again, since all others may
	// have lost theirs, too. Half of the waits are below an eighth of it. Zero means
	// DefaultRedialSpread.
	Spread time.Duration
	// Backoff is the wait after a dial that failed, and after a connection that did not last. A
	// zero Base means DefaultRedialBase, a zero Cap DefaultRedialCap. Its number of retries does
	// not count.
	Backoff backoff.Schedule
	// Lasting is how long a connection must last for its loss to count as the first failure, and
	// for later refusals of the server to be dialled again. Zero means DefaultLasting.
	Lasting time.Duration
}

// Validate returns all mistakes of p at once.
func (p RedialPolicy) Validate() error {
	var l problem.List
	l.Check(p.Start >= 0, "Start", p.Start, "a positive duration, or 0 for the default of 1s")
	l.Check(p.Spread >= 0, "Spread", p.Spread, "a positive duration, or 0 for the default of 15s")
	l.Check(p.Lasting >= 0, "Lasting", p.Lasting, "a positive duration, or 0 for the default of 1m")
	l.In("Backoff", p.Backoff.Validate())
	l.Units(p)
	return l.Err()
}

// WithDefaults returns p with its default for each field that is zero.
func (p RedialPolicy) WithDefaults() RedialPolicy {
	p.Start = cmp.Or(p.Start, DefaultRedialStart)
	p.Spread = cmp.Or(p.Spread, DefaultRedialSpread)
	p.Lasting = cmp.Or(p.Lasting, DefaultLasting)
	p.Backoff.Base = cmp.Or(p.Backoff.Base, DefaultRedialBase)
	p.Backoff.Cap = cmp.Or(p.Backoff.Cap, max(DefaultRedialCap, p.Backoff.Base))
	return p
}

// A RedialPlan is a RedialPolicy made ready, for any number of Redials. It may be used
// concurrently.
type RedialPlan struct {
	policy RedialPolicy
	waits  *backoff.Plan
}

// NewRedialPlan returns the plan of a policy, or the error of Validate.
func NewRedialPlan(p RedialPolicy) (*RedialPlan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p = p.WithDefaults()
	return &RedialPlan{p, p.Backoff.Prepare()}, nil
}

// Policy returns the policy of the plan, with the defaults filled in.
func (p *RedialPlan) Policy() RedialPolicy { return p.policy }

// A Redial decides when one connection is dialled. Time is an argument, as for a Call:
//
//	wait := r.Start(now, random)        // the process begins
//	step := r.Failed(now, v, random)    // a dial failed with v: dial again after step.Wait, or stop
//	r.Connected(now)                    // or it succeeded
//	step = r.Lost(now, v, drain, random) // the connection has ended: dial again after step.Wait
//
// It is used by one goroutine at a time.
type Redial struct {
	plan     *RedialPlan
	up       time.Duration // when the last dial succeeded
	down     time.Duration // when the last connection that had lasted was lost, or when Start was called
	wait     time.Duration // the last one drawn, for decorrelated jitter
	failures int32
	lasted   bool // a connection has lasted
}

// Redial returns the decisions about one connection.
func (p *RedialPlan) Redial() Redial { return Redial{plan: p} }

// Start returns the wait before the first dial.
func (r *Redial) Start(now time.Duration, random func() uint64) time.Duration {
	r.down = now
	return time.Duration(chance.UpTo(uint64(r.plan.policy.Start), random))
}

// Connected records that a dial has succeeded.
func (r *Redial) Connected(now time.Duration) { r.up = now }

// Failed returns what follows a dial that failed with v. It is Done when the caller has gone, and
// after a permanent failure that was an answer, as long as no connection has lasted. A connection
// that has lasted shows that this side is right. A failure of the network (a name that does not
// exist) is no answer.
func (r *Redial) Failed(now time.Duration, v Verdict, random func() uint64) Step {
	switch {
	case v.Kind == KindCanceled:
		return done(Canceled)
	case v.answers() && !r.lasted:
		return done(Permanent)
	}
	r.failures = min(r.failures+1, 1<<30)
	wait, ceiling := r.plan.waits.Draw(int(r.failures), r.wait, random)
	r.wait = wait
	if v.After > 0 { // spread over twice the time, since all clients were asked for the same
		wait = saturating.Add(v.After, time.Duration(chance.UpTo(uint64(max(v.After, ceiling)), random)))
		ceiling = v.After
	}
	return Step{Wait: wait, Ceiling: ceiling}
}

// Lost returns what follows the end of a connection. v is the verdict on it, zero if nothing is
// known. drain is positive if the server announced the end and gives its clients that long to
// move: that is no failure, and the dials are spread over that time. A connection that has lasted
// (RedialPolicy.Lasting) resets the count of failures; one that has not is one more failure. A
// permanent answer ends it as in Failed.
func (r *Redial) Lost(now time.Duration, v Verdict, drain time.Duration, random func() uint64) Step {
	lasted := now-r.up >= r.plan.policy.Lasting
	if lasted {
		r.failures, r.wait, r.down, r.lasted = 0, 0, now, true
	}
	switch {
	case v.Kind == KindCanceled:
		return done(Canceled)
	case v.answers() && !r.lasted:
		return done(Permanent)
	case drain > 0:
		return Step{Wait: saturating.Add(max(v.After, 0), time.Duration(chance.UpTo(uint64(drain), random))), Ceiling: drain}
	case !lasted:
		return r.Failed(now, v, random)
	}
	u := float64(chance.UpTo(1<<53, random)) / (1 << 53)
	spread := r.plan.policy.Spread
	return Step{Wait: saturating.Add(max(v.After, 0), time.Duration(float64(spread)*(u*u*u))), Ceiling: spread}
}

// Down returns how long there has been no connection that lasted; zero while there is one. Alert
// on this, not on the number of failed dials, which jitter and hints change.
func (r *Redial) Down(now time.Duration, connected bool) time.Duration {
	if connected && now-r.up >= r.plan.policy.Lasting {
		return 0
	}
	return max(now-r.down, 0)
}
