package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// The flight of the program, shortened, with margins that leave room for a machine that
// has other things to do. It is given three tries: a machine that is away for half a
// second makes an overload of its own, and shows nothing about the server under test.
func TestFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: takes ten seconds of real time")
	}
	if raced {
		t.Skip("the race detector makes it an overload of the machine, not of the server")
	}
	var wrong []string
	fair := 0
	for range 3 {
		parts, err := show(setting{times: 3, duration: time.Second}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		wrong = nil
		check := func(ok bool, part int, what string) {
			if !ok {
				wrong = append(wrong, fmt.Sprintf("(%c) %s: %+v", 'a'+part, what, parts[part]))
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
		if wrong == nil {
			return
		}
		if !slices.ContainsFunc(parts[:], busy) {
			fair++
		}
		t.Logf("one more try: %s", strings.Join(wrong, "\n"))
	}
	if fair == 0 {
		t.Log("the machine was too busy in each of the three tries: nothing is compared")
		return
	}
	t.Error(strings.Join(wrong, "\n"))
}

// busy reports that the machine, not the server under test, was in the way: its sleeps were
// a quarter longer than they should be, or one call in a hundred began late.
func busy(f figures) bool { return f.perItem > usual*5/4 || f.lateness > usual }

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-times", "0"}, {"-times", "NaN"}, {"-seconds", "1"}, {"-seconds", "61"}, {"what"}, {"-what"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
