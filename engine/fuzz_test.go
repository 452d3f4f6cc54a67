package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/throttle"
)

// tape reads the fuzzer's bytes as whatever is wanted next, and zeros at its end.
type tape []byte

func (t *tape) byte() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

func (t *tape) int64() (v int64) {
	for range 8 {
		v = v<<8 | int64(t.byte())
	}
	return v
}

// duration is often one at the edge.
func (t *tape) duration() time.Duration {
	edges := []time.Duration{0, 1, -1, time.Millisecond, time.Second, time.Minute, time.Hour, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
	if b := int(t.byte()); b < 2*len(edges) {
		return edges[b/2]
	}
	return time.Duration(t.int64())
}

func (t *tape) float() float64 {
	switch t.byte() % 4 {
	case 0:
		return 0
	case 1:
		return float64(t.byte()) / 100
	}
	return math.Float64frombits(uint64(t.int64()))
}

func (t *tape) policy() lull.Policy {
	return lull.Policy{
		Attempts:        int(int8(t.byte())),
		AttemptTimeout:  t.duration(),
		Deadline:        t.duration(),
		Backoff:         backoff.Schedule{Kind: backoff.Kind(t.byte() % 7), Jitter: backoff.Jitter(t.byte() % 7), Base: t.duration(), Cap: t.duration(), Floor: t.duration(), Factor: t.float(), FastFirst: t.byte()%2 == 0},
		RateLimitedBase: t.duration(),
		HintLimit:       t.duration(),
		Budget:          budget.Config{Ratio: t.float(), Window: t.duration(), Earn: budget.Earn(t.byte() % 3), Floor: t.float(), Cooldown: t.duration(), Stock: t.float(), Unlimited: t.byte()%8 == 0},
		Breaker:         breaker.Config{Off: t.byte()%2 == 0, Window: t.duration(), FailureRate: t.float(), MinCalls: int(int8(t.byte())), Consecutive: int(int8(t.byte())), SlowRate: t.float(), SlowCall: t.duration(), OpenFor: t.duration(), OpenMax: t.duration(), OpenJitter: t.float(), Probes: int(int8(t.byte())), ProbeTimeout: t.duration(), MetricsOnly: t.byte()%2 == 0},
		Throttle:        throttle.Config{Mode: throttle.Mode(t.byte() % 4), Window: t.duration(), K: t.float(), MinRequests: int(int8(t.byte())), Recent: t.duration(), ProbeEvery: t.duration(), MinRate: t.float(), MaxWait: t.duration()},
		Limit:           bulkhead.Config{InFlight: int(int8(t.byte())), MaxWait: t.duration(), MaxQueue: int(int8(t.byte()))},
	}
}

// FuzzCall calls the engine's methods under any policy, at any times, in any order. Nothing may
// panic, and each Step must keep its promises.
func FuzzCall(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x03\x08\x0a then some calls that fail and fail and succeed"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := tape(data)
		p := in.policy()
		p.WorstCase()
		d, err := lull.NewDependency("fuzzed", p)
		if err != nil {
			// Continue without the invalid part.
			if d, err = lull.NewDependency("fuzzed", lull.Policy{Attempts: 5, Budget: budget.Config{Stock: 10}}); err != nil {
				t.Fatal(err)
			}
		}
		luck := func() uint64 { return uint64(in.int64()) }
		for len(in) > 0 {
			now := in.duration()
			spec := engine.Spec{Deadline: in.duration(), NotIdempotent: in.byte()%4 == 0, NotReplayable: in.byte()%4 == 0, UnlessUnsent: len(in)%2 == 0}
			c, step := d.State().Start(now, spec)
			if !step.Done && in.byte()%4 == 0 {
				c.Abandon(now)
				c, step = d.State().Resume(now, spec, int(in.int64()))
			}
			if step.Done {
				continue
			}
			var place *bulkhead.Waiter
			for range 12 {
				now = in.duration()
				switch in.byte() % 8 {
				case 0:
					c.Abandon(now)
				case 1:
					step = c.Stop(now, lull.Reason(in.byte()), luck)
				case 2, 3, 4:
					if step = c.Attempt(now, luck); step.Full && place == nil {
						place = &bulkhead.Waiter{Admit: func() {}}
						if step = c.JoinQueue(now, place, luck); step.Full {
							step = c.LeaveQueue(now, place, lull.Reason(in.byte()%12), luck)
						}
					}
				default:
					v := lull.Verdict{Kind: engine.VerdictKind(in.byte() % 10), After: in.duration(), NeverSent: in.byte()%2 == 0, Code: []string{"", "503", engine.CodeUnclassified, engine.CodeTimeout}[in.byte()%4]}
					step = c.Next(now, v, luck)
					if !step.Done && (step.Wait < 0 || v.Kind != lull.KindTransient && v.Kind != lull.KindRateLimited && v.Kind != engine.KindCallerTransient) {
						t.Fatalf("after %+v the engine says %+v", v, step)
					}
					if !step.Done && v.After > 0 && step.Wait < v.After {
						t.Fatalf("asked for %v, waits %v", v.After, step.Wait)
					}
				}
				if step.Done {
					if step.Reason.String() == "" {
						t.Fatal("a reason without a name")
					}
					break
				}
			}
			c.Abandon(in.duration())
		}
		if l := d.Limiter(); l != nil && l.InFlight() != 0 {
			t.Fatalf("%d permits are out when all calls have ended", l.InFlight())
		}
		if n := d.State().Waiting(); n != 0 {
			t.Fatalf("%d calls wait when all have ended", n)
		}
	})
}
