package engine_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/throttle"
)

// A world is one dependency, called by many random callers in virtual time. It is a driver, and
// checks each promise of the engine when it can.
type world struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	d      *lull.Dependency
	policy lull.Policy
	now    time.Duration
	queue  moments
	seq    int

	down               bool // the dependency fails every attempt
	calls, retries     int
	invited, helped    int // of the retries: at the server's time; of calls that succeeded
	successes, refused int
	waiting            int // calls that wait for a retry
}

// caller is one call, and what the world remembers of it to hold against the engine.
type caller struct {
	call     engine.Call
	spec     engine.Spec
	deadline time.Duration
	waiter   *bulkhead.Waiter
	verdict  lull.Verdict // of the last attempt
	made     int          // attempts that were made elsewhere
	attempts int
	waitEnds time.Duration
	ended    bool
	waits    bool

	wasHeldBack bool // the next attempt, by the throttle
}

type moment struct {
	at  time.Duration
	seq int
	do  func()
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].seq < m[j].seq
}
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	old := *m
	last := old[len(old)-1]
	*m = old[:len(old)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, moment{w.now + d, w.seq, do})
}

// play has so many calls arrive at random, until all have ended. An outage begins or ends at one
// in so many of them. After each event it calls check, if that is not nil.
func (w *world) play(calls, outages int, arrive, check func()) {
	gap := time.Duration(1+w.r.IntN(20)) * ms
	var arrivals func()
	arrivals = func() {
		if w.r.IntN(outages) == 0 {
			w.down = !w.down
		}
		arrive()
		if calls--; calls > 0 {
			w.after(time.Duration(w.r.ExpFloat64()*float64(gap)), arrivals)
		}
	}
	w.after(0, arrivals)
	for w.queue.Len() > 0 {
		m := heap.Pop(&w.queue).(moment)
		w.now = m.at
		m.do()
		if check != nil {
			check()
		}
	}
}

// luck returns a source that draws the same random numbers for all who use it in one step.
func (w *world) luck() func() uint64 {
	n := w.r.Uint64()
	return func() uint64 { return n }
}

// verdict draws how an attempt ends.
func (w *world) verdict() (v lull.Verdict, panics bool) {
	v.Kind = lull.KindSuccess
	switch n := w.r.IntN(100); {
	case n < 1:
		panics = true
	case n < 3:
		v.Kind = engine.KindCanceled
	case w.down && n < 70, n < 12:
		v = lull.Verdict{Kind: lull.KindTransient, Code: "503", NeverSent: w.r.IntN(3) == 0}
	case w.down && n < 80, n < 15:
		v = lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout, NeverSent: w.r.IntN(5) == 0}
	case w.down && n < 90, n < 20:
		v = lull.Verdict{Kind: lull.KindRateLimited, Code: "429"}
	case n < 22:
		v = lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}
	case n < 26:
		v = []lull.Verdict{{Kind: lull.KindPermanent, Code: "404"}, {Code: engine.CodeUnclassified}, {Kind: lull.KindPermanent, Code: engine.CodeRetriedBelow}}[w.r.IntN(3)]
	case n < 30:
		v = []lull.Verdict{noFiles, noBody, slowBody}[w.r.IntN(3)]
		w.invited++ // the attempt, if it was a retry, or the next cost nothing
	}
	if v.Kind != lull.KindSuccess && w.r.IntN(8) == 0 {
		v.After = time.Duration(w.r.Int64N(int64(300 * ms)))
	}
	return v, panics
}

// drawEnd draws how an attempt with that timeout ends, and when.
func (w *world) drawEnd(timeout time.Duration) (v lull.Verdict, panics bool, took time.Duration) {
	v, panics = w.verdict()
	if took = time.Duration(w.r.ExpFloat64() * float64(20*ms)); took >= timeout {
		return lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, false, timeout
	}
	return v, panics, took
}

// remembers compares what two dependencies show of what they remember.
func (w *world) remembers(what string, a, b *lull.Dependency) {
	w.t.Helper()
	if x, y := a.Budget(), b.Budget(); x != nil && x.Balance(w.now) != y.Balance(w.now) {
		w.fatalf("at %v, %s: %v and %v left in the budgets", w.now, what, x.Balance(w.now), y.Balance(w.now))
	}
	if x, y := a.Breaker(), b.Breaker(); x != nil && (x.State(w.now) != y.State(w.now) || x.RetryAt(w.now) != y.RetryAt(w.now)) {
		w.fatalf("at %v, %s: breakers %v and %v", w.now, what, x.State(w.now), y.State(w.now))
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("seed %d, policy %+v", w.seed, w.policy)
	w.t.Fatalf(format, args...)
}

func randomPolicy(r *rand.Rand) lull.Policy {
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	limit := bulkhead.Config{InFlight: []int{0, 2, 10}[r.IntN(3)]}
	if limit.InFlight > 0 {
		limit.MaxWait = pick(0, 20*time.Millisecond)
	}
	schedule := backoff.Schedule{
		Kind:      []backoff.Kind{backoff.Exponential, backoff.Linear, backoff.Constant}[r.IntN(3)],
		Jitter:    []backoff.Jitter{backoff.Full, backoff.Equal, backoff.None, backoff.Decorrelated, backoff.Proportional}[r.IntN(5)],
		Base:      pick(0, time.Millisecond, 50*time.Millisecond),
		Cap:       pick(0, 200*time.Millisecond),
		FastFirst: r.IntN(4) == 0,
	}
	if schedule.Validate() != nil { // such as decorrelated jitter of a constant
		schedule = backoff.Schedule{Kind: []backoff.Kind{backoff.Immediate, backoff.Ethernet}[r.IntN(2)]}
	}
	account := budget.Config{Ratio: []float64{0, 0.01, 0.5, 4}[r.IntN(4)], Earn: []budget.Earn{budget.Successes, budget.Arrivals}[r.IntN(2)]}
	if r.IntN(2) == 0 {
		account.Window = time.Second
		account.Floor, account.Cooldown = []float64{0, 0, 1}[r.IntN(3)], pick(0, 0, time.Second)
	}
	return lull.Policy{
		Attempts:        r.IntN(6),
		AttemptTimeout:  pick(0, lull.NoTimeout, 50*time.Millisecond, 300*time.Millisecond),
		Deadline:        pick(0, lull.NoTimeout, 400*time.Millisecond, 2*time.Second),
		Backoff:         schedule,
		RateLimitedBase: pick(0, 10*time.Millisecond),
		HintLimit:       pick(0, 100*time.Millisecond),
		Timeouts:        []engine.TimeoutRetries{engine.TimeoutsWhenAnswered, lull.TimeoutsAlways, lull.TimeoutsNever}[r.IntN(3)],
		Budget:          account,
		Breaker:         breaker.Config{Off: r.IntN(2) == 0, OpenFor: pick(0, 500*time.Millisecond), Consecutive: []int{0, 0, 5}[r.IntN(3)]},
		Throttle:        throttle.Config{Mode: []throttle.Mode{throttle.Off, throttle.Off, throttle.Adaptive, throttle.Cubic}[r.IntN(4)], Window: pick(0, 5*time.Second)},
		Limit:           limit,
	}
}

func (w *world) arrive() {
	c := &caller{spec: engine.Spec{NotIdempotent: w.r.IntN(4) == 0, NotReplayable: w.r.IntN(20) == 0, UnlessUnsent: w.r.IntN(2) == 0}}
	if w.r.IntN(3) == 0 {
		c.spec.Deadline = w.now + time.Duration(w.r.Int64N(int64(time.Second)))
	}
	c.deadline = math.MaxInt64
	resumed := w.r.IntN(4) == 0
	if resumed {
		c.made = w.r.IntN(w.policy.MaxAttempts())
		c.attempts = c.made
	}
	if c.made == 0 {
		w.calls++
	}
	if limit := w.policy.WithDefaults().Deadline; limit > 0 && !resumed {
		c.deadline = w.now + limit
	}
	if c.spec.Deadline > 0 {
		c.deadline = min(c.deadline, c.spec.Deadline)
	}
	wasOpen := w.d.Breaker() != nil && w.d.Breaker().State(w.now) == breaker.Open
	var step engine.Step
	if resumed {
		c.call, step = w.d.State().Resume(w.now, c.spec, c.made)
	} else {
		c.call, step = w.d.State().Start(w.now, c.spec)
	}
	if step.Done {
		w.refused++
		if step.Reason != engine.CircuitOpen && step.Reason != engine.Deadline {
			w.fatalf("a call was refused at its start with %v", step.Reason)
		}
		return
	}
	if wasOpen && !c.call.Probe() { // a sample may
		w.fatalf("a call started through an open circuit")
	}
	w.attempt(c)
}

func (w *world) attempt(c *caller) {
	w.follow(c, c.call.Attempt(w.now, w.r.Uint64))
}

// follow carries out the Step of Attempt or JoinQueue.
func (w *world) follow(c *caller, step engine.Step) {
	switch {
	case step.Done:
		w.end(c, step)
	case step.Full && c.waiter == nil:
		c.waiter = &bulkhead.Waiter{Admit: func() { w.after(0, func() { w.admitted(c) }) }}
		w.follow(c, c.call.JoinQueue(w.now, c.waiter, w.r.Uint64))
	case step.Full:
		waiter := c.waiter
		w.after(max(step.Wait, 0), func() {
			if c.waiter == waiter && !c.ended {
				if left := c.call.LeaveQueue(w.now, waiter, engine.Limited, w.r.Uint64); left.Done {
					c.waiter = nil
					w.end(c, left)
				} else {
					// Admitted in the same instant: its own moment is on the way.
					c.waiter = nil
					w.run(c)
				}
			}
		})
	case step.Wait > 0:
		w.heldBack(c, step)
	default:
		c.waiter = nil
		w.run(c)
	}
}

// heldBack is an attempt that the throttle delays, once, or one after a timeout, to see whether
// others are answered.
func (w *world) heldBack(c *caller, step engine.Step) {
	switch {
	case c.verdict.Code == engine.CodeTimeout:
	case c.wasHeldBack:
		w.fatalf("attempt %d was held back twice", c.attempts+1)
	case w.policy.Throttle.Mode != throttle.Cubic:
		w.fatalf("attempt %d was held back under %+v", c.attempts+1, w.policy.Throttle)
	case c.deadline != math.MaxInt64 && w.now+step.Wait >= c.deadline:
		w.fatalf("at %v held back for %v, the deadline is %v", w.now, step.Wait, c.deadline)
	}
	c.wasHeldBack = true
	if w.r.IntN(20) == 0 {
		w.after(step.Wait/2, func() { w.end(c, c.call.Stop(w.now, engine.Canceled, w.r.Uint64)) })
		return
	}
	w.after(step.Wait, func() { w.attempt(c) })
}

func (w *world) admitted(c *caller) {
	if c.waiter == nil {
		return // LeaveQueue found it admitted, and ran it
	}
	c.waiter = nil
	w.follow(c, c.call.Admitted(w.now, w.r.Uint64))
}

// run is an attempt under way.
func (w *world) run(c *caller) {
	c.attempts++
	c.wasHeldBack = false
	w.endWait(c)
	if got := c.call.Attempts(); got != c.attempts {
		w.fatalf("the engine counts %d attempts, the world %d", got, c.attempts)
	}
	if c.attempts > c.made+1 {
		w.retries++
		if c.verdict.After > 0 { // it may have been free
			w.invited++
		}
		switch {
		case c.attempts > max(w.policy.WithDefaults().Attempts, 1):
			w.fatalf("attempt %d of a policy that allows %d", c.attempts, w.policy.WithDefaults().Attempts)
		case c.spec.NotReplayable && !(c.spec.UnlessUnsent && c.verdict.NeverSent):
			w.fatalf("a request that cannot be made again was")
		case c.spec.NotIdempotent && !c.verdict.NeverSent:
			w.fatalf("an unsafe operation was repeated after %+v", c.verdict)
		case c.verdict.Kind != lull.KindTransient && c.verdict.Kind != lull.KindRateLimited && c.verdict.Kind != engine.KindCallerTransient:
			w.fatalf("a retry after %+v", c.verdict)
		case w.now < c.waitEnds:
			w.fatalf("a retry before the wait was over")
		}
	}
	if w.now >= c.deadline {
		w.fatalf("attempt %d began at %v, after its deadline %v", c.attempts, w.now, c.deadline)
	}
	timeout := c.call.Timeout(w.now)
	if timeout <= 0 || c.deadline != math.MaxInt64 && timeout > c.deadline-w.now {
		w.fatalf("attempt timeout %v with %v left", timeout, c.deadline-w.now)
	}
	took := min(time.Duration(w.r.ExpFloat64()*float64(20*time.Millisecond)), timeout)
	if w.down && w.r.IntN(2) == 0 {
		took = min(timeout, time.Second)
	}
	w.after(took, func() { w.done(c) })
}

func (w *world) done(c *caller) {
	v, panics := w.verdict()
	if panics {
		c.call.Abandon(w.now)
		c.ended = true
		return
	}
	c.verdict = v
	step := c.call.Next(w.now, v, w.r.Uint64)
	if step.Done {
		w.end(c, step)
		return
	}
	limit := w.policy.Backoff.Max(c.attempts)
	switch {
	case v.Kind == lull.KindSuccess:
		w.fatalf("a success was not the end of its call")
	case v.After > 0 && step.Wait < v.After:
		w.fatalf("wait %v, sooner than the server asked for: %v", step.Wait, v.After)
	case v.After > w.policy.WithDefaults().HintLimit:
		w.fatalf("a hint of %v was obeyed, the limit is %v", v.After, w.policy.WithDefaults().HintLimit)
	case v.Kind == lull.KindTransient && v.After == 0 && v.Code != engine.CodeTimeout && step.Wait > limit:
		w.fatalf("wait %v before retry %d, the schedule's longest is %v", step.Wait, c.attempts, limit)
	case step.Wait < 0 || c.deadline != math.MaxInt64 && w.now+step.Wait >= c.deadline:
		w.fatalf("at %v a wait of %v was begun, the deadline is %v", w.now, step.Wait, c.deadline)
	}
	c.waitEnds = w.now + step.Wait
	if step.Wait > 0 {
		c.waits = true
		w.waiting++
	}
	if w.r.IntN(50) == 0 { // the caller goes away while it waits
		w.after(time.Duration(w.r.Int64N(int64(step.Wait)+1)), func() {
			c.waitEnds = math.MaxInt64
			w.end(c, c.call.Stop(w.now, engine.Canceled, w.r.Uint64))
		})
		return
	}
	w.after(step.Wait, func() { w.attempt(c) })
}

func (w *world) end(c *caller, step engine.Step) {
	if c.ended {
		w.fatalf("a call ended twice")
	}
	c.ended = true
	w.endWait(c)
	if step.Reason == engine.Success {
		w.successes++
		w.helped += max(c.attempts-1, 0)
	}
	// However it ended, it stays ended.
	if again := c.call.Next(w.now, lull.Verdict{Kind: lull.KindTransient}, nil); !again.Done {
		w.fatalf("a call that ended with %v goes on", step.Reason)
	}
	c.call.Abandon(w.now)
}

func (w *world) endWait(c *caller) {
	if c.waits {
		c.waits = false
		w.waiting--
	}
}

// paidFor holds the retries so far against what was earned. A budget has its
// stock. A Ratio starts with what one call earns, and may round a fraction up to
// one retry in each window (by a draw that keeps the expectation, which its own
// tests hold it to).
func (w *world) paidFor() {
	c := w.policy.Budget
	ratio, window, stock := c.Ratio, c.Window, c.Stock
	if ratio == 0 {
		ratio = budget.DefaultRatio
	}
	if window == 0 {
		window = 10 * time.Second
		stock = budget.DefaultStock
	}
	earning := w.successes
	if c.Earn == budget.Arrivals {
		earning = w.calls
	}
	retries := w.retries - w.invited
	if c.Window == 0 { // what has helped was given back
		retries -= w.helped
	}
	bound := stock + ratio*float64(earning+1) + 1 + float64(w.now/window) + c.Floor*(w.now+window).Seconds()
	if float64(retries) > bound {
		w.fatalf("%d retries; %d calls earned %.1f", retries, earning, bound)
	}
}

// TestEngineKeepsItsPromises drives the engine and the leaves with a hundred thousand
// random calls, and two million in the lab's suite: outages, panics, callers that go away, limits with
// queues, hints, unsafe operations. The promises are checked in world.
func TestEngineKeepsItsPromises(t *testing.T) {
	worlds, callsEach := seed.Runs(60), 2000
	base := seed.Fresh(t)
	calls, retries, refused := 0, 0, 0
	for i := range uint64(worlds) {
		seed := base + i
		r := rand.New(rand.NewPCG(seed, 0))
		w := &world{t: t, seed: seed, r: r, policy: randomPolicy(r)}
		var err error
		if w.d, err = lull.NewDependency("world", w.policy); err != nil {
			w.fatalf("%v", err)
		}
		w.play(callsEach, 500, w.arrive, func() {
			w.paidFor()
			if got := w.d.State().Waiting(); got != w.waiting {
				w.fatalf("at %v %d calls wait, and %d are counted", w.now, w.waiting, got)
			}
		})
		if l := w.d.Limiter(); l != nil && (l.InFlight() != 0 || l.Waiting() != 0) {
			w.fatalf("all calls have ended, but %d permits are out and %d wait", l.InFlight(), l.Waiting())
		}
		calls, retries, refused = calls+w.calls, retries+w.retries, refused+w.refused
	}
	t.Logf("%d calls, %d retries, %d refused at the start (base seed %d)", calls, retries, refused, base)
	if calls < worlds*callsEach*5/6 {
		t.Errorf("only %d calls", calls)
	}
}
