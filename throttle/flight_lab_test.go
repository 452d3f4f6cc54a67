//go:build lab && !race

package throttle

import (
	"math"
	"testing"
	"time"
)

// The book's formula alone is locked out, and a faster probe does not mend it. A
// small K is slow. The defaults rest on this.
func TestWhyTheDefaultsAreNotTheBooks(t *testing.T) {
	for _, c := range []struct {
		config    Config
		clients   int
		low, high int // seconds until it is back
	}{
		{Config{Recent: DefaultWindow, ProbeEvery: -1}, 1, 700, math.MaxInt},
		{Config{Recent: DefaultWindow, ProbeEvery: -1}, 100, 600, 900},
		{Config{Recent: DefaultWindow, ProbeEvery: -1}, 1000, 450, 700},
		{Config{Recent: DefaultWindow, ProbeEvery: sec}, 1, 350, 550},
		{Config{Recent: DefaultWindow, ProbeEvery: sec}, 100, 100, 180},
		{Config{K: 1.1}, 1, 200, 600},
		{Config{K: 1.1}, 100, 80, 250},
		{Config{K: 1.5}, 1, 50, 120},
		{Config{K: 3}, 1, 10, 60},
		{Config{ProbeEvery: sec}, 1, 10, 50},
	} {
		c.config.Mode = Adaptive
		l := outage(c.config, c.clients, 500, 600).fly(t, time.Duration(760+min(c.high, 1020))*sec, 2)
		back := l.back(750)
		t.Logf("%+v, %d clients: back after %d s", c.config, c.clients, back)
		if back < c.low || back > c.high {
			t.Errorf("%+v, %d clients: back after %d s, want %d to %d", c.config, c.clients, back, c.low, c.high)
		}
	}
}
