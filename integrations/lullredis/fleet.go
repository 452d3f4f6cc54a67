package lullredis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/storecall"
)

// A Fleet syncs the budgets of one instance with those of all others that use the same
// Redis and prefix. It has one goroutine, whatever the number of dependencies, and sends
// their syncs in one pipeline. Its methods may be called concurrently. Close it when the
// instance ends.
type Fleet struct {
	config   FleetConfig
	exchange exchangeFunc
	rnd      func() uint64
	epoch    time.Time

	wake    chan struct{}      // a budget has run out, or is new
	results chan []*budgetSync // of the exchange under way, if any
	stop    chan struct{}      // closed by Close
	ended   chan struct{}      // closed when the goroutine is gone
	cancel  context.CancelFunc
	ctx     context.Context

	mu      sync.Mutex     // guards the fields below
	budgets []*FleetBudget // by name
	closed  bool
}

// ErrClosed is the error of a Fleet after Close.
var ErrClosed = errors.New("lullredis: the fleet was closed")

// Open returns a Fleet that uses Redis through client. The caller closes client, after the Fleet.
// Redis need not be there yet: until it answers, the tokens that calls earn pay for retries.
//
// The error names every invalid field of c, or the client's fault: go-redis ignores the deadline of
// a context unless its options have ContextTimeoutEnabled. It would then wait 12 s and more for a
// server that has stopped answering, and the instance would learn late that the server is back.
func Open(client redis.UniversalClient, c FleetConfig) (*Fleet, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("lullredis: fleet: %w", err)
	}
	if err := respectsDeadlines(client); err != nil {
		return nil, err
	}
	return open(pipeline(client), c, rand.Uint64), nil
}

// open starts a Fleet whose syncs use x.
func open(x exchangeFunc, c FleetConfig, rnd func() uint64) *Fleet {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fleet{
		config: c.withDefaults(), exchange: x, rnd: rnd, epoch: time.Now(), wake: make(chan struct{}, 1),
		results: make(chan []*budgetSync, 1), stop: make(chan struct{}), ended: make(chan struct{}), ctx: ctx,
		cancel: cancel,
	}
	go f.run()
	return f
}

// Budget returns the instance's budget for a dependency. Instances mean the same dependency if they
// give it the same name, which may be any text. A second call returns the same budget; with another
// BudgetConfig it returns an error.
func (f *Fleet) Budget(name string, c BudgetConfig) (*FleetBudget, error) {
	if name == "" {
		return nil, errors.New("lullredis: a budget needs the name of its dependency, by which the fleet knows it")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	at, there := slices.BinarySearchFunc(f.budgets, name, func(b *FleetBudget, name string) int { return strings.Compare(b.name, name) })
	if there {
		if b := f.budgets[at]; b.config == c {
			return b, nil
		}
		return nil, fmt.Errorf("lullredis: the budget of %s exists, with another Config: want %+v", name, f.budgets[at].config)
	}
	b, err := newBudget(name, c, f, f.id(), f.now())
	if err != nil {
		return nil, fmt.Errorf("lullredis: the budget of %s: %w", name, err)
	}
	f.budgets = slices.Insert(slices.Clone(f.budgets), at, b)
	f.wakeUp()
	return b, nil
}

// Snapshots returns the state of each of the instance's budgets, by name.
func (f *Fleet) Snapshots() []Snapshot {
	return choice.Each(f.allBudgets(), (*FleetBudget).Snapshot)
}

// Close hands the instance's tokens back to the fleet, for as long as ctx allows, but no longer
// than FleetConfig.SyncTimeout. An error means that the fleet may not have got them; then it misses
// them for ten minutes. After Close the budgets pay only with tokens that calls earn. Close the
// client after that. A second Close does nothing.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	again := f.closed
	f.closed = true
	f.mu.Unlock()
	if again {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.SyncTimeout)
	defer cancel()
	close(f.stop)
	defer f.cancel()
	select {
	case <-f.ended:
	case <-ctx.Done():
		f.cancel()
		<-f.ended
	}
	batch := choice.Each(f.allBudgets(), func(b *FleetBudget) *budgetSync {
		return &budgetSync{budget: b, id: b.ledger.id, request: b.ledger.lastRequest()}
	})
	if len(batch) == 0 {
		return nil
	}
	err := storecall.Wait(ctx, func() error {
		f.exchange(ctx, batch)
		var errs []error
		for _, s := range batch {
			if s.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.budget.name, s.err))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("lullredis: handing tokens back: %w", err)
	}
	return nil
}

func (f *Fleet) allBudgets() []*FleetBudget {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.budgets
}

func (f *Fleet) now() time.Duration { return time.Since(f.epoch) }

// wakeUp wakes the goroutine, if it is not about to wake already. It never blocks.
func (f *Fleet) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Fleet) id() string { return fmt.Sprintf("%016x%016x", f.rnd(), f.rnd()) }

// A budgetSync is one budget's part of an exchange.
type budgetSync struct {
	budget  *FleetBudget
	id      string
	request request
	answer  answer
	err     error
}

// An exchangeFunc sends requests and fills in answer or err of each. It should end soon
// after ctx has.
type exchangeFunc func(ctx context.Context, batch []*budgetSync)

// run is the goroutine. It decides when to sync, and the ledgers decide what. One exchange at a time
// runs beside it, so a client that ignores its context delays only syncs.
func (f *Fleet) run() {
	defer close(f.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var (
		round     time.Duration // when all sync again
		due       bool          // a round is due. It waits for an exchange under way
		busy      []*budgetSync // under way
		answerDue time.Duration // when they should be answered
	)
	for {
		select {
		case <-f.stop:
			// A sync that Redis reads after the last request would register the instance again.
			if busy != nil {
				select {
				case batch := <-f.results:
					f.recordAnswers(batch)
				case <-f.ctx.Done():
				}
			}
			return
		case <-f.wake:
		case <-timer.C:
		case batch := <-f.results:
			f.recordAnswers(batch)
			busy = nil
		}
		now := f.now()
		all := f.allBudgets()
		if now >= round {
			round, due = now+f.spread(), true
			for _, b := range all {
				b.ledger.accrue(now, f.rnd)
			}
		}
		next := round
		switch {
		case busy == nil:
			var batch []*budgetSync
			for _, b := range all {
				at, urgent := b.ledger.needsSync()
				if due || urgent && at <= now {
					if r, ok := b.ledger.nextRequest(now, b.local.Balance(0)); ok {
						batch = append(batch, &budgetSync{budget: b, id: b.ledger.id, request: r})
					}
				} else if urgent {
					next = min(next, at)
				}
			}
			due = false
			if len(batch) > 0 {
				busy, answerDue = batch, now+f.config.SyncTimeout+f.config.SyncTimeout/4
				go f.send(batch)
			}
		case now >= answerDue:
			for _, s := range busy {
				s.budget.ledger.overdue(errNoAnswerInTime)
			}
		}
		timer.Reset(next - now)
	}
}

// errNoAnswerInTime is the error of an exchange that continues after its time.
var errNoAnswerInTime = errors.New("no answer in time, and the client goes on waiting: does it heed the deadlines of contexts? (ContextTimeoutEnabled)")

func (f *Fleet) send(batch []*budgetSync) {
	ctx, cancel := context.WithTimeout(f.ctx, f.config.SyncTimeout)
	defer cancel()
	f.exchange(ctx, batch)
	f.results <- batch // never blocks: there is one exchange at a time
}

func (f *Fleet) recordAnswers(batch []*budgetSync) {
	now := f.now()
	for _, s := range batch {
		if s.err != nil {
			s.budget.ledger.lost(s.err)
		} else {
			s.budget.ledger.apply(now, s.answer, f.id)
		}
	}
}

// spread returns the time to the next round: a random time within ±25 % of SyncEvery.
func (f *Fleet) spread() time.Duration {
	e := f.config.SyncEvery
	return e - e/4 + time.Duration(chance.UpTo(uint64(e/2), f.rnd))
}
