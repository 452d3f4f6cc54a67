// Package every runs something once in a period, at a moment that a hash of its name decides.
//
//	return every.Run(ctx, "report "+hostname, time.Hour, func(ctx context.Context) { ... })
//
// Timers that start at round times start together: all jobs of a fleet at the full hour. The hash of a
// name spreads them, and is the same after each restart and on each machine (Jenkins' H does the same). Put
// what differs between the instances of a fleet into the name: those with the same name run at the same time.
//
// The runs begin when the time since 1970 (UTC) is [Phase] more than a multiple of the period. The phases of
// different names are practically independent and uniform. docs/guide.md has an example. Package
// every retries nothing. Let f make calls of package lull.
package every

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"time"
)

// Phase returns how long after the start of a period the thing with that name is due: at least 0
// and less than the period. A period that is not positive has the phase 0.
func Phase(name string, period time.Duration) time.Duration {
	if period <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	x := h.Sum64() // whose high bits depend too little on the last letters: mix, as SplitMix64 does
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	phase, _ := bits.Mul64(x, uint64(period))
	return time.Duration(phase)
}

// Next returns the first moment after now at which the thing with that name is due. Of a period
// that is not positive it returns now. The moment is one of the clock of the machine: it has no
// monotonic reading. Next knows of no earlier run: if the clock is set back just before the moment,
// a loop that sleeps until Next runs twice. [Run] does not.
func Next(now time.Time, name string, period time.Duration) time.Time {
	if period <= 0 {
		return now
	}
	return latest(now, Phase(name, period), period).Add(period)
}

// latest returns the last moment, up to now, at which the time since 1970 is phase more than a
// multiple of the period.
func latest(now time.Time, phase, period time.Duration) time.Time {
	seconds := now.Unix() % int64(period) // nanoseconds since 1970 fit into 64 bits from 1678 to 2262 only
	if seconds < 0 {
		seconds += int64(period)
	}
	high, low := bits.Mul64(uint64(seconds), uint64(time.Second))
	since := time.Duration(bits.Rem64(high, low, uint64(period))) - phase
	if since < 0 {
		since += period
	}
	since -= period - time.Duration(now.Nanosecond())%period // before the sum could overflow
	if since < 0 {
		since += period
	}
	return now.Round(0).Add(-since)
}

// maxSleep is the longest time between two looks at the clock. Timers stand still while the machine
// is suspended, and do not follow a clock that is set.
const maxSleep = time.Minute

// Run calls f whenever the thing with that name is due, on its caller's goroutine, until ctx ends.
// It goes by the clock of the machine, and a period has one run at most. If the clock is set forward over a
// moment, or the machine is suspended over it, the run follows within a minute. It does not catch up. It returns what ended ctx, or at once an error if the period is not positive.
func Run(ctx context.Context, name string, period time.Duration, f func(context.Context)) error {
	if period <= 0 {
		return fmt.Errorf("every: Run: the period of %q is %v: want a positive duration", name, period)
	}
	d := diary{clock: time.Now, phase: Phase(name, period), period: period}
	return d.run(ctx, f)
}

// A diary records the periods that get no other run: they have had one, or passed while f ran.
type diary struct {
	clock         func() time.Time
	phase, period time.Duration
	noted         []span // maxSpans at most; the last is the latest to be noted
}

func (d *diary) run(ctx context.Context, f func(context.Context)) error {
	now := d.clock()
	d.note(now, now)
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		t.Reset(min(d.wait(d.clock()), maxSleep))
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		now := d.clock()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.due(now):
			f(ctx)
			d.note(now, d.clock())
		}
	}
}

// A span is a row of periods, by the moments at which the first and the last of them begin.
type span struct{ first, last time.Time }

// maxSpans is how many spans are kept. A new one begins when the clock jumps over a moment.
const maxSpans = 100

func (d *diary) begin(now time.Time) time.Time { return latest(now, d.phase, d.period) }

// wait returns how long it is until the next period begins.
func (d *diary) wait(now time.Time) time.Duration {
	return d.begin(now).Add(d.period).Sub(now.Round(0))
}

// due reports whether the period that now is in may still have its run.
func (d *diary) due(now time.Time) bool {
	begin := d.begin(now)
	return !slices.ContainsFunc(d.noted, func(s span) bool { return !begin.Before(s.first) && !begin.After(s.last) })
}

// note adds the periods from that of one time to that of another. If the clock was set back between
// them, the first is all that is known.
func (d *diary) note(from, to time.Time) {
	s := span{d.begin(from), d.begin(to)}
	if s.last.Before(s.first) {
		s.last = s.first
	}
	if n := len(d.noted); n > 0 && d.noted[n-1].last.Add(d.period).Equal(s.first) {
		d.noted[n-1].last = s.last
		return
	}
	d.noted = append(d.noted[max(0, len(d.noted)-maxSpans+1):], s)
}
