package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/sleep"
)

// A Consumer handles the messages of one queue. Make one with [New]. Run may be called
// once; the other methods at any time, concurrently.
type Consumer struct {
	// Configuration.
	name         string
	broker       Broker
	capabilities Capabilities
	dependency   *lull.Dependency
	handler      Handler
	config       Config
	classify     lull.Classifier
	observers    []Observer
	random       func() uint64

	// State.
	plan      atomic.Pointer[engine.Plan] // the latest that does not hedge
	probes    consumers.ProbeCounter[string]
	histories lostDeliveries
	line      turns
	running   atomic.Bool
	inFlight  atomic.Int64
	probing   atomic.Int64  // of these, what was fetched to be a probe of the breaker
	held      atomic.Int64  // of these, what waits for the breaker here
	slots     chan struct{} // one for each message that may be handled
	ended     chan struct{} // a message has ended, for the gate
	settles   *lull.Dependency

	work        sync.WaitGroup
	handlers    context.Context // ends when handlers must, with ErrDraining
	endHandlers context.CancelCauseFunc
	calls       context.Context // of the calls to the broker about what is out; ends when Run has returned
	stopping    <-chan struct{} // closed when nothing new may begin
	abandoned   atomic.Bool     // Run has returned, and handlers have not
	counts      counts
}

// An Option wires a consumer: what cannot be data in a Config.
type Option func(*Consumer)

// WithClassifier makes classify decide what errors of the handler mean, except those of
// calls that the handler made with lull ([Classify]). Marks add to what it returns, as in
// [lull.VerdictOf].
func WithClassifier(classify lull.Classifier) Option {
	return func(c *Consumer) {
		if classify != nil {
			c.classify = classify
		}
	}
}

// WithObserver reports every event to o. It may be given several times. Without an observer,
// each loss is written to slog.Default: see [NewLog].
func WithObserver(o Observer) Option {
	return func(c *Consumer) {
		if o != nil {
			c.observers = append(c.observers, o)
		}
	}
}

// New returns a consumer of the queue that b is connected to. name stands in events, and in dead
// letters as their source. d is the dependency that the handler calls: its policy decides
// how often and when a message is tried again, its breaker pauses the consumer, and
// its budget, throttle and concurrency limit apply. See [Policy] for one that fits.
func New(name string, b Broker, d *lull.Dependency, h Handler, config Config, options ...Option) (*Consumer, error) {
	if name == "" {
		return nil, errors.New("a consumer needs a name: that of its queue, for dead letters and events")
	}
	switch {
	case b == nil:
		return nil, fmt.Errorf("the consumer of %s needs a broker", name)
	case d == nil:
		return nil, fmt.Errorf("the consumer of %s needs a dependency", name)
	case h == nil:
		return nil, fmt.Errorf("the consumer of %s needs a handler", name)
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("config of the consumer of %s: %w", name, err)
	}
	plan := d.Plan()
	if plan.Hedges() {
		return nil, fmt.Errorf("the consumer of %s: the policy of %s hedges (Hedge.Attempts), which messages do not; retries are Attempts", name, d.Name())
	}
	config = config.WithDefaults()
	c := &Consumer{
		name: name, broker: b, capabilities: b.Capabilities(), dependency: d, handler: h, config: config,
		classify: Classify,
		random:   d.Rand(),
		slots:    make(chan struct{}, config.Concurrency),
		ended:    make(chan struct{}, 1),
	}
	c.line.crowd = consumers.Crowd{Most: config.Concurrency, FreeDefer: c.capabilities.FreeDefer}
	for _, o := range options {
		if o != nil {
			o(c)
		}
	}
	if len(c.observers) == 0 {
		c.observers = []Observer{func(ctx context.Context, e Event) { logEvent(ctx, nil, e, slog.LevelError) }} // what is lost
	}
	c.plan.Store(plan)
	c.settles, _ = lull.NewDependency("broker of "+name, settlePolicy(config.Lease), lull.WithRand(c.random))
	return c, nil
}

// InFlight returns how many messages this consumer has in hand.
func (c *Consumer) InFlight() int { return int(c.inFlight.Load()) }

// Run fetches and handles messages until ctx ends, or the broker returns an error marked
// with lull.Permanent, which Run returns. Then Run fetches no more, lets handlers continue
// for Config.Drain, ends their contexts, and returns when all have returned and their
// messages are settled; or after another five seconds with ErrUndrained. What was not
// handled goes back to the queue.
//
// Handlers get the values of ctx, but not its end.
func (c *Consumer) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("queue: Run was called before")
	}
	c.handlers, c.endHandlers = context.WithCancelCause(context.WithoutCancel(ctx))
	var over context.CancelFunc
	c.calls, over = context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	ctx, stop := context.WithCancel(ctx)
	c.stopping = ctx.Done()
	err := c.fetch(ctx)
	stop()
	if drainErr := c.drain(); drainErr != nil && err == nil {
		err = drainErr
	}
	return err
}

// ErrUndrained is returned by Run if handlers have not returned although their contexts
// have ended. They still run; their messages go back to the queue when
// their leases lapse or the connection ends.
var ErrUndrained = errors.New("queue: handlers have not returned though their contexts have ended")

// handlerGrace is how long Run waits for handlers whose contexts have ended.
const handlerGrace = 5 * time.Second

func (c *Consumer) drain() error {
	defer c.endHandlers(ErrDraining)
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	for _, patience := range [...]time.Duration{c.config.Drain, handlerGrace} {
		select {
		case <-done:
			return nil
		case <-time.After(patience):
			c.endHandlers(ErrDraining)
		}
	}
	c.abandoned.Store(true)
	return ErrUndrained
}

func (c *Consumer) fetch(ctx context.Context) error {
	g := gate{c: c}
	failures := 0
	for {
		most, probe := g.awaitFetch(ctx)
		n := c.room(ctx, most)
		if n == 0 {
			return nil // ctx has ended
		}
		began := time.Now()
		got, err := c.broker.Receive(ctx, Want{Max: n, Lease: c.config.Lease})
		late := c.capabilities.FreeDefer && ctx.Err() != nil
		arrived := make([]*workInHand, len(got))
		for i, d := range got {
			arrived[i] = c.receive(d)
			if arrived[i].earlier == nil {
				arrived[i].decide(late)
			}
		}
		// Messages that have crashed wait for the others, not the others for them.
		slices.SortStableFunc(arrived, func(a, b *workInHand) int { return a.crashes - b.crashes })
		for i, w := range arrived {
			if i >= n { // more than was asked for: there is no room for it
				c.slots <- struct{}{}
			}
			c.begin(w, probe && i < n, late && i < n)
		}
		for range n - min(len(got), n) {
			<-c.slots
		}
		switch {
		case err == nil:
			failures = 0
			if len(got) == 0 && time.Since(began) < minReceiveInterval {
				sleep.For(ctx, minReceiveInterval) // the broker should have waited
			}
			continue
		case ctx.Err() != nil:
			return nil
		}
		v := lull.Classify(err)
		if v.Kind == lull.KindPermanent && v.Code != engine.CodeRetriedBelow {
			return err
		}
		failures++
		s := c.planNow().Policy().Backoff
		s.Cap = min(cmp.Or(s.Cap, longestWait), longestWait)
		s.Base = min(s.Base, s.Cap)
		s.Floor = min(s.Floor, s.Base/2)
		wait := max(s.Delay(failures, 0, c.random), shortestWait)
		c.notify(Event{Kind: EventReceiveFailed, Err: err, Code: v.Code, After: wait})
		sleep.For(ctx, wait)
	}
}

// Bounds of the waits after Receive has failed: nobody should ask a server that is down without a pause, nor
// leave messages for minutes after it is back.
const (
	shortestWait = 50 * time.Millisecond
	longestWait  = 10 * time.Second
)

// minReceiveInterval is the shortest time between two calls of Receive that return nothing.
const minReceiveInterval = 10 * time.Millisecond

// room waits for a slot. It takes all free slots, up to most, and returns how many.
func (c *Consumer) room(ctx context.Context, most int) int {
	if ctx.Err() != nil || most == 0 {
		return 0
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; ; n++ {
		if n == most {
			return n
		}
		select {
		case c.slots <- struct{}{}:
		default:
			return n
		}
	}
}

// begin handles w, which has a slot, in a goroutine of its own. late: the consumer was to
// stop before w came, so w is given back.
func (c *Consumer) begin(w *workInHand, probe, late bool) {
	c.inFlight.Add(1)
	if probe {
		c.probing.Add(1)
	}
	if w.earlier == nil {
		c.line.arrive(w)
	}
	c.work.Go(func() {
		defer func() {
			c.inFlight.Add(-1)
			if probe {
				c.probing.Add(-1)
			}
			<-c.slots
			select {
			case c.ended <- struct{}{}:
			default:
			}
		}()
		w.handle(late)
	})
}

func (c *Consumer) notify(e Event) {
	e.Queue = c.name
	c.counts.add(e)
	for _, o := range c.observers {
		o(c.handlers, e)
	}
}
