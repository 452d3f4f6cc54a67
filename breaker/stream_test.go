package breaker

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// Rule 8: a probe is a call that can end. One that may be silent for ever keeps no other
// out, and decides only where no other comes.
func TestRule08StreamsAsProbes(t *testing.T) {
	const wait = 7 * time.Second
	config := first(Config{ProbeTimeout: wait})
	silent := func(t *testing.T, c Config) (*Breaker, time.Duration, Ticket) {
		b, at := opened(t, c)
		tok, ok := b.StartStream(at)
		if !ok || !tok.Probe() {
			t.Fatal("the stream is no probe")
		}
		b.Accepted(at, tok)
		return b, at, tok
	}
	state := func(t *testing.T, b *Breaker, now time.Duration, want CircuitState) {
		t.Helper()
		check.Equal(t, b.State(now), want, "at %v", now)
	}

	t.Run("a call that ends has a place beside it", func(t *testing.T) {
		b, at, _ := silent(t, config)
		if _, ok := b.StartStream(at); ok {
			t.Error("two streams were admitted")
		}
		b.Done(at+1, probeNow(t, b, at), Success, nil)
		state(t, b, at+1, Closed)
	})
	t.Run("and before it is accepted", func(t *testing.T) {
		b, at := opened(t, config)
		b.StartStream(at)
		b.Done(at+1, probeNow(t, b, at), Success, nil)
		state(t, b, at+1, Closed)
	})
	t.Run("no stream beside a call that ends", func(t *testing.T) {
		b, at := opened(t, config)
		probeNow(t, b, at)
		if _, ok := b.StartStream(at); ok {
			t.Error("a stream was admitted")
		}
	})
	t.Run("a call that is accepted makes way", func(t *testing.T) {
		b, at := opened(t, config)
		tok := probeNow(t, b, at)
		if _, ok := b.Start(at); ok {
			t.Error("two probes")
		}
		b.Accepted(at, tok)
		probeNow(t, b, at)
	})
	t.Run("its failure opens", func(t *testing.T) {
		b, at, tok := silent(t, config)
		b.Done(at+1, tok, Failure, nil)
		state(t, b, at+1, Open)
	})
	t.Run("its answer closes, and was not slow", func(t *testing.T) {
		c := config
		c.SlowRate, c.SlowCall = 1, time.Second
		b, at, tok := silent(t, c)
		b.Done(at+3*time.Second, tok, Success, nil)
		state(t, b, at+3*time.Second, Closed)
		check.Equal(t, b.closingProbeTook, 0, "its silence counts as the time of a call")
	})
	t.Run("that it has not failed for so long closes", func(t *testing.T) {
		b, at, tok := silent(t, config)
		state(t, b, at+wait-1, HalfOpen)
		state(t, b, at+wait, Closed)
		b.Start(at + wait)
		state(t, b, at+wait, Closed)
		b.Done(at+wait+1, tok, Failure, nil)
		state(t, b, at+wait+1, Closed) // of an earlier generation
	})
	t.Run("unless it was not accepted", func(t *testing.T) {
		b, at := opened(t, config)
		b.StartStream(at)
		state(t, b, at+wait, Open)
	})
	t.Run("and a call beside it that hangs still opens", func(t *testing.T) {
		b, at, _ := silent(t, config)
		b.Done(at+wait-1, probeNow(t, b, at), Failure, nil)
		state(t, b, at+wait, Open)
	})
	t.Run("two of them, and then one that ends", func(t *testing.T) {
		c := config
		c.Probes = 3
		b, at, first := silent(t, c)
		second, _ := b.StartStream(at + 1)
		b.Accepted(at+2, second)
		b.Accepted(at+4, first) // only the first time counts
		state(t, b, at+wait+2, HalfOpen)
		b.Done(at+wait+2, probeNow(t, b, at+wait+2), Success, nil)
		state(t, b, at+wait+2, Closed)
	})
}
