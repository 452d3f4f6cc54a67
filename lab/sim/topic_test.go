package sim

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// messages is a scenario of one message a second for so long, whose handlers take 10 ms, and
// an hour more.
func messages(long time.Duration, faults ...Fault) Scenario {
	return Scenario{
		Horizon: long + time.Hour, Step: time.Minute,
		Services: []Service{{Name: "api", Time: fixed(10 * millisecond), Faults: faults}},
		Topics: []Topic{{
			Name: "orders", Calls: "api",
			Arrivals: Arrivals{Kind: Constant, Rate: 1, Ramp: []RampPoint{{0, 1}, {long, 1}, {long, 0}}},
		}},
	}
}

// topicOf flies p and returns what became of the only topic.
func topicOf(t *testing.T, s Scenario, c Contender) TopicResult {
	t.Helper()
	r := must.Have(Run(t.Context(), s, c, Options{Seed: 1}))
	if len(r.Topics) != 1 {
		t.Fatalf("%d topics", len(r.Topics))
	}
	return r.Topics[0]
}

func wantTopic(t *testing.T, what string, got any, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// All is well: each message is handled once, at once.
func TestMessagesAreHandled(t *testing.T) {
	r := topicOf(t, messages(time.Minute), Contender{Policy: retrying(3, time.Second)})
	wantTopic(t, "handled of sent", [2]int64{r.Handled, r.Sent}, [2]int64{60, 60})
	wantTopic(t, "attempts", r.Attempts, int64(60))
	wantTopic(t, "longest", r.Latency.Max, 10*millisecond)
	wantTopic(t, "caught up, with nothing to catch up on", r.Caught, false)
}

// A message whose attempts fail comes again after the policy's waits, and is dead after the
// last.
func TestMessagesDie(t *testing.T) {
	r := topicOf(t, messages(10*time.Second, Fault{Kind: Errors, At: 0, For: time.Hour}), Contender{Policy: retrying(3, time.Second)})
	wantTopic(t, "dead of sent", [2]int64{r.Dead, r.Sent}, [2]int64{10, 10})
	wantTopic(t, "attempts", r.Attempts, int64(30))
	wantTopic(t, "reasons", r.Reasons, map[string]int64{"attempts_exhausted": 10})
	r = topicOf(t, messages(10*time.Second, Fault{Kind: Errors, At: 0, For: 5500 * millisecond}), Contender{Policy: retrying(10, time.Second)})
	wantTopic(t, "handled of sent", [2]int64{r.Handled, r.Sent}, [2]int64{10, 10})
	wantTopic(t, "attempts", r.Attempts, int64(10+5+4+3+2+1))
	wantTopic(t, "during the outage", r.Disturbed, int64(5+4+3+2+1))
	// The one of second 1 fails at 1, 2, ... 5 s; at 6 s all five come again.
	wantTopic(t, "caught up", fmt.Sprint(r.Caught, r.CaughtUp), "true 510ms")
}

// What a killed process had in hand comes back when its lease lapses, which was extended
// every third, and counts as an attempt.
func TestKilledConsumers(t *testing.T) {
	s := messages(1100 * millisecond) // one message, at 1 s
	s.Services[0].Time = fixed(5 * time.Minute)
	s.Topics[0].Consumers = Consumers{Lease: 30 * time.Second, Kills: []Kill{{At: 36 * time.Second, For: time.Second}}}
	all, err := Run(t.Context(), s, Contender{Policy: retrying(3, time.Second)}, Options{})
	if err != nil || all.Totals.Duplicates != 1 {
		t.Errorf("%d operations were repeated, want that of the killed handler: %v", all.Totals.Duplicates, err)
	}
	r := all.Topics[0]
	// Extended at 11, 21 and 31 s, it lapses at 61 s, and is put off for a second then.
	wantTopic(t, "handled", fmt.Sprint(r.Handled, r.Lapsed, r.Attempts, r.Latency.Max), fmt.Sprint(1, 1, 2, time.Minute+time.Second+5*time.Minute))

	s.Topics[0].Consumers.Kills[0] = Kill{At: 2 * time.Second, For: time.Second, Every: 2 * time.Minute}
	r = topicOf(t, s, Contender{Policy: retrying(3, time.Second)})
	wantTopic(t, "killed each time", fmt.Sprint(r.Dead, r.Reasons), fmt.Sprint(1, map[string]int64{"crashed": 1}))

	// Where leases cannot be extended a handler ends before its own does.
	s.Topics[0].Consumers.Kills, s.Topics[0].Broker.FixedLeases = nil, true
	r = topicOf(t, s, Contender{Policy: retrying(3, time.Second)})
	wantTopic(t, "cut off", fmt.Sprint(r.Dead, r.Attempts, r.Lapsed), "1 3 0")
}

// A consumer whose lease has lapsed settles nothing: the message has been handed to another one. (Brokers with
// leases that cannot be extended may ignore an old receipt, as SQS may.) If it did settle, the message would
// count as handled while the second handler still works on it, and a failure of that one would be lost.
func TestAStaleReceiptSettlesNothing(t *testing.T) {
	for _, o := range []engine.MessageOutcome{engine.Ack, engine.Retry, engine.Defer, engine.DeadLetter} {
		s := messages(time.Minute)
		s.Topics[0].Broker.FixedLeases = true
		s.Topics[0].Consumers = Consumers{Processes: 2, Lease: time.Second}
		w := must.Have(newWorld(&s, Contender{Policy: retrying(3, time.Second)}, Options{Seed: 1}))
		topic := w.topics[0]
		hand := func(c *consumer) (uint32, *delivery) {
			c.down = true // it fetches nothing by itself
			i := w.deliverNext(topic, c)
			return i, w.deliveries.at(i)
		}
		w.produce(topic)
		first, x := hand(topic.consumers[0])
		m := w.messages.at(x.message)
		w.now += time.Second
		second, y := hand(topic.consumers[1])
		if x.message != y.message || topic.tally.result(w.now).Lapsed != 1 {
			t.Fatal("the message of the lapsed lease is not handed out again")
		}
		again := m.at
		w.conclude(first, x, engine.Redelivery{Outcome: o, Reason: engine.Permanent, After: time.Minute})
		r := topic.tally.result(w.now)
		wantTopic(t, fmt.Sprint(o, ": handled, dead, deferred"), [3]int64{r.Handled, r.Dead, r.Deferred}, [3]int64{})
		wantTopic(t, fmt.Sprint(o, ": is with the second, attempts, next time"), fmt.Sprint(m.delivered, m.holders, m.ended, m.attempt, m.at), fmt.Sprint(true, 1, false, 2, again))
		w.conclude(second, y, engine.Redelivery{Outcome: engine.Ack})
		wantTopic(t, fmt.Sprint(o, ": handled by the second"), topic.tally.result(w.now).Handled, int64(1))
	}
}

// A poison message dies of its attempts and leaves the others alone, though it kills its
// process each time.
func TestPoison(t *testing.T) {
	for _, kills := range []bool{false, true} {
		s := messages(10 * time.Minute)
		s.Topics[0].Poison = Poison{Share: 0.01, Kills: kills}
		s.Topics[0].Consumers.Processes = 3
		r := topicOf(t, s, Contender{Policy: retrying(4, time.Second)})
		why := map[bool]string{false: "attempts_exhausted", true: "crashed"}[kills]
		wantTopic(t, "all", r.Handled+r.Dead, r.Sent)
		wantTopic(t, "dead", r.Reasons, map[string]int64{why: r.Dead})
		if r.Dead == 0 || r.Dead > 20 {
			t.Errorf("%d of %d are dead", r.Dead, r.Sent)
		}
		check.Equal(t, kills, r.Lapsed > 0, "kills: %d leases lapsed", r.Lapsed)
	}
}

// A handler that sleeps with its message in hand gives up when the lease is over.
func TestHeldMessages(t *testing.T) {
	s := messages(1100*millisecond, Fault{Kind: Errors, At: 0, For: 40 * time.Second})
	c := Contender{Policy: retrying(10, 20*time.Second), Holds: true}
	r := topicOf(t, s, c)
	wantTopic(t, "held too long", fmt.Sprint(r.Dead, r.Attempts, r.Lapsed, r.Reasons), "1 2 0 map[deadline:1]")
	c.Policy = retrying(3, time.Second)
	r = topicOf(t, s, c)
	wantTopic(t, "given up on", fmt.Sprint(r.Dead, r.Attempts, r.Reasons), "1 3 map[attempts_exhausted:1]")
}

// outage is a policy like that of package queue.
func outage() lull.Policy {
	return lull.Policy{
		Attempts: 10, AttemptTimeout: 30 * time.Second, Deadline: lull.NoTimeout, HintLimit: time.Hour, Timeouts: lull.TimeoutsAlways,
		Backoff: backoff.Schedule{Base: time.Second, Cap: 10 * time.Minute}, Budget: budget.Config{Stock: 10}, Breaker: breaker.Config{OpenFor: time.Second},
	}
}

// However long an outage: once the workers know of it no message dies of it where deferrals
// are free. The twin of this test in package queue has the same figures.
func TestNoMessageDiesOfASimulatedOutage(t *testing.T) {
	const long = 6 * time.Hour
	s := messages(long, Fault{Kind: Errors, At: 0, For: long})
	s.Topics[0].Arrivals.Rate = 2000 / long.Seconds()
	s.Topics[0].Consumers = Consumers{Processes: 20, Wary: true}
	for _, counts := range []bool{false, true} {
		s.Topics[0].Broker.CountDefers = counts
		r := topicOf(t, s, Contender{Policy: outage()})
		if r.Sent < 1999 || r.Handled+r.Dead != r.Sent || counts != (r.Dead >= 100) || !counts && r.Dead > 0 {
			t.Errorf("deferrals count %v: %d sent, %d handled, %d dead", counts, r.Sent, r.Handled, r.Dead)
		}
	}
}

// What an attempt's timeout cancels makes room for others: of these one may have timed out
// as well, so that its place goes to a message that kills the process.
func TestATimeoutLeadsToTheEndOfItsProcess(t *testing.T) {
	s := messages(10 * time.Second)
	s.Services[0] = Service{Name: "api", Workers: 1, Queue: Queue{Limit: 20, DropExpired: true}, CancelWork: true, Time: fixed(30 * millisecond)}
	s.Topics[0].Arrivals.Rate = 100
	s.Topics[0].Poison = Poison{Share: 0.2, Kills: true, Down: 10 * millisecond}
	s.Topics[0].Consumers.Concurrency = 2
	p := retrying(3, 10*time.Millisecond)
	p.AttemptTimeout = 20 * time.Millisecond
	r := topicOf(t, s, Contender{Policy: p})
	if r.Sent != 1000 || r.Dead != r.Sent || r.Lapsed < 100 {
		t.Errorf("%d sent, %d dead, %d leases lapsed: want 1000, all of them dead", r.Sent, r.Dead, r.Lapsed)
	}
}

// anyTopic is a topic with few messages, whatever else it may be.
func anyTopic(d dice) Topic {
	t := Topic{
		Name: "orders", Calls: "api", Arrivals: Arrivals{Kind: ArrivalKind(d(2)), Rate: float64(1 + d(50))},
		Poison: Poison{Share: d.share() / 3, Kills: d.yes(), Down: d.ms(0, 10, 500)},
		Broker: Broker{CountDefers: d.yes(), FixedLeases: d.yes(), MaxDelay: d.ms(0, 0, 1, 1000)},
		Consumers: Consumers{
			Processes: d(5), Concurrency: d.one(0, 1, 2, 30), Lease: d.ms(0, 100, 300, 1000), Quick: d.one(0, 0, 1, 3),
			QuickWait: d.ms(0, 10), Wary: d(5) == 0, Network: Network{Latency: d.takes(d.one(0, 0, 5)), Loss: d.share() / 5},
		},
	}
	for range d(3) {
		t.Consumers.Kills = append(t.Consumers.Kills, Kill{
			At: d.ms(0, 300, 1000), For: d.ms(1, 100, 1000), Every: d.ms(0, 0, 500), Processes: d(max(t.Consumers.Processes, 1) + 1), Apart: d.ms(0, 0, 50),
		})
	}
	return t
}

// Whatever happens, each message is handled, dead, or still there, and accounted once: and
// the engine, the flights and the places of the broker agree with that at the end. Runs of
// one seed are alike.
func TestEveryMessageIsAccountedFor(t *testing.T) {
	n, base := 200, seed.Rand(t).Uint64()
	if long { // other runs each time
		n, base = 500, seed.Fresh(t)
	}
	var sum TopicResult
	for i := range n {
		src := draw.From(draw.Mix(base, uint64(i)))
		d := dice(func(n int) int { return int(src.Below(uint64(n))) })
		s, p := anyScenario(d)
		p.Hedge = hedge.Config{}
		s.Topics = append(s.Topics, anyTopic(d))
		if d.yes() {
			s.Fleets = nil
		}
		c := Contender{Policy: p, Holds: d(4) == 0}
		w, err := newWorld(&s, c, Options{Seed: uint64(i), Named: []Contender{None()}})
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		must.Succeed(w.run(t.Context(), Options{}))
		accounted(t, fmt.Sprintf("run %d", i), w)
		r := w.topics[0].tally.result(w.now)
		if i%4 == 0 {
			again, err := Run(t.Context(), s, c, Options{Seed: uint64(i), Named: []Contender{None()}})
			if err != nil || !reflect.DeepEqual(again.Topics[0], r) {
				t.Errorf("run %d: %+v, and again %+v: %v", i, r, again.Topics[0], err)
			}
		}
		sum.Sent, sum.Handled, sum.Dead, sum.Left = sum.Sent+r.Sent, sum.Handled+r.Handled, sum.Dead+r.Dead, sum.Left+r.Left
		sum.Deferred, sum.Lapsed = sum.Deferred+r.Deferred, sum.Lapsed+r.Lapsed
		if t.Failed() {
			t.Fatalf("seed %d, run %d: %+v", base, i, s)
		}
	}
	if sum.Handled < 1000 || sum.Dead < 100 || sum.Left < 100 || sum.Deferred < 100 || sum.Lapsed < 100 {
		t.Errorf("this test shows nothing: %+v", sum)
	}
}

// accounted counts the messages of a run in all the places where they can be.
func accounted(t *testing.T, what string, w *world) {
	t.Helper()
	topic := w.topics[0]
	kept, held, free := 0, 0, map[uint32]bool{}
	for i := range w.messages.free.n {
		free[w.messages.free.layers[i/layerSize][i%layerSize]] = true
	}
	holders := map[uint32]int{}
	for _, c := range topic.consumers {
		probing, waiting := 0, 0
		for place, i := range c.deliveries {
			x := w.deliveries.at(i)
			if x.place != place || x.consumer != c || c.down {
				t.Errorf("%s: a delivery is not where it should be", what)
			}
			holders[x.message]++
			if x.probe {
				probing++
			}
			if x.held {
				waiting++
			}
			held++
		}
		asked := 0
		if c.asks {
			asked = c.want
		}
		if !c.down && (c.free+asked+len(c.deliveries) != topic.def.Consumers.concurrency() || c.probing != probing || c.held != waiting) {
			t.Errorf("%s: a consumer has %d messages, %d asked for, %d places; %d and %d are probes, %d and %d wait", what, len(c.deliveries), asked, c.free, probing, c.probing, waiting, c.held)
		}
	}
	if held != w.deliveries.inUse() {
		t.Errorf("%s: %d deliveries, and %d in the hands of consumers", what, w.deliveries.inUse(), held)
	}
	for i := range w.messages.used {
		m := w.messages.at(i)
		if free[i] {
			continue
		}
		check.Equal(t, int(m.holders), holders[i], "%s: holders, of %d", what, m.holders)
		if m.ended {
			continue
		}
		kept++
		if in := m.index >= 0; !in && !(m.delivered && topic.extends()) {
			t.Errorf("%s: a message can never be handed out again: %+v", what, *m)
		} else if in && topic.next.of[m.index] != i {
			t.Errorf("%s: a message is not where it says", what)
		}
	}
	r := topic.tally.result(w.now)
	if all := w.rec.result(w.now).Totals; len(w.scenario.Fleets) == 0 && w.scenario.Warmup == 0 && (all.Calls != r.Sent || all.Succeeded != r.Handled || all.Unfinished != r.Left) {
		t.Errorf("%s: as calls they are %+v", what, all)
	}
	if r.Sent != r.Handled+r.Dead+int64(kept) || r.Left != int64(kept) {
		t.Errorf("%s: %d sent, %d handled, %d dead, %d there", what, r.Sent, r.Handled, r.Dead, kept)
	}
	var reasons int64
	for _, n := range r.Reasons {
		reasons += n
	}
	if reasons != r.Dead || r.Latency.Count != r.Handled {
		t.Errorf("%s: %d dead letters of %d, %d latencies of %d", what, reasons, r.Dead, r.Latency.Count, r.Handled)
	}
}
