package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// plain is a policy of n attempts, a second apart, with neither breaker nor budget.
func plain(n int) lull.Policy {
	return lull.Policy{
		Attempts: n, AttemptTimeout: time.Minute, Deadline: lull.NoTimeout,
		Backoff:  backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: time.Second},
		Timeouts: lull.TimeoutsAlways, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

// dependency draws from a seeded source, unless an option sets another.
func dependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("backend", p, append([]lull.Option{lull.WithRand(seed.Source(t))}, opts...)...))
}

// memory is a broker with these messages.
func memory(t testing.TB, c queue.MemoryBrokerConfig, bodies ...string) *queue.MemoryBroker {
	t.Helper()
	m := must.Have(queue.NewMemoryBroker(c))
	send(t, m, bodies...)
	return m
}

// log collects events.
type log struct {
	mu     sync.Mutex
	events []queue.Event
}

func (l *log) observe(_ context.Context, e queue.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) of(kind queue.EventKind) (out []queue.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// outcomes are those of all settlements, in a line.
func (l *log) outcomes() string {
	s := ""
	for i, e := range l.of(queue.EventSettled) {
		if i > 0 {
			s += ", "
		}
		s += e.Outcome.String()
		if e.After > 0 {
			s += " " + e.After.String()
		}
		if e.Reason != "" {
			s += " " + e.Reason
		}
	}
	return s
}

// running is a consumer that runs until stop.
type running struct {
	*queue.Consumer
	log
	cancel context.CancelFunc
	done   chan error
	began  time.Time
}

func start(t testing.TB, b queue.Broker, d *lull.Dependency, h queue.Handler, c queue.Config, o ...queue.Option) *running {
	t.Helper()
	r := &running{done: make(chan error, 1), began: time.Now()}
	r.Consumer = must.Have(queue.New("orders", b, d, h, c, append(o, queue.WithObserver(r.observe))...))
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- r.Run(ctx) }()
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	check.Is(t, <-r.done, nil, "Run")
}

// run lets it run that long.
func (r *running) run(t testing.TB, d time.Duration) *running {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	r.stop(t)
	return r
}

func send(t testing.TB, s queue.Sender, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		must.Succeed(s.Send(context.Background(), queue.Outgoing{Body: []byte(b), Headers: queue.Headers{"kind": "test"}}))
	}
}

// letters are the dead letters in m, taken out.
func letters(t testing.TB, m *queue.MemoryBroker) (out []*queue.Letter) {
	t.Helper()
	ctx := context.Background()
	dead := m.DeadLetters()
	for dead.Len() > 0 {
		got := must.Have(dead.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute}))
		for _, d := range got {
			out = append(out, queue.LetterOf(d))
			must.Succeed(dead.Settle(ctx, d, queue.Settlement{Outcome: queue.Ack}))
		}
	}
	return out
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// subtest is a subtest in a bubble.
func subtest(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// middle is the middle of all random draws.
func middle() uint64 { return 1 << 63 }

var errBlip = errors.New("blip")

// dead is the letter of a message whose handler fails with err, which is terminal.
func dead(t testing.TB, err error) *queue.Letter {
	t.Helper()
	m := memory(t, queue.MemoryBrokerConfig{}, "hello")
	start(t, m, dependency(t, plain(3)), func(context.Context, *queue.Message) error { return err }, queue.Config{}).run(t, time.Minute)
	all := letters(t, m)
	if len(all) != 1 {
		t.Fatalf("%d dead letters", len(all))
	}
	return all[0]
}

// broker is a MemoryBroker that counts the calls to it. Functions in it replace some calls.
type broker struct {
	*queue.MemoryBroker
	receives, extends, settles atomic.Int64

	can     func(*queue.Capabilities)
	receive func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error)
	extend  func(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error)
	settle  func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error
}

func (b *broker) Capabilities() queue.Capabilities {
	can := b.MemoryBroker.Capabilities()
	if b.can != nil {
		b.can(&can)
	}
	return can
}

func (b *broker) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	b.receives.Add(1)
	if b.receive != nil {
		return b.receive(ctx, w)
	}
	return b.MemoryBroker.Receive(ctx, w)
}

func (b *broker) Extend(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
	b.extends.Add(1)
	if b.extend != nil {
		return b.extend(ctx, d, l)
	}
	return b.MemoryBroker.Extend(ctx, d, l)
}

func (b *broker) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	b.settles.Add(1)
	if b.settle != nil {
		return b.settle(ctx, d, s)
	}
	return b.MemoryBroker.Settle(ctx, d, s)
}

// pausing is a broker that is a Pauser.
type pausing struct {
	broker
	pauses atomic.Int64
	pause  func(until time.Time) error
}

func (p *pausing) Pause(_ context.Context, until time.Time) error {
	p.pauses.Add(1)
	return p.pause(until)
}

// unreachable is m, whose Extend and Settle fail while these are set.
func unreachable(m *queue.MemoryBroker) (b *broker, extend, settle *atomic.Bool) {
	b, extend, settle = &broker{MemoryBroker: m}, &atomic.Bool{}, &atomic.Bool{}
	b.extend = func(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
		if extend.Load() {
			return time.Time{}, errBlip
		}
		return m.Extend(ctx, d, l)
	}
	b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
		if settle.Load() {
			return errBlip
		}
		return m.Settle(ctx, d, s)
	}
	return b, extend, settle
}

// revised is m, whose deliveries are changed.
func revised(m *queue.MemoryBroker, change func(*queue.Delivery)) *broker {
	return &broker{MemoryBroker: m, receive: func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
		got, err := m.Receive(ctx, w)
		for _, d := range got {
			change(d)
		}
		return got, err
	}}
}
