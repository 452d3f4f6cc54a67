package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

type result struct {
	setting     setting
	measured    time.Duration // when the last call could begin: Duration, unless interrupted
	interrupted bool
	unfinished  int
	late        lateness
	dialErrors  int
	retriers    []stormFigures // storm
	hedgers     []tailFigures  // tail
}

// runDemo sends all clients the same calls, takes the backends down and up, and measures: if ctx ends, what there is until then.
func runDemo(ctx context.Context, s setting, v view) (result, error) {
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	var lanes []*lane
	defer func() {
		for _, l := range lanes {
			l.close()
		}
	}()
	for _, c := range s.Clients {
		l, err := newLane(s, c, clock)
		if err != nil {
			return result{}, err
		}
		lanes = append(lanes, l)
	}
	return runLanes(ctx, s, v, lanes, clock), nil
}

// runLanes is runDemo with given backends and clients.
func runLanes(ctx context.Context, s setting, v view, lanes []*lane, clock func() time.Duration) result {
	times := arrivals(s)
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer endCalls()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var background sync.WaitGroup
	background.Go(func() { outage(running, s, lanes, clock) })
	background.Go(func() {
		for next := time.Duration(0); sleepUntil(running, clock, next); next += tick {
			v.show(takeSnapshot(s, lanes, clock()))
		}
	})

	late := beginCalls(ctx, clock, times, func() {
		for _, l := range lanes {
			l.begin(calls)
		}
	})
	sleepUntil(ctx, clock, s.Duration)
	measured := min(clock(), s.Duration)
	awaitCalls(ctx, lanes, time.Duration(s.Attempts)*(s.Timeout+time.Second), endCalls) // a second is ample for the waits between
	end()
	background.Wait()

	r := result{setting: s, measured: measured, interrupted: ctx.Err() != nil, late: late}
	for _, l := range lanes {
		s.Scenario.measure(&r, l)
		r.unfinished += l.unfinished()
		r.dialErrors += int(l.dialErrors.Load())
	}
	v.end(takeSnapshot(s, lanes, clock()))
	return r
}

// awaitCalls waits until every call has ended. When patience or ctx ends, it ends the calls.
func awaitCalls(ctx context.Context, lanes []*lane, patience time.Duration, endCalls func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, l := range lanes {
			l.calls.Wait()
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	case <-timer.C:
	}
	endCalls()
	<-ended
}

// outage takes all backends down at the same moment, and brings them back. In the tail, down means slow.
func outage(ctx context.Context, s setting, lanes []*lane, clock func() time.Duration) {
	if s.Outage == 0 || !sleepUntil(ctx, clock, s.OutageAt) {
		return
	}
	for _, l := range lanes {
		l.backend.gate.close()
	}
	sleepUntil(ctx, clock, s.outageEnd())
	for _, l := range lanes {
		l.backend.gate.open()
	}
}

// arrivals are the times at which calls begin, the same for all clients: a Poisson process, as of users who do not wait for others.
func arrivals(s setting) []time.Duration {
	random := rand.New(rand.NewPCG(s.Seed, 0))
	mean := float64(time.Second) / s.offered()
	var times []time.Duration
	for at := 0.0; ; {
		at += random.ExpFloat64() * mean
		if at >= float64(s.Duration) {
			return times
		}
		times = append(times, time.Duration(at))
	}
}

// lateness is how long after its time each call began. It shows whether this machine could keep up with the demo.
type lateness []time.Duration

func (l lateness) p99() time.Duration {
	sorted := slices.Clone(l)
	slices.Sort(sorted)
	return percentile(sorted, 99)
}

// beginCalls calls begin at each of the times. It ends after the last one, or when ctx ends. It returns how late each call was.
func beginCalls(ctx context.Context, clock func() time.Duration, times []time.Duration, begin func()) lateness {
	late := make(lateness, 0, len(times))
	for _, at := range times {
		if !sleepUntil(ctx, clock, at) {
			break
		}
		late = append(late, max(0, clock()-at))
		begin()
	}
	return late
}
