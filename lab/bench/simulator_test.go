package main

import (
	"math"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// Both simulators play the same storm: what comes of it agrees within the luck of
// their draws. (An unsorted timing wheel is 3 % off.)
func TestBothSimulatorsAgree(t *testing.T) {
	const clients = 50_000
	a, b := must.Have(lullStorm(clients)), must.Have(heapStorm(clients))
	t.Logf("lull: %d attempts, %d succeeded; heap: %d, %d", a.attempts, a.successes, b.attempts, b.successes)
	// The number of attempts has a standard deviation of about 150, that of
	// successes, which the capacity fixes, less.
	if d := math.Abs(float64(a.attempts - b.attempts)); d > 1000 {
		t.Errorf("attempts differ by %.0f", d)
	}
	if d := math.Abs(float64(a.successes - b.successes)); d > 500 {
		t.Errorf("successes differ by %.0f", d)
	}
}
