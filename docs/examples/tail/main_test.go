package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/seed"
)

// The example keeps what it promises, in virtual time and over a network in memory.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r, err := show(setting{
			rate: 400, every: 50, seed: seed.Rand(t).Uint64(), duration: 1500 * time.Millisecond,
			before: time.Second, slow: 1500 * time.Millisecond, after: 2 * time.Second,
		}, memnet.Listen(), memnet.Dial, &out)
		if err == nil {
			err = r.promised()
		}
		t.Logf("%s", &out)
		if err != nil {
			t.Error(err)
		}
	})
}

// promised returns what was not as it should be. The margins are wide: the p99 is 30 to 40 times lower,
// 3 to 5 % of the calls are hedged, and when all is slow hedges stop within a tenth of a second.
func (r shown) promised() error {
	var problems []error
	promise := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	promise(r.plain.extra() == 0, "without hedging: %d requests for %d calls", r.plain.requests, r.plain.calls)
	promise(r.plain.p99 >= 5*r.hedged.p99, "p99: %v without hedging, %v with it: want a fifth at most", r.plain.p99, r.hedged.p99)
	share := percent(r.hedged.extra(), r.hedged.calls)
	promise(share > 0 && share <= 100*hedge.DefaultShare, "with hedging: %.1f %% more requests, want some, and 10 %% at most", share)

	_, hedges := sum(r.turn.before)
	promise(hedges > 0, "before the turn: no hedges")
	calls, hedges := sum(r.turn.slow[:10])
	promise(hedges*100 <= calls*15, "first second in which all is slow: %d hedges for %d calls, want 15 %% at most", hedges, calls)
	calls, hedges = sum(r.turn.slow[10:])
	promise(calls > 0 && hedges*100 <= calls, "after that: %d hedges for %d calls, want 1 %% at most", hedges, calls)
	calls, hedges = sum(r.turn.after[10:])
	promise(hedges*200 >= calls, "from a second after all is well again: %d hedges for %d calls, want half a percent", hedges, calls)
	return errors.Join(problems...)
}

// Of each run of so many requests one is slow, and not always the same.
func TestSlowRequests(t *testing.T) {
	b := newBackend(80, seed.Rand(t).Uint64())
	places := map[uint64]bool{}
	for run := range uint64(100) {
		var slow []uint64
		for n := range uint64(80) {
			switch took := b.takes(run*80 + n); {
			case took == long:
				slow = append(slow, n)
			case took < usual*3/4 || took >= usual*5/4:
				t.Fatalf("request %d takes %v", run*80+n, took)
			}
		}
		if len(slow) != 1 {
			t.Fatalf("%d of 80 requests are slow, want one", len(slow))
		}
		places[slow[0]] = true
	}
	if len(places) < 30 {
		t.Errorf("the slow one is at only %d of 80 places", len(places))
	}
	b.allSlow.Store(true)
	for n := range uint64(80) {
		if took := b.takes(n); took != long {
			t.Fatalf("all are slow, and request %d takes %v", n, took)
		}
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for n := range 100 {
		hundred = append(hundred, time.Duration(n+1))
	}
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("p%v of 1..100 is %d, want %d", 100*p, got, want)
		}
	}
}

func TestFirstAndLastHedge(t *testing.T) {
	tenths := []counts{{50, 0}, {50, 3}, {50, 0}, {50, 1}, {50, 0}}
	if first, last := firstHedge(tenths), lastHedge(tenths); first != 200*time.Millisecond || last != 400*time.Millisecond {
		t.Errorf("first after %v, last after %v", first, last)
	}
	if first, last := firstHedge(tenths[:1]), lastHedge(tenths[:1]); first != 0 || last != 0 {
		t.Errorf("none: first after %v, last after %v", first, last)
	}
	if calls, hedges := sum(tenths); calls != 250 || hedges != 4 {
		t.Errorf("sum: %d calls, %d hedges", calls, hedges)
	}
	if got, want := line(slices.Concat(tenths, tenths)), "   0   3   0   1   0   0   3   0   1   0         8        1.6 %"; got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"now":                     `unexpected argument "now": tail takes flags only, see -help`,
		"-rate 99":                "-rate is 99: want 100 to 5000",
		"-every 100":              "-every is 100: want 2 to 99, so that the p99 is one of the slow",
		"-duration 1s -rate 5001": "-rate is 5001: want 100 to 5000",
		"-duration 1ms":           "-duration is 1ms: want 1s or more",
	} {
		if err := run(strings.Fields(args), io.Discard, io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
	s, err := parse(strings.Fields("-rate 200 -every 60 -duration 10s"), io.Discard)
	if err != nil || s.rate != 200 || s.every != 60 || s.duration != 10*time.Second {
		t.Errorf("%+v, error %v", s, err)
	}
}
