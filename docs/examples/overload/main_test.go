package main

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// The flight of the program, shortened, in virtual time and over a network in memory.
func TestFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := network{func() (net.Listener, error) { return memnet.Listen(), nil }, memnet.Dial}
		parts := must.Have(show(setting{times: 3, duration: time.Second, draws: seed.Source(t)}, memory, io.Discard))
		check := func(ok bool, part int, what string) {
			if !ok {
				t.Errorf("(%c) %s: %+v", 'a'+part, what, parts[part])
			}
		}
		check(parts[0].ofCapacity < 0.3, 0, "goodput did not collapse")
		check(parts[0].attempts > 2, 0, "clients did not retry")
		check(parts[1].ofCapacity > 0.7, 1, "goodput is below 70 % of the capacity")
		check(parts[1].p99 < 2*bound, 1, "p99 is above twice the bound of the queue")
		check(parts[1].attempts > 2, 1, "clients did not retry")
		check(parts[2].ofCapacity > 0.7, 2, "goodput is below 70 % of the capacity")
		check(parts[2].p99 < 2*bound, 2, "p99 is above twice the bound of the queue")
		check(parts[2].attempts < 1.25, 2, "clients retried, though they were told not to")
		t.Logf("%+v", parts)
	})
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-times", "0"}, {"-times", "NaN"}, {"-seconds", "1"}, {"-seconds", "61"}, {"what"}, {"-what"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
