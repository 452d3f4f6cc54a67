//go:build servers

package lullsqs

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// Slow tests wait for most of their time. They run beside the rest, on an emulator of their own,
// which they may restart.

// lease is long enough for the emulator to answer several times: it is slow on a busy machine.
func lease() time.Duration { return min(pace.Stretch(2*time.Second), 6*time.Second) }

func TestConformance(t *testing.T) { conforms(t, queue.Unordered) }

func TestConformanceInGroups(t *testing.T) { conforms(t, queue.PerGroup) }

func conforms(t *testing.T, order queue.Order) {
	t.Parallel()
	e := emulators.need(t, order.String()) // one for each: it uses no more than one core
	queuetest.Run(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Orders: []queue.Order{order},
	})
}

func TestNothingLost(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "nothing lost")
	queuetest.NothingLost(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Lease: lease(),
		Messages: 1000, // half as many as by default: it is the work of the emulator that takes time
	})
}

// A failing message delays its group, for a second at least: 10,000 would take minutes.
func TestNothingLostInGroups(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "nothing lost in groups")
	queuetest.NothingLost(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Lease: lease(),
		Orders: []queue.Order{queue.PerGroup}, Messages: 1000,
	})
}
