//go:build !race

// Simulations of one goroutine: the race detector finds nothing in them and
// takes a minute over it.

package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// The setting in which breakers that count completions open on error rates far
// below their threshold: one client, 600 calls a second for five minutes,
// independent errors that return at once, successes that take 100 ms (all of
// them, or in the mean of an exponential distribution), threshold 50 % of at
// least 20 calls in 10 s, open for 30 s. (Such a breaker lets 20 to 80 % of the
// successes through.)
func TestBiasFailuresThatReturnSooner(t *testing.T) {
	t.Parallel()
	const rate, usual, horizon = 600, 100 * time.Millisecond, 5 * time.Minute
	type end struct {
		at  time.Duration
		tok Ticket
	}
	for _, c := range []struct {
		errors   float64
		constant bool
	}{{0.20, true}, {0.30, true}, {0.30, false}} {
		b := must.Have(New(Config{Consecutive: -1, FailureRate: 0.5, OpenFor: 30 * time.Second, OpenMax: 30 * time.Second, OpenJitter: -1}))
		r := rand.New(rand.NewPCG(1, 1))
		var flying []end // in order
		calls, successes := 0, 0
		for now := time.Duration(0); now < horizon; now += time.Duration(r.ExpFloat64() * float64(time.Second) / rate) {
			for len(flying) > 0 && flying[0].at <= now {
				b.Done(flying[0].at, flying[0].tok, Success, nil)
				flying = flying[1:]
				successes++
			}
			service := usual
			if !c.constant {
				service = time.Duration(r.ExpFloat64() * float64(usual))
			}
			calls++
			tok, ok := b.Start(now)
			switch {
			case !ok:
			case r.Float64() < c.errors:
				b.Done(now, tok, Failure, nil)
			default:
				e := end{now + service, tok}
				i, _ := slices.BinarySearchFunc(flying, e, func(a, b end) int { return int(a.at - b.at) })
				flying = slices.Insert(flying, i, e)
			}
		}
		if share, ideal := float64(successes)/float64(calls-len(flying)), 1-c.errors; share < 0.97*ideal {
			t.Errorf("%.0f %% errors, constant %t: %.3f of calls succeed, want 0.97 of %.3f", 100*c.errors, c.constant, share, ideal)
		}
	}
}

// A call is judged among all calls of its time. So a few calls that hang do not open the breaker
// among many that answer, and a few that fail at once do not right after a restart, when nothing
// else has come back for three windows.
func TestBiasAFewThatEndAtAnotherTime(t *testing.T) {
	for _, c := range []struct {
		config      Config
		late, early Evidence
		windows     time.Duration // which the late ones take
	}{
		{rated(Config{}), Failure, Success, 1},
		{rated(Config{}), Failure, Success, 3},
		{rated(Config{}), Failure, Success, 20},
		{rated(Config{}), Success, Failure, 3},
		{Config{ConsecutiveFor: 4 * DefaultWindow}, Success, Failure, 3}, // more than they take
	} {
		b := must.Have(New(c.config))
		r := rand.New(rand.NewPCG(1, 4))
		var flying flights
		took := c.windows * DefaultWindow
		for now := time.Duration(0); now < took+9*DefaultWindow; now += 10 * time.Millisecond {
			flying.land(b, now, took, c.late)
			tok, ok := b.Start(now)
			if !ok {
				t.Fatalf("%+v: opened by 5 %% of failures before %v", c, now)
			}
			if few := r.Float64() < 0.05; few == (c.late == Failure) {
				flying = append(flying, tok)
			} else {
				b.Done(now, tok, c.early, nil)
			}
		}
	}
}
