package shipped

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/queue"
)

// script is a scenario of one topic and a policy that leave nothing to chance, and no two
// things happen at the same moment whose order would matter. So there is no jitter, and no
// budget, after which waits are drawn. A breaker and deferrals that count do not meet: a
// message that is kept is tried in the moment in which the consumer looks at the breaker.
func script(r *rand.Rand) (sim.Scenario, lull.Policy) {
	// Odd nanoseconds keep moments apart.
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) | 1 }
	one := func(n int) bool { return r.IntN(n) == 0 }
	p := lull.Policy{
		Attempts: 2 + r.IntN(6), AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Timeouts: lull.TimeoutsAlways,
		Backoff: backoff.Schedule{Jitter: backoff.None, Base: between(50*ms, 2*time.Second), Cap: 30 * time.Second},
		Budget:  budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
	if one(3) {
		p.Backoff.Kind = backoff.Constant
	}
	c := sim.Consumers{Concurrency: 1 + r.IntN(20), Lease: between(time.Second, 10*time.Second)}
	alone := one(2)
	if alone {
		// Of messages that fail at one moment, the order decides what a breaker makes of them.
		c.Concurrency = 1
		p.Breaker = breaker.Config{
			Consecutive: 1 + r.IntN(4), ConsecutiveFor: -1, OpenFor: between(500*ms, 5*time.Second), OpenMax: between(5*time.Second, 20*time.Second), OpenJitter: -1, Probes: 1,
		}
	}
	if one(4) {
		p.Deadline = between(time.Second, 20*time.Second)
		p.AttemptTimeout = p.Deadline
	}
	if one(3) {
		c.Quick, c.QuickWait = 1+r.IntN(3), between(100*ms, 2*time.Second)
	}
	service := sim.Service{Name: "api", Time: sim.Distribution{Mean: between(10*ms, 400*ms)}, ErrorTime: between(ms, 20*ms)}
	if one(4) {
		service.Time.Mean = between(time.Second, 12*time.Second)
		if one(2) {
			p.AttemptTimeout = between(time.Second, 8*time.Second)
			if p.Deadline > 0 {
				p.Deadline = max(p.Deadline, p.AttemptTimeout)
			}
		}
	}
	const last = time.Minute
	for range 1 + r.IntN(3) {
		service.Faults = append(service.Faults, sim.Fault{Kind: sim.Errors, At: between(time.Second, last), For: between(time.Second, 30*time.Second)})
	}
	for at := between(time.Second, 20*time.Second); one(2) && at < last; at += between(20*time.Second, 40*time.Second) {
		c.Kills = append(c.Kills, sim.Kill{At: at, For: between(500*ms, 10*time.Second)})
	}
	rate := 0.5 + 3*r.Float64()
	if one(10) { // no handler comes to its end, for a while
		c.Lease, service.Time.Mean, c.Kills = between(time.Second, 3*time.Second), between(8*time.Second, 12*time.Second), nil
		p.Backoff.Kind, p.Backoff.Base, p.Attempts = backoff.Constant, between(50*ms, 500*ms), 2+r.IntN(3)
		p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
		for at := between(time.Second, 5*time.Second); at < 3*last; at += between(4*time.Second, 7*time.Second) {
			c.Kills = append(c.Kills, sim.Kill{At: at, For: between(500*ms, 2*time.Second)})
		}
		c.Processes, rate = 1, 0.06
	}
	if len(c.Kills) > 0 {
		// Of messages that were in hand in a crash, few are handled beside one another. Where several
		// begin or end at one moment, the order decides which.
		c.Concurrency = 1
	}
	if !alone && len(c.Kills) == 0 {
		c.Processes = 1 + r.IntN(4) // which of them has a message makes no difference
	}
	topic := sim.Topic{
		Name: "orders", Calls: "api", Consumers: c,
		Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: rate, Ramp: []sim.RampPoint{{At: 0, Factor: 1}, {At: last, Factor: 1}, {At: last, Factor: 0}}},
		Broker:   sim.Broker{CountDefers: !alone && one(2), FixedLeases: one(3), MaxDelay: []time.Duration{0, 0, between(ms, 5*time.Second)}[r.IntN(3)]},
	}
	if one(8) {
		topic.Poison.Share = 1 // their handlers panic, and which they are is left to chance
	}
	return sim.Scenario{Horizon: 24 * time.Hour, Services: []sim.Service{service}, Topics: []sim.Topic{topic}}, p
}

// end describes the end of a message.
type end struct {
	attempts int
	at       time.Duration
	why      string
}

// simulated flies the script, and returns when each message was sent and how it ended.
func simulated(t *testing.T, s sim.Scenario, p lull.Policy) (sent map[int64]time.Duration, ends map[int64]end) {
	t.Helper()
	sent, ends = map[int64]time.Duration{}, map[int64]end{}
	r := must.Have(sim.Run(t.Context(), s, sim.Contender{Policy: p}, sim.Options{Message: func(m sim.MessageEnd) {
		sent[m.Number] = m.Sent
		ends[m.Number] = end{m.Attempts, m.At, m.Reason.String()}
	}}))
	if left := r.Topics[0].Left; left > 0 {
		t.Fatalf("%d messages are left: %+v %+v", left, s, p)
	}
	return sent, ends
}

// mortal is a connection to a broker that ends with its process.
type mortal struct {
	*queue.MemoryBroker
	process context.Context
}

func (m *mortal) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.process, cancel)()
	return m.MemoryBroker.Receive(ctx, w)
}

func (m *mortal) Extend(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
	if m.process.Err() != nil {
		return time.Time{}, queue.ErrLost
	}
	return m.MemoryBroker.Extend(ctx, d, lease)
}

func (m *mortal) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if m.process.Err() != nil {
		return queue.ErrLost
	}
	return m.MemoryBroker.Settle(ctx, d, s)
}

var errDown = errors.New("the service is down")

// real plays the script with queue.Consumer and queue.MemoryBroker, in a bubble of virtual time.
func real(t *testing.T, s sim.Scenario, p lull.Policy, sent map[int64]time.Duration) map[int64]end { //clock: it is called in a bubble
	t.Helper()
	topic, service := &s.Topics[0], &s.Services[0]
	memory := must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{CountDefers: topic.Broker.CountDefers, FixedLeases: topic.Broker.FixedLeases, MaxDelay: topic.Broker.MaxDelay}))
	start := time.Now()
	down := func() bool {
		now := time.Since(start)
		for _, f := range service.Faults {
			if now >= f.At && now < f.At+f.For {
				return true
			}
		}
		return false
	}
	handler := func(ctx context.Context, _ *queue.Message) error {
		takes, err := service.Time.Mean, error(nil)
		switch {
		case topic.Poison.Share > 0:
			panic("poison")
		case down():
			takes, err = service.ErrorTime, lull.Transient(errDown)
		}
		select {
		case <-time.After(takes):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var mu sync.Mutex
	ends := map[int64]end{}
	c := topic.Consumers
	config := queue.Config{Concurrency: c.Concurrency, Lease: c.Lease, Quick: c.Quick, QuickWait: c.QuickWait, Drain: -1}
	// live is the life of a process, until it is killed.
	live := func(process context.Context) {
		d, err := lull.NewDependency("api", p, lull.WithRand(seed.Source(t)))
		if err != nil {
			t.Error(err)
			return
		}
		broker := &mortal{MemoryBroker: memory, process: process}
		observe := func(_ context.Context, e queue.Event) {
			if e.Kind != queue.EventSettled || e.Outcome != queue.Ack && e.Outcome != queue.DeadLetter {
				return
			}
			var id int64
			fmt.Sscan(e.ID, &id)
			why := e.Reason
			switch {
			case e.Outcome == queue.Ack:
				why = "success"
			case why == queue.ReasonPanicked:
				why = "attempts_exhausted"
			}
			mu.Lock()
			defer mu.Unlock()
			ends[id] = end{e.Attempt, time.Since(start), why}
		}
		consumer, err := queue.New(topic.Name, broker, d, handler, config, queue.WithObserver(observe))
		if err != nil {
			t.Error(err)
			return
		}
		if err := consumer.Run(process); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	over, stop := context.WithCancel(context.Background())
	all.Go(func() {
		for n := int64(1); n <= int64(len(sent)); n++ {
			time.Sleep(sent[n] - time.Since(start))
			if err := memory.Send(over, queue.Outgoing{}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for _, k := range c.Kills {
			process, kill := context.WithDeadline(over, start.Add(k.At))
			live(process)
			kill()
			time.Sleep(k.At + k.For - time.Since(start))
		}
		live(over)
	})
	for range c.Processes - 1 {
		all.Go(func() { live(over) })
	}
	time.Sleep(s.Horizon)
	stop()
	all.Wait()
	return ends
}

// The simulated queue and the one that ships do the same with every message, to the
// nanosecond: how often it was tried, when it ended, and why.
func TestTheSimulatedQueueIsTheShippedOne(t *testing.T) {
	t.Parallel()
	n, base := 40, seed.Rand(t).Uint64()
	if long { // other scripts in each run
		n, base = 400, seed.Fresh(t)
	}
	messages, reasons := 0, map[string]int{}
	for i := range n {
		s, p := script(rand.New(rand.NewPCG(base, uint64(i))))
		sent, want := simulated(t, s, p)
		synctest.Test(t, func(t *testing.T) {
			got := real(t, s, p, sent)
			for id := int64(1); id <= int64(len(sent)); id++ {
				if got[id] != want[id] {
					t.Errorf("script %d: message %d, sent at %v: in earnest %+v, simulated %+v", i, id, sent[id], got[id], want[id])
				}
				reasons[got[id].why]++
			}
			if t.Failed() {
				t.Errorf("script %d of seed %d: %+v\n%+v", i, base, s, p)
			}
		})
		messages += len(sent)
	}
	t.Logf("%d messages: %v", messages, reasons)
	for _, why := range []string{"success", "attempts_exhausted", "crashed", "deadline"} {
		if reasons[why] == 0 {
			t.Errorf("%d messages ended with %s: this test shows nothing of it", reasons[why], why)
		}
	}
}
