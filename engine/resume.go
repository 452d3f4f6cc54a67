package engine

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// Resume is Start for a call of which other processes have made the given number of attempts,
// such as for a message in a queue. Its next attempt is number made+1; the attempts that are left
// and the length of its waits follow from that. To the breaker, the throttle and the limit it is
// a call like any other. To a budget that is earned by arrivals it is a new one only if made is
// 0.
//
// Its deadline is Spec.Deadline alone: the policy's began with the first attempt, and only the
// driver knows when that was.
func (s *State) Resume(now time.Duration, spec Spec, made int) (Call, Step) {
	s = s.Current()
	made = min(max(made, 0), math.MaxInt16-1)
	c := Call{s: s, began: now, deadline: Never, attempts: int16(made), attemptsBefore: int16(made)}
	if spec.Rest {
		c.answer = restOfAnswer
	}
	c.repeatAs(&spec)
	if spec.Deadline != 0 {
		c.deadline = spec.Deadline
	}
	if now >= c.deadline {
		return c, done(c.refuse(Deadline))
	}
	if no := c.admit(s, now, &spec); no != Success {
		return c, done(no)
	}
	return c, Step{}
}

// Wait draws the wait before the given retry, from 1, after a failure with v, as Next does. It is
// for drivers that must come back where Next would end a call, and charges nothing.
func (s *State) Wait(retry int, v Verdict, random func() uint64) time.Duration {
	retry = min(max(retry, 1), math.MaxInt16)
	c := Call{s: s.Current(), attempts: int16(retry), attemptsBefore: int16(retry - 1)}
	wait, _ := c.nextWait(retry, v, Never, random)
	return wait
}

// redrawWait draws the last wait of a call of which other processes made all attempts but one,
// since the next wait depends on it. To draw all of them again gives it the distribution that it
// had.
func (c *Call) redrawWait(v Verdict, random func() uint64) {
	schedule := choice.Either(v.Kind == KindRateLimited, c.s.Plan().rateLimited, c.s.Plan().waits)
	for n := 1; n <= min(int(c.attemptsBefore), redrawnWaits); n++ {
		c.wait, _ = schedule.Draw(n, c.wait, random)
	}
}

// redrawnWaits: after so many waits a decorrelated schedule has forgotten the first.
const redrawnWaits = 32

// MaxAttempts returns how many attempts a call may make: Attempts (or Hedge.Attempts), or fewer
// if the schedule ends first.
func (p Policy) MaxAttempts() int { return p.WithDefaults().allowed() }

// LongestWait returns the longest wait before the given retry, from 1: after a failure of any
// kind, or asked for by the server, with its jitter.
func (p Policy) LongestWait(retry int) time.Duration {
	p = p.WithDefaults()
	return p.longestWait(retry, p.rateLimited())
}

func (p Policy) longestWait(retry int, rateLimited backoff.Schedule) time.Duration {
	slow := rateLimited.Max(retry)
	return max(p.Backoff.Max(retry), slow, saturating.Add(p.HintLimit, hintSpread(p.HintLimit, slow)))
}
