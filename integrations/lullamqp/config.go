package lullamqp

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/problem"
)

// The defaults of the zero Config.
const (
	defaultPrefix        = "lull"
	defaultDeliveryLimit = 100
)

// A Config names a queue and its settings. It is plain, comparable data. Declare and Check use all
// of it: write it in one place, for all processes.
type Config struct {
	// Queue is the name of the queue: 1 to 200 bytes, without '*' and '#', not beginning
	// with "amq.".
	Queue string
	// DeadLetters is the name of the queue of its dead letters. Several queues may share one. Zero:
	// Queue and ".dead".
	DeadLetters string
	// Prefix begins the names of the delay levels. All queues with the same prefix share them: one
	// per virtual host is enough. Zero: lull. Up to 100 bytes.
	Prefix string

	// DeliveryLimit is how often the broker hands out one copy of a message that is never settled
	// (its consumers crash). Then it dead-letters the message itself, without an envelope. Every
	// Retry makes a new copy. DeliveryLimit must be larger than Policy.Attempts by 2 at least. A
	// policy (operator policy) can lower it. Zero: 100. From 3 to 1,000,000.
	DeliveryLimit int

	// Native uses RabbitMQ's own delayed retries where they are long enough. The zero
	// Native: not at all.
	Native Native
}

// Native configures the delayed retry that quorum queues have from RabbitMQ 4.3 on: after its nth
// failure a message waits in its queue for the lesser of n times Min, and Max. With it, Retry is
// one frame instead of a message that is published and confirmed, and leaves no copy when it is
// interrupted. But waits are rounded up to those values (a longer Retry goes through the delay
// levels). And nothing can be written into a message that stays where it is: the times of the first
// delivery and the first failure are kept only from the levels on, and Policy.Deadline counts from
// a later delivery.
//
// Servers before 4.3 accept the arguments and ignore them. So Declare, Check and Receive look at
// the server's version. They fail with ErrNative if it is older, or the server is not RabbitMQ.
type Native struct {
	// Min is the wait after the first failure. 1 ms or more; zero: no native retries.
	Min time.Duration
	// Max is the longest wait in the queue: from Min to a day. It does not shorten a Retry:
	// the policy's Backoff.Cap does.
	Max time.Duration
}

// Validate reports everything that is wrong with c at once. Each problem names its field, the value
// and what is allowed. It returns nil if nothing is wrong.
func (c Config) Validate() error {
	var l problem.List
	d := c.WithDefaults()
	l.Check(queueName(c.Queue), "Queue", fmt.Sprintf("%q", c.Queue), queueNames)
	l.Check(c.DeadLetters == "" || queueName(c.DeadLetters) && c.DeadLetters != c.Queue, "DeadLetters", fmt.Sprintf("%q", c.DeadLetters),
		queueNames+", other than Queue, or empty for Queue with .dead")
	l.Check(queueName(d.Prefix) && len(d.Prefix) <= 100, "Prefix", fmt.Sprintf("%q", c.Prefix), "up to 100 bytes of UTF-8 without * and #, not beginning with amq., or empty for lull")
	l.Check(d.DeliveryLimit >= 3 && d.DeliveryLimit <= 1_000_000, "DeliveryLimit", c.DeliveryLimit, "3 to 1000000 deliveries, or 0 for the default of 100")
	if c.Native != (Native{}) {
		l.Check(c.Native.Min >= time.Millisecond && c.Native.Min <= day && c.Native.Min%time.Millisecond == 0, "Native.Min", c.Native.Min, "whole milliseconds, from 1ms to 24h, or 0 with Native.Max 0 for none")
		l.Check(c.Native.Max >= c.Native.Min && c.Native.Max <= day && c.Native.Max%time.Millisecond == 0, "Native.Max", c.Native.Max, "whole milliseconds, from Native.Min to 24h")
	}
	return l.Err()
}

const day = 24 * time.Hour

// WithDefaults returns c with every zero replaced by its default.
func (c Config) WithDefaults() Config {
	c.DeadLetters = cmp.Or(c.DeadLetters, c.Queue+".dead")
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.DeliveryLimit = cmp.Or(c.DeliveryLimit, defaultDeliveryLimit)
	return c
}

const queueNames = "a name of 1 to 200 bytes of UTF-8 without * and #, not beginning with amq."

// queueName reports whether a name may be used. It becomes a part of a routing key, which has at
// most 255 bytes, and of a binding's pattern, in which * and # are wildcards.
func queueName(s string) bool {
	return s != "" && len(s) <= 200 && utf8.ValidString(s) && !strings.ContainsAny(s, "*#") && !strings.HasPrefix(s, "amq.")
}
