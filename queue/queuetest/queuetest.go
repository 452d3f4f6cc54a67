package queuetest

import (
	"cmp"
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/queue"
)

// A Target is a kind of broker under test: a server that is running, and how to reach
// it. Its functions must be safe for concurrent use.
type Target struct {
	// Declare makes a new, empty queue with its queue of dead letters, and returns an
	// address: text that Connect understands in any process. What it made may be removed by
	// t.Cleanup.
	Declare func(t testing.TB, o Options) (address string)
	// Connect makes a connection of its own, as a new process would have it.
	Connect func(ctx context.Context, address string) (*Connection, error)
	// Restart stops the server and starts it again with what it keeps on disk, and
	// returns when it answers. Nil: it keeps nothing.
	Restart func(t testing.TB)

	// Orders are those that queues can be declared with. The suite is run for each.
	// Empty: queue.Unordered.
	Orders []queue.Order
	// Lease is the shortest lease that is worth testing with: expiry is waited for. Zero: 2 s.
	Lease time.Duration
	// Messages is how many NothingLost sends. Zero: 2,000; 1,000 with -short or the race detector; 10,000
	// if LULL_QUEUETEST_ALL is set.
	Messages int
	// Skip has the names of subtests that cannot pass ("Settle/ack"), and why not. They
	// are skipped, with that message.
	Skip map[string]string

	// Virtual: the broker is in this process and reads the clock with package time
	// only. Each subtest runs in a bubble of testing/synctest, and those that need another process
	// are left out. Declare and Connect are called within the bubble.
	Virtual bool

	stall time.Duration // for how long NothingLost waits for something to happen; zero: some minutes
}

// Options are those with which a queue is declared.
type Options struct {
	// Lease is the lease that the test will ask for, for brokers that fix it in the queue or
	// its consumer. Letters that a reading takes out (Connection.Letters) should have
	// that lease too.
	Lease time.Duration
	// Order is one of Target.Orders.
	Order queue.Order
	// Attempts is how often a message may be delivered. The broker's own limit must be
	// larger by at least 2.
	Attempts int
}

// A Connection is a process's access to a queue.
type Connection struct {
	Broker queue.Broker
	Sender queue.Sender
	// Letters begins a reading of the queue of dead letters.
	Letters func(ctx context.Context) (queue.DeadLetters, error)
	// Depth is how many messages are in the queue, ready, waiting and out; not its dead
	// letters. Nil: the broker cannot count them.
	Depth func(ctx context.Context) (int, error)
	// Close ends the connection. It is called once.
	Close func() error
}

func (x Target) withDefaults() Target {
	if len(x.Orders) == 0 {
		x.Orders = []queue.Order{queue.Unordered}
	}
	x.Lease = cmp.Or(x.Lease, 2*time.Second)
	return x
}

// allVariable, if set, makes the suite run under the race detector too, and with more messages.
const allVariable = "LULL_QUEUETEST_ALL"

// A connector is Target.Connect.
type connector = func(ctx context.Context, address string) (*Connection, error)

type check struct {
	name    string
	run     func(b *tester)
	process bool
}

// checks are all subtests of Run that can run at the same time.
var checks = slices.Concat(receiveChecks, attemptChecks, delayChecks, extendChecks, settleChecks, orderChecks,
	senderChecks, letterChecks, consumerChecks, redriveChecks)

// Run runs the suite.
func Run(t *testing.T, target Target) {
	target = target.withDefaults()
	if os.Getenv(workerVariable) != "" {
		t.Fatal("TestMain does not call queuetest.Main")
	}
	if raced && !target.Virtual && os.Getenv(allVariable) == "" {
		t.Skip("not with the race detector, unless " + allVariable + " is set: it takes a minute, and NothingLost runs")
	}
	t.Run("together", func(t *testing.T) {
		for _, order := range target.Orders {
			t.Run(order.String(), func(t *testing.T) {
				t.Parallel()
				for _, c := range checks {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						c.in(t, target, order)
					})
				}
			})
		}
	})
	for _, order := range target.Orders { // one at a time: the server is not there for others meanwhile
		t.Run("Restart/"+order.String(), func(t *testing.T) {
			check{name: "Restart", run: restarted, process: true}.in(t, target, order)
		})
	}
}

func (c check) in(t *testing.T, target Target, order queue.Order) {
	if why, skip := target.Skip[c.name]; skip {
		t.Skip("not for this broker: " + why)
	}
	if !target.Virtual {
		c.runTrial(t, target, order)
		return
	}
	if c.process {
		t.Skip("not for this broker: needs a broker that other processes can reach")
	}
	synctest.Test(t, func(t *testing.T) { c.runTrial(t, target, order) })
}
