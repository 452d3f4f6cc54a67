package lullamqp

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/seed"
)

// wait follows a message through the levels as the exchanges do, by the bindings that Declare
// makes. It returns how long the message waits and where it arrives.
func wait(t *testing.T, c *Config, exchange, key string) (waits time.Duration, hops int, queues []string) {
	t.Helper()
	topology := c.topology()
	ttl := map[string]time.Duration{}
	next := map[string]string{}
	for _, q := range topology.objects {
		if ms, ok := q.args["x-message-ttl"].(int64); ok {
			ttl[q.name] = time.Duration(ms) * time.Millisecond
			next[q.name] = q.args["x-dead-letter-exchange"].(string)
		}
	}
	at := exchange
	for range 2 * levels {
		var targets []binding
		for _, b := range topology.binds {
			if b.source == at && matches(b.key, key) {
				targets = append(targets, b)
			}
		}
		if at == c.deliver() {
			for _, b := range targets {
				queues = append(queues, b.target)
			}
			return waits, hops, queues
		}
		if len(targets) != 1 {
			t.Fatalf("%s hands %q to %d places", at, key, len(targets))
		}
		if targets[0].toExchange {
			at = targets[0].target
			continue
		}
		hops++
		waits += ttl[targets[0].target]
		at = next[targets[0].target]
	}
	t.Fatal("it goes round")
	return
}

// matches implements a topic exchange, for # at the end.
func matches(pattern, key string) bool {
	p, k := strings.Split(pattern, "."), strings.Split(key, ".")
	for i, word := range p {
		if word == "#" && i == len(p)-1 {
			return true
		}
		if i >= len(k) || word != "*" && word != k[i] {
			return false
		}
	}
	return len(p) == len(k)
}

func TestEveryDelayIsLongEnough(t *testing.T) {
	t.Parallel()
	c := Config{Queue: "eu.orders", Prefix: "p"}.WithDefaults()
	other := Config{Queue: "orders", Prefix: "p"}.WithDefaults()
	check := func(d time.Duration) {
		n := units(d)
		if n == 0 {
			if d > 0 {
				t.Fatalf("%v: no delay", d)
			}
			return
		}
		exchange, key := c.delayed(n)
		waits, hops, queues := wait(t, &c, exchange, key)
		// In each level a message may expire up to a millisecond early.
		if least := waits - time.Duration(hops)*time.Millisecond; least < d {
			t.Fatalf("%v: %v at least, through %d levels", d, least, hops)
		}
		if waits > d+unit+(levels+1)*time.Millisecond {
			t.Fatalf("%v: %v", d, waits)
		}
		if len(queues) != 1 || queues[0] != "eu.orders" {
			t.Fatalf("%v: arrives at %v", d, queues)
		}
		if matches(queuePattern(other.Queue), key) {
			t.Fatalf("%q is taken by the queue %s too", key, other.Queue)
		}
	}
	for _, d := range []time.Duration{0, 1, time.Millisecond, unit - time.Millisecond, unit - 1, unit, unit + 1, time.Second, time.Hour, MaxDelay - 1, MaxDelay} {
		check(d)
	}
	for l := range levels {
		for _, off := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
			check(min(unit<<l+off, MaxDelay))
		}
	}
	seed := seed.Fresh(t)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		check(time.Duration(r.Int64N(int64(MaxDelay) >> r.IntN(30))))
	}
}

func TestNoDelayIsTheQueueItself(t *testing.T) {
	c := Config{Queue: "orders"}.WithDefaults()
	if exchange, key := c.delayed(units(0)); exchange != "" || key != "orders" {
		t.Errorf("exchange %q, key %q", exchange, key)
	}
}
