// Package every runs something once in a period, at a moment that a hash of its name decides.
//
//	return every.Run(ctx, "report "+hostname, time.Hour, func(ctx context.Context) { ... })
//
// Timers that start at round times start together: all jobs of a fleet at the full hour, or all
// instances of a service a minute after the deployment. The service that they call gets no calls
// for a while, and then all of them. A random delay would also spread them, but differently each
// day, so nobody would know when a job runs. The hash of a name spreads them, and is the same after
// each restart and on each machine. Jenkins' H does the same.
//
// The runs begin when the time since 1970 (UTC) is [Phase] more than a multiple of the period. The
// phases of different names are practically independent and uniform. If a period has 60 parts, the
// fullest part has little more than n/60 of n jobs. Put what differs between the instances of a
// fleet into the name. Instances with the same name run at the same time.
//
// [Run] does not catch up: a run that takes longer than the period skips the moments that it covers.
// Package every retries nothing. Let f make calls of package lull.
package every

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
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
// that is not positive it returns now.
func Next(now time.Time, name string, period time.Duration) time.Time {
	if period <= 0 {
		return now
	}
	since := (time.Duration(now.UnixNano()) - Phase(name, period)) % period
	if since < 0 {
		since += period
	}
	return now.Add(period - since)
}

// Run calls f whenever the thing with that name is due, on its caller's goroutine, until ctx ends.
// It returns what ended ctx, or at once an error if the period is not positive.
func Run(ctx context.Context, name string, period time.Duration, f func(context.Context)) error {
	if period <= 0 {
		return fmt.Errorf("every: Run: the period of %q is %v: want a positive duration", name, period)
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		t.Reset(time.Until(Next(time.Now(), name, period)))
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f(ctx)
	}
}
