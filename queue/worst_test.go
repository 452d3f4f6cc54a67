package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// misfortune is the result of an attempt.
type misfortune uint8

const (
	fails       misfortune = iota // after as long as it may take
	hinted                        // likewise, and the server asks for the longest wait
	rateLimited                   // likewise, and the server asks for less
	killed                        // likewise, and the worker dies with it
	misfortunes
)

// mortal is a broker whose workers die. A dead worker cannot reach it any more with its last
// delivery.
type mortal struct {
	*queue.MemoryBroker
	mu   sync.Mutex
	dead map[string]bool
	out  map[string]any // receipts, by id
}

func (m *mortal) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	got, err := m.MemoryBroker.Receive(ctx, w)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range got {
		m.out[d.ID] = d.Receipt
	}
	return got, err
}

func (m *mortal) die(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[fmt.Sprint(id, m.out[id])] = true
}

func (m *mortal) died(d *queue.Delivery) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead[fmt.Sprint(d.ID, d.Receipt)]
}

func (m *mortal) Extend(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
	if m.died(d) {
		return time.Time{}, errBlip
	}
	return m.MemoryBroker.Extend(ctx, d, l)
}

func (m *mortal) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if m.died(d) {
		return lull.Permanent(errBlip)
	}
	return m.MemoryBroker.Settle(ctx, d, s)
}

// life is how long a message takes from its first delivery to its end, if its attempts end
// so and every random draw is the worst. A worker that is killed is replaced at once.
func life(t *testing.T, p lull.Policy, c queue.Config, mc queue.MemoryBrokerConfig, fate func(kills, attempt, try int) misfortune) (took time.Duration) {
	bubble(t, func(t *testing.T) {
		b := &mortal{MemoryBroker: memory(t, mc), dead: map[string]bool{}, out: map[string]any{}}
		send(t, b, "hello")
		began := time.Now()
		var mu sync.Mutex
		var workers []*running
		var work func()
		work = func() {
			mu.Lock()
			defer mu.Unlock()
			kills := len(workers)
			if kills > 0 {
				workers[kills-1].cancel()
			}
			workers = append(workers, start(t, b, dependency(t, p, lull.WithRand(func() uint64 { return math.MaxUint64 })), func(ctx context.Context, m *queue.Message) error {
				// The worst moment to fail is just before the time is over; and to be killed, just after the
				// lease was extended.
				<-ctx.Done()
				switch fate(kills, m.Attempt, m.Try) {
				case hinted:
					return lull.RetryAfter(errBlip, p.WithDefaults().HintLimit)
				case rateLimited:
					return lull.RetryAfter(errBlip, 0)
				case killed:
					m.Extend(context.WithoutCancel(ctx), 0)
					b.die(m.ID)
					work()
					return errors.New("nobody hears this")
				}
				return lull.Transient(errBlip)
			}, c))
		}
		work()
		for b.Len() > 0 && time.Since(began) < 1000*time.Hour {
			time.Sleep(time.Millisecond)
			if time.Since(began) > time.Second {
				time.Sleep(time.Since(began) / 2000) // half a thousandth, to be quick
			}
		}
		took = time.Since(began)
		for _, r := range workers {
			r.stop(t)
		}
	})
	return took
}

// No message lives longer than WorstCase returns, and some come close.
func TestWorstCase(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	closest := 0.0
	for range 15 {
		p := plain(1 + r.IntN(4))
		p.AttemptTimeout = pick(time.Second, 7*time.Second, 40*time.Second)
		p.Backoff = backoff.Schedule{Base: pick(100*time.Millisecond, 3*time.Second), Cap: pick(time.Second, time.Minute), Jitter: backoff.Jitter(r.IntN(3))}
		if p.Backoff.Cap < p.Backoff.Base {
			p.Backoff.Cap = p.Backoff.Base
		}
		p.HintLimit = pick(0, time.Second, 30*time.Second)
		p.RateLimitedBase = pick(0, 2*time.Second)
		p.Deadline = pick(lull.NoTimeout, lull.NoTimeout, 20*time.Second, 2*time.Minute)
		c := queue.Config{Lease: pick(2*time.Second, 30*time.Second), Quick: r.IntN(3), QuickWait: pick(0, 5*time.Second)}
		mc := queue.MemoryBrokerConfig{CountDefers: r.IntN(2) == 0, FixedLeases: r.IntN(3) == 0, MaxDelay: pick(0, 0, 10*time.Second, -1)}
		if r.IntN(4) == 0 {
			mc.MaxLease = 2 * c.Lease
		}
		if p.Validate() != nil {
			continue
		}
		can := memory(t, mc).Capabilities()
		worst := c.WorstCase(p, can)
		longest := time.Duration(0)
		var how any
		try := func(name any, fate func(kills, attempt, try int) misfortune) {
			if took := life(t, p, c, mc, fate); took > longest {
				longest, how = took, name
			}
		}
		for m := range misfortunes {
			try(m, func(int, int, int) misfortune { return m })
		}
		kills := 3 // those after the last attempt
		if can.Losses {
			kills = max(6, p.Attempts)
		}
		try("hinted, killed at last", func(_, attempt, _ int) misfortune {
			if attempt >= p.Attempts {
				return killed
			}
			return hinted
		})
		try("hinted, killed at last but once", func(done, attempt, _ int) misfortune {
			if attempt >= p.Attempts && done < kills-1 {
				return killed
			}
			return hinted
		})
		for range 3 {
			seed := r.Uint64()
			try("any", func(done, attempt, try int) misfortune {
				return misfortune(rand.New(rand.NewPCG(seed, uint64(done*10_000+attempt*100+try))).IntN(int(misfortunes)))
			})
		}
		// What the simulation itself adds: it looks now and then, and time is rounded.
		if slack := worst/1000 + 5*time.Millisecond; longest > worst+slack {
			t.Errorf("a message took %v (%v), the worst case is %v: %+v\n%+v\n%+v", longest, how, worst, p, c, mc)
		}
		closest = max(closest, float64(longest)/float64(worst))
		// Quick runs and deadlines are bounded for the worst that could be, not for what is.
		if share := float64(longest) / float64(worst); share < 0.85 && c.Quick == 0 && p.Deadline < 0 {
			t.Errorf("the longest took %v (%v), the worst case is %v (%.2f): %+v\n%+v\n%+v", longest, how, worst, share, p, c, mc)
		}
	}
	t.Logf("the longest life was %.3f of the worst case", closest)
	if closest < 0.98 {
		t.Errorf("no life comes close to its worst case: %.3f", closest)
	}
}

func TestWorstCaseByHand(t *testing.T) {
	can := memory(t, queue.MemoryBrokerConfig{}).Capabilities()
	p := plain(3)
	p.HintLimit, p.RateLimitedBase = 1, time.Second // the least; it is in each of the waits
	p.AttemptTimeout = 10 * time.Second
	p.Backoff = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: time.Second}
	for _, c := range []struct {
		what   string
		change func(*lull.Policy, *queue.Config, *queue.Capabilities)
		want   time.Duration
	}{
		// Three attempts of 10 s in which the worker dies, and a lease of 30 s after each; and three more.
		{"killed each time, losses not told", func(_ *lull.Policy, _ *queue.Config, c *queue.Capabilities) { c.Losses = false }, 6 * 40 * time.Second},
		// Attempts that fail; and five times it dies, and waits for a second; and at last once more.
		{"killed each time", func(*lull.Policy, *queue.Config, *queue.Capabilities) {}, (11+11+10+5*(40+1)+30)*time.Second + 2},
		{"waits longer than leases", func(p *lull.Policy, _ *queue.Config, _ *queue.Capabilities) { p.Backoff.Base = time.Minute }, (70+70+10+5*(40+60)+30)*time.Second + 2},
		{"without leases", func(p *lull.Policy, _ *queue.Config, c *queue.Capabilities) {
			p.Backoff.Base = time.Minute
			c.Leases, c.Extends = false, false
		}, (70+70+10+5*(10+60))*time.Second + 2},
		{"no delays", func(p *lull.Policy, _ *queue.Config, c *queue.Capabilities) { c.MaxDelay, c.Leases = 0, false }, (30 + 5*10) * time.Second},
		{"nothing bounds an attempt", func(p *lull.Policy, _ *queue.Config, _ *queue.Capabilities) { p.AttemptTimeout = lull.NoTimeout }, math.MaxInt64},
		{"the lease does", func(p *lull.Policy, _ *queue.Config, c *queue.Capabilities) {
			p.AttemptTimeout, c.Extends = lull.NoTimeout, false
		}, (92+5*(30+1))*time.Second + 2},
		{"made again here, after the longest wait", func(p *lull.Policy, c *queue.Config, _ *queue.Capabilities) {
			p.Backoff.Kind, c.Quick, c.QuickWait = backoff.Exponential, 1, time.Minute
		}, (3*(10+2+10)+2+2+5*(22+30)+30+1+2+4+8+16)*time.Second + 9},
		{"one attempt is not made again here", func(p *lull.Policy, c *queue.Config, _ *queue.Capabilities) { p.Attempts, c.Quick = 1, 3 }, (40 + 5*(40+1)) * time.Second},
	} {
		p, cfg, can := p, queue.Config{}, can
		c.change(&p, &cfg, &can)
		check.Equal(t, cfg.WorstCase(p, can), c.want, "%s", c.what)
	}
}

// A field that is left out counts as what it defaults to.
func TestWorstCaseOfDefaults(t *testing.T) {
	can := memory(t, queue.MemoryBrokerConfig{}).Capabilities()
	want := queue.Config{}.WithDefaults().WorstCase(lull.Policy{}.WithDefaults(), can)
	if got := (queue.Config{}).WorstCase(lull.Policy{}, can); got != want || got >= time.Hour {
		t.Errorf("%v, want %v", got, want)
	}
}

// The recommended policy is valid, and its times are those in its comment.
func TestPolicy(t *testing.T) {
	p := queue.Policy()
	must.Succeed(p.Validate())
	d := dependency(t, p)
	var mean time.Duration
	const rounds = 2000
	for range rounds {
		for n := 1; n < p.Attempts; n++ {
			mean += d.State().Wait(n, lull.Verdict{Kind: lull.KindTransient}, d.Rand()) / rounds
		}
	}
	if mean < 4*time.Minute || mean > 4*time.Minute+32*time.Second {
		t.Errorf("the waits are %v in all on average", mean)
	}
	if p.MaxAttempts() != 10 || p.LongestWait(9) < 256*time.Second {
		t.Errorf("%d attempts", p.MaxAttempts())
	}
}
