package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// minCapacity is the smallest size of the bucket, in attempts.
const minCapacity = 1

// rate is the state of a Cubic throttle.
type rate struct {
	// limiting: attempts are held to the rate. While it is false they are only counted.
	// Written under mu.
	limiting atomic.Bool
	meter    meter

	mu sync.Mutex // guards what follows, and closes the slots of the meter
	// tokens are the attempts that may be sent at once. Below zero they are those that
	// wait, in terms of the present fill: the last of them is sent in -tokens/fill seconds.
	tokens    float64
	fill      float64 // tokens per second
	capacity  float64
	filled    time.Duration // when tokens were last brought up to date
	max       float64       // the rate at the last rate-limited answer
	reducedAt time.Duration // when that was; at first the first use
}

func newRate(now time.Duration) *rate {
	r := &rate{reducedAt: now}
	r.meter.begin(now)
	return r
}

func (r *rate) start(ru *rules, now time.Duration) (time.Duration, bool) {
	if !r.limiting.Load() {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stillLimits(ru, now) {
		return 0, true
	}
	r.refill(now)
	wait := r.wait(r.tokens)
	if wait > ru.maxWait {
		return wait, false
	}
	r.tokens--
	return wait, true
}

// wait returns how long an attempt waits that finds so many tokens.
func (r *rate) wait(tokens float64) time.Duration {
	if tokens >= 1 {
		return 0
	}
	return seconds((1 - tokens) / r.fill)
}

// stillLimits reports whether attempts are held to the rate at now. It ends the limit if
// the last rate-limited answer is a window ago. mu must be held.
func (r *rate) stillLimits(ru *rules, now time.Duration) bool {
	if r.limiting.Load() && saturating.Since(r.reducedAt, now) >= ru.window {
		r.limiting.Store(false)
	}
	return r.limiting.Load()
}

func (r *rate) done(ru *rules, now time.Duration, o Evidence) {
	if !r.limiting.Load() && o != RateLimited && (o == Unsent || r.meter.add(now)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := r.stillLimits(ru, now)
	if o == Unsent {
		r.tokens++ // what is too much refill cuts off
		return
	}
	r.meter.close(now)
	switch {
	case o == RateLimited:
		if !limits || saturating.Since(r.reducedAt, now) >= ru.fallEvery {
			r.lower(ru, now, limits)
		}
	case limits && o <= Unanswered:
		r.setRate(ru, now, r.curve(ru, now))
	}
}

// lower lowers the rate after a rate-limited answer.
func (r *rate) lower(ru *rules, now time.Duration, limits bool) {
	r.max = r.meter.rate
	if limits {
		r.max = min(r.max, r.fill)
	} else {
		// In the SDKs the bucket fills in the first seconds of a client, before it is used.
		// So it is full now, for the rate that it is about to get.
		r.fill, r.filled = 1, now
		r.capacity = max(r.max, minCapacity)
		r.tokens = r.capacity
	}
	r.reducedAt = now
	r.setRate(ru, now, ru.curve.beta*r.max)
	r.limiting.Store(true)
}

// curve returns the rate of the curve at now.
func (r *rate) curve(ru *rules, now time.Duration) float64 {
	return ru.curve.rate(saturating.Since(r.reducedAt, now).Seconds(), r.max)
}

// setRate sets the rate, to at most twice the measured one.
func (r *rate) setRate(ru *rules, now time.Duration, to float64) {
	r.refill(now)
	to = min(to, 2*r.meter.rate)
	fill := max(to, ru.minRate)
	if r.tokens < 0 {
		// The attempts that wait keep their waits. Their number is scaled so that the next
		// one waits for the last of them, and no longer.
		r.tokens *= fill / r.fill
	}
	r.fill = fill
	r.capacity = max(to, minCapacity)
}

// refill adds the tokens since the last refill, up to the capacity. Time that goes
// backwards adds nothing.
func (r *rate) refill(now time.Duration) {
	r.tokens = r.refilled(now)
	r.filled = max(r.filled, now)
}

func (r *rate) refilled(now time.Duration) float64 {
	return min(r.tokens+saturating.Since(r.filled, now).Seconds()*r.fill, r.capacity)
}

func (r *rate) state(ru *rules, now time.Duration) Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := Snapshot{Sent: r.meter.rate}
	if r.limiting.Load() && saturating.Since(r.reducedAt, now) < ru.window {
		st.Limiting, st.Rate, st.Wait = true, r.fill, r.wait(r.refilled(now))
	}
	return st
}
