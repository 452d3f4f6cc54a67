//go:build servers

package natstest

import (
	"testing"

	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, target(t, false))
}

// With retries and deferrals as scheduled messages.
func TestConformanceWithSchedules(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, target(t, true))
}

func TestNothingLost(t *testing.T) {
	t.Parallel()
	x := target(t, false)
	x.Orders = []queue.Order{queue.Unordered}
	queuetest.NothingLost(t, x)
}

func TestNothingLostInOrder(t *testing.T) {
	t.Parallel()
	x := target(t, false)
	x.Orders = []queue.Order{queue.Total}
	queuetest.NothingLost(t, x)
}

func TestNothingLostWithSchedules(t *testing.T) {
	t.Parallel()
	queuetest.NothingLost(t, target(t, true))
}
