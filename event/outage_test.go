package event_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/seed"
)

// lines returns a logger, and a function that returns how often each of its messages of level Info or above came.
func lines() (*slog.Logger, *bytes.Buffer, func() map[string]int) {
	var out bytes.Buffer
	return slog.New(slog.NewTextHandler(&out, nil)), &out, func() map[string]int {
		n := map[string]int{}
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, "msg=")
			if strings.HasPrefix(rest, `"`) {
				rest, _, _ = strings.Cut(rest[1:], `"`)
			}
			n[rest]++
		}
		return n
	}
}

// In an outage the log has a line for each state of the breaker, and one a minute with counts,
// however many calls are refused.
func TestTheLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out, count := lines()
		d, err := lull.NewDependency("payments", lull.Policy{}, lull.WithRand(seed.Source(t)), lull.WithObserver(event.NewLog(log)))
		if err != nil {
			t.Fatal(err)
		}
		down := true
		refused, failed := 0, 0
		for start := time.Now(); time.Since(start) < 10*time.Minute; {
			down = time.Since(start) < 9*time.Minute
			err := lull.Run(t.Context(), d, func(context.Context) error {
				if down {
					time.Sleep(20 * time.Millisecond)
					return lull.Transient(errors.New("down"))
				}
				return nil
			}, lull.Once())
			switch e, _ := errors.AsType[*lull.Error](err); {
			case e == nil:
			case errors.Is(err, lull.ErrCircuitOpen) && e.Attempts == 0:
				refused++
			case refused > 0:
				failed++
			}
			time.Sleep(50 * time.Millisecond)
		}
		n := count()
		if refused < 5000 || failed < 10 {
			t.Fatalf("%d refused, %d failed", refused, failed)
		}
		if n["circuit breaker opened"] != 1 || n["circuit breaker closed"] != 1 || n["circuit breaker is still open"] != 8 {
			t.Errorf("%v", n)
		}
		before := n["call failed"] // until it opened
		if before < 3 || before > 100 {
			t.Errorf("%d calls have a line", before)
		}
		if want := fmt.Sprintf("refused=%d failed=%d", refused, failed); !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
		if !strings.Contains(out.String(), "class=transient code=transient error=down") {
			t.Errorf("no failure in\n%s", out)
		}
		// The next outage begins anew.
		out.Reset()
		lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errors.New("down")) }, lull.Once())
		if count()["call failed"] != 1 {
			t.Errorf("after the outage: %s", out)
		}
	})
}

// Without an outage each failed call is a line, and nothing that was counted is lost.
func TestTheLogOutsideOfAnOutage(t *testing.T) {
	log, out, count := lines()
	o := event.NewLog(log)
	refusal := lull.Event{Kind: event.CallEnded, Dependency: "a", Reason: engine.CircuitOpen}
	o.Observe(t.Context(), refusal)
	if n := count(); n["call failed"] != 1 {
		t.Errorf("a refusal without an outage: %v", n)
	}
	out.Reset()
	for i := range 3000 { // dependencies that leave their registry while they are down
		name := fmt.Sprint("host", i)
		o.Observe(t.Context(), opened(name))
		refusal.Dependency = name
		o.Observe(t.Context(), refusal)
	}
	if n := count(); n["circuit breaker opened"] != 3000 || n["circuit breaker is still open"] != 2048 {
		t.Errorf("many outages: %v", n)
	}
}

func opened(name string) lull.Event {
	return lull.Event{Kind: event.CircuitChanged, Dependency: name, Circuit: &breaker.Change{From: breaker.Closed, To: breaker.Open}}
}

// Fallbacks that answer while a breaker is open are counted, and the failures of others are no
// lines of their own.
func TestTheLogOfFallbacksInAnOutage(t *testing.T) {
	log, out, count := lines()
	o := event.NewLog(log)
	o.Observe(t.Context(), opened("a"))
	for i := range 10 {
		o.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "a", Reason: engine.CircuitOpen, Fallback: true})
		ended := lull.Event{Kind: event.FallbackEnded, Dependency: "a", Reason: engine.CircuitOpen}
		if i == 0 {
			ended.Err = errors.New("nothing stored")
		}
		o.Observe(t.Context(), ended)
	}
	o.Observe(t.Context(), lull.Event{Kind: event.CircuitChanged, Dependency: "a", Circuit: &breaker.Change{From: breaker.Open, To: breaker.Closed}})
	if n := count(); len(n) != 2 || !strings.Contains(out.String(), "refused=10 failed=0 degraded=9") {
		t.Errorf("%v in\n%s", n, out)
	}
}

// What was not counted has a line of its own in an outage, too: a call that may have been carried out, and the failure of the
// fallback of a call that was not given up.
func TestTheLogOfAnOutageLosesNothing(t *testing.T) {
	log, out, count := lines()
	o := event.NewLog(log)
	o.Observe(t.Context(), opened("a"))
	o.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "a", Reason: engine.CircuitOpen})
	o.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "a", Reason: engine.AttemptsExhausted, Attempt: 1, OutcomeUnknown: true})
	if n := count(); n["call failed"] != 1 || !strings.Contains(out.String(), "outcome_unknown=true") {
		t.Errorf("an unknown outcome: %s", out)
	}
	o.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "a", Reason: engine.Limited, Fallback: true})
	o.Observe(t.Context(), lull.Event{Kind: event.FallbackEnded, Dependency: "a", Reason: engine.Limited, Err: errors.New("nothing stored")})
	if n := count(); n["call failed, and has a fallback"] != 1 || n["call failed, and its fallback"] != 1 {
		t.Errorf("a fallback: %s", out)
	}
}
