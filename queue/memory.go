package queue

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// A MemoryBrokerConfig sets what kind of broker a MemoryBroker is. It is plain, comparable data. The zero
// MemoryBrokerConfig makes one that can do everything.
type MemoryBrokerConfig struct {
	// Order is the order that is kept. Zero: none.
	Order Order
	// CountDefers: a deferral raises the attempt number, and Capabilities.Losses is false, as in SQS.
	CountDefers bool
	// FixedLeases: leases cannot be extended.
	FixedLeases bool
	// MaxLease is how long one delivery can be kept out. Zero: as long as it is extended.
	MaxLease time.Duration
	// MaxDelay is the longest delay. Zero: 12 h. Negative: there are no delays.
	MaxDelay time.Duration
	// Duplicates is for how long a message with the ID of another is discarded. Zero: 5
	// minutes. Negative: not at all.
	Duplicates time.Duration
	// Limit is the most messages that the queue holds; Send fails when it is full. Zero:
	// a million.
	Limit int
}

// Validate reports everything that is wrong with c at once.
func (c MemoryBrokerConfig) Validate() error {
	var l problem.List
	l.Check(c.Order <= Total, "Order", c.Order, "unordered, per-group or total")
	l.Check(c.MaxLease >= 0, "MaxLease", c.MaxLease, "a positive duration, or 0 for no limit")
	l.Check(c.MaxDelay <= 100*365*24*time.Hour, "MaxDelay", c.MaxDelay, "at most 100 years, 0 for the default of 12h, or less for none")
	l.Check(c.Limit >= 0, "Limit", c.Limit, "a positive number, or 0 for the default of a million")
	return l.Err()
}

func (c MemoryBrokerConfig) withDefaults() MemoryBrokerConfig {
	c.MaxDelay = max(cmp.Or(c.MaxDelay, 12*time.Hour), 0)
	c.Duplicates = max(cmp.Or(c.Duplicates, 5*time.Minute), 0)
	c.Limit = cmp.Or(c.Limit, 1_000_000)
	return c
}

// A MemoryBroker is a queue in the memory of one process, with leases, delays, attempt
// numbers and dead letters: for tests, and for work that may be lost with the process. It is a Broker
// and a Sender, for any number of consumers; it reads the clock with package time only,
// and so runs in virtual time under testing/synctest. It starts no goroutine.
type MemoryBroker struct {
	config MemoryBrokerConfig

	mu      sync.Mutex
	last    int64
	held    map[string]*entry // all messages, by id
	next    schedule          // those that can be handed out at some time, by that time
	groups  map[string][]*entry
	sent    map[string]time.Time // ids, until when they are remembered
	order   []string             // of sent
	changed chan struct{}        // closed when something may be handed out earlier than before
	dead    *MemoryBroker
}

type entry struct {
	d           Delivery
	seq         int64
	readyAt     time.Time // when it may be handed out (again)
	index       int       // in the schedule; -1: it is not the first of its group
	receipt     int       // of the delivery that is out; none: 0
	receipts    int       // receipts that were given
	out         bool      // nobody has settled the last delivery
	handedOutAt time.Time // when it was handed out
}

// NewMemoryBroker returns an empty queue.
func NewMemoryBroker(c MemoryBrokerConfig) (*MemoryBroker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config of a queue in memory: %w", err)
	}
	return newMemory(c), nil
}

func newMemory(c MemoryBrokerConfig) *MemoryBroker {
	return &MemoryBroker{
		config: c.withDefaults(), held: map[string]*entry{}, groups: map[string][]*entry{},
		sent: map[string]time.Time{}, changed: make(chan struct{}),
	}
}

// DeadLetters is the queue into which its dead letters go.
func (m *MemoryBroker) DeadLetters() *MemoryBroker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deadLetters()
}

func (m *MemoryBroker) deadLetters() *MemoryBroker {
	if m.dead == nil {
		m.dead = newMemory(MemoryBrokerConfig{Limit: m.config.Limit, Duplicates: m.config.Duplicates})
		m.dead.config.Duplicates = m.config.Duplicates // zero has become none
	}
	return m.dead
}

// Len is how many messages are in the queue, ready, waiting and out.
func (m *MemoryBroker) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.held)
}

// Capabilities is part of Broker.
func (m *MemoryBroker) Capabilities() Capabilities {
	return Capabilities{
		ExactDelay: true, MaxDelay: m.config.MaxDelay, FreeDefer: !m.config.CountDefers, Losses: !m.config.CountDefers, Order: m.config.Order,
		Leases: true, Extends: !m.config.FixedLeases, MaxLease: m.config.MaxLease,
		Deduplicates: m.config.Duplicates > 0,
	}
}

// ErrFull is the error of Send when a MemoryBroker is full.
var ErrFull = errors.New("queue: the queue in memory is full")

// Send is part of Sender. It never blocks.
func (m *MemoryBroker) Send(ctx context.Context, o Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for len(m.order) > 0 && !m.sent[m.order[0]].After(now) {
		delete(m.sent, m.order[0])
		m.order = m.order[1:]
	}
	if _, there := m.sent[o.ID]; there {
		return nil
	}
	if len(m.held) >= m.config.Limit {
		return lull.Transient(ErrFull)
	}
	if o.ID != "" { // for no time, if duplicates are not discarded
		m.sent[o.ID] = now.Add(m.config.Duplicates)
		m.order = append(m.order, o.ID)
	}
	m.last++
	e := &entry{seq: m.last, readyAt: now, index: -1}
	e.d = Delivery{
		ID: strconv.FormatInt(m.last, 10), Enqueued: now, Group: o.Group,
		Headers: maps.Clone(o.Headers), Body: slices.Clone(o.Body),
	}
	m.held[e.d.ID] = e
	group := m.groups[m.group(e)]
	if m.config.Order != Unordered {
		m.groups[m.group(e)] = append(group, e)
	}
	if len(group) == 0 {
		m.schedule(e)
	}
	return nil
}

func (m *MemoryBroker) group(e *entry) string {
	return choice.Either(m.config.Order == PerGroup, e.d.Group, "")
}

// schedule puts e into the schedule at e.readyAt.
func (m *MemoryBroker) schedule(e *entry) {
	if e.index < 0 {
		heap.Push(&m.next, e)
	} else {
		heap.Fix(&m.next, e.index)
	}
	if e.index == 0 {
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

func (m *MemoryBroker) remove(e *entry) {
	delete(m.held, e.d.ID)
	heap.Remove(&m.next, e.index)
	if m.config.Order == Unordered {
		return
	}
	g := m.group(e)
	rest := m.groups[g][1:]
	if len(rest) == 0 {
		delete(m.groups, g)
		return
	}
	m.groups[g] = rest
	m.schedule(rest[0])
}

// Receive is part of Broker.
func (m *MemoryBroker) Receive(ctx context.Context, w Want) ([]*Delivery, error) {
	for looked := false; ; looked = true {
		if err := ctx.Err(); err != nil && !looked {
			return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
		} else if err != nil {
			return nil, err
		}
		got, wait, changed := m.handOut(w)
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-time.After(wait):
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// handOut hands out what is ready. If nothing is ready, it returns how long to wait, and what ends the wait earlier.
func (m *MemoryBroker) handOut(w Want) (got []*Delivery, wait time.Duration, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for len(got) < w.Max && len(m.next) > 0 && !m.next[0].readyAt.After(now) {
		e := m.next[0]
		e.receipts++
		e.receipt = e.receipts
		e.handedOutAt = now
		e.d.Attempt++
		if e.out && !m.config.CountDefers {
			e.d.Lost++
		}
		e.out = true
		e.readyAt = now.Add(m.lease(e, now, w.Lease))
		m.schedule(e)
		d := e.d
		d.Lease, d.Receipt = e.readyAt, e.receipt
		got = append(got, &d)
		if e.d.FirstSeen.IsZero() {
			e.d.FirstSeen = now
		}
	}
	wait = math.MaxInt64
	if len(m.next) > 0 {
		wait = m.next[0].readyAt.Sub(now)
	}
	return got, wait, m.changed
}

// lease is how long e can be leased from now on, if asked for so long.
func (m *MemoryBroker) lease(e *entry, now time.Time, want time.Duration) time.Duration {
	if limit := m.config.MaxLease; limit > 0 {
		return min(want, e.handedOutAt.Add(limit).Sub(now))
	}
	return want
}

// heldEntry is the entry of a delivery that is still its holder's.
func (m *MemoryBroker) heldEntry(d *Delivery) (*entry, error) {
	e := m.held[d.ID]
	if e == nil || e.receipt == 0 || d.Receipt != e.receipt {
		return nil, ErrLost
	}
	return e, nil
}

// Extend is part of Broker.
func (m *MemoryBroker) Extend(ctx context.Context, d *Delivery, lease time.Duration) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.heldEntry(d)
	if err != nil {
		return time.Time{}, err
	}
	if m.config.FixedLeases {
		return time.Time{}, lull.Permanent(errors.New("queue: leases are fixed (MemoryBrokerConfig.FixedLeases)"))
	}
	now := time.Now()
	e.readyAt = now.Add(m.lease(e, now, lease))
	m.schedule(e)
	return e.readyAt, nil
}

// Settle is part of Broker.
func (m *MemoryBroker) Settle(ctx context.Context, d *Delivery, s Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.heldEntry(d)
	if err != nil {
		return err
	}
	if s, err = s.Within(d, s.After, m.config.MaxDelay, ""); err != nil {
		return err
	}
	switch s.Outcome {
	case Ack, Drop:
		m.remove(e)
		return nil
	case DeadLetter:
		dead := m.deadLetters()
		err := dead.Send(ctx, Outgoing{ID: DeadLetterID(d.ID), Group: e.d.Group, Headers: LetterHeaders(e.d.Headers, s.Envelope), Body: e.d.Body})
		if err == nil {
			m.remove(e)
		}
		return err
	}
	if s.Outcome == Defer && !m.config.CountDefers {
		e.d.Attempt--
	}
	e.d.Attempt -= s.Uncount
	e.d.Lost, e.d.Crashes, e.out = 0, s.Crashes, false
	if e.d.FirstFailed.IsZero() {
		e.d.FirstFailed = s.FirstFailed
	}
	e.receipt = 0
	e.readyAt = time.Now().Add(s.After)
	m.schedule(e)
	return nil
}

// A schedule is a heap by time, then by age.
type schedule []*entry

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	if c := s[i].readyAt.Compare(s[j].readyAt); c != 0 {
		return c < 0
	}
	return s[i].seq < s[j].seq
}
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}
func (s *schedule) Push(x any) {
	e := x.(*entry)
	e.index = len(*s)
	*s = append(*s, e)
}
func (s *schedule) Pop() any {
	old := *s
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return e
}
