package lullsqs

import (
	"errors"
	"fmt"

	"github.com/lullgo/lull/queue"
)

// A Broker is a queue of Amazon SQS: a queue.Broker for one consumer, and a queue.Sender
// for any number of goroutines. Make one with [New].
type Broker struct {
	client API
	config Config
	fifo   bool

	forLetters bool // for Letters: the order within a group does not matter

	// State of Receive. Only one Receive runs at a time.
	rateLimited int     // rate-limited receives in a row
	overLimits  int     // receives in a row with too many messages in flight
	repeat      attempt // a receive from a FIFO queue that was not answered
}

// New returns the queue that config names. It makes no call: [Check] does, and finds out whether
// everything is there.
func New(c API, config Config) (*Broker, error) {
	if c == nil {
		return nil, errors.New("lullsqs: a queue needs a client")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("config of a queue of SQS: %w", err)
	}
	return &Broker{client: c, config: config.withDefaults(), fifo: isFIFO(config.Queue)}, nil
}

// Capabilities is part of queue.Broker. A deferral is never free, as SQS counts every receive.
func (q *Broker) Capabilities() queue.Capabilities {
	can := queue.Capabilities{
		MaxDelay: q.config.MaxDelay,
		Leases:   true, Extends: true, MaxLease: q.config.maxLease(),
	}
	if q.fifo {
		can.Order, can.Deduplicates = queue.PerGroup, true
	}
	return can
}

// Letters begins a reading of the queue of dead letters, for queue.Inspect and queue.Redrive: see
// queue.Scan. Other readers do not see the letters that this one holds. Each reading counts as a
// receive, so that queue must have no redrive policy.
//
// A letter that SQS itself has moved there has no envelope: its reason is queue.ReasonBroker, and
// its source is the name of its former queue. In a FIFO queue it keeps its group, and no more than
// ten of a group are seen until they are removed. If there may be more, the reading ends with an error
// (it counts them, if the client is an [Admin]). Letters that a consumer wrote do not hide each other.
func (q *Broker) Letters(c queue.ScanConfig) (queue.DeadLetters, error) {
	if q.config.DeadLetters == "" {
		return nil, errNoLetters
	}
	config := q.config
	config.Queue, config.DeadLetters, config.MaxAge = q.config.DeadLetters, "", 0
	dead, err := New(q.client, config)
	if err != nil {
		return nil, err
	}
	return dead.read(c)
}
