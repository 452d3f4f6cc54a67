package lullsqs

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// The defaults of the zero Config.
const (
	defaultWait     = 5 * time.Second
	defaultMaxDelay = 6 * time.Hour
)

// The limits of SQS.
const (
	longestWait  = 20 * time.Second
	maxOut       = 12 * time.Hour // from its receive until it must be visible again, all in all
	mostMessages = 10             // in one receive
	mostAttrs    = 10             // of one message
	mostBytes    = 1 << 20        // of one message, with its attributes
	mostName     = 256            // of an attribute
)

// clockMargin is kept of the twelve hours, since clocks differ.
const clockMargin = time.Minute

// A Config names a queue and how it is read. It is plain, comparable data.
type Config struct {
	// Queue is the URL of the queue. One that ends in ".fifo" is a FIFO queue.
	Queue string
	// DeadLetters is the URL of the queue for its dead letters: a FIFO queue if Queue is one, and
	// only then. Empty: no such queue. Then writing a dead letter is an error, and the message
	// stays.
	DeadLetters string
	// Wait is how long one receive waits for messages (a long poll). It is at most half of the
	// requested lease, but no less than a second. Stopping may take that much longer, for a receive
	// is not cut off. Whole seconds from 1 to 20. Zero: 5 s, which makes 17,000 receives a day of a
	// queue with no messages.
	Wait time.Duration
	// MaxDelay is the longest delay (queue.Capabilities.MaxDelay). SQS lets a message be out for 12
	// hours after each receive, in all: the time of its handler and the delay that follows. So a
	// longer delay shortens the time for which a lease can be extended: queue.Capabilities.MaxLease
	// is 11h59m less MaxDelay. Whole seconds from 1 s to 11 h. Zero: 6 h.
	MaxDelay time.Duration
	// MaxAge is how long Queue keeps a message. Declare and Check return it. A message that could
	// not be retried in that time is a dead letter, with the reason queue.ReasonExpired. Zero: it is not
	// known, and SQS drops such a message.
	MaxAge time.Duration
}

// Validate reports everything that is wrong with c at once. Each problem names its field, the value
// and what is allowed. It returns nil if nothing is wrong.
func (c Config) Validate() error {
	var l problem.List
	const wanted = "the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
	l.Check(isQueueURL(c.Queue), "Queue", strconv.Quote(c.Queue), wanted)
	if c.DeadLetters != "" {
		l.Check(isQueueURL(c.DeadLetters), "DeadLetters", strconv.Quote(c.DeadLetters), wanted+", or nothing for none")
		switch {
		case c.DeadLetters == c.Queue:
			l.Add("DeadLetters", strconv.Quote(c.DeadLetters), "another queue than Queue")
		case isFIFO(c.Queue) != isFIFO(c.DeadLetters):
			l.Add("DeadLetters", strconv.Quote(c.DeadLetters), "a FIFO queue (.fifo) if Queue is one, and only then")
		}
	}
	d := c.withDefaults()
	l.Check(isWholeSeconds(d.Wait) && d.Wait >= time.Second && d.Wait <= longestWait, "Wait", c.Wait, "whole seconds from 1s to 20s, or 0 for the default of 5s")
	l.Check(isWholeSeconds(d.MaxDelay) && d.MaxDelay >= time.Second && d.MaxDelay <= 11*time.Hour, "MaxDelay", c.MaxDelay, "whole seconds from 1s to 11h, or 0 for the default of 6h")
	l.Check(c.MaxAge >= 0, "MaxAge", c.MaxAge, "a positive duration, or 0 if it is not known")
	return l.Err()
}

func (c Config) withDefaults() Config {
	c.Wait = cmp.Or(c.Wait, defaultWait)
	c.MaxDelay = cmp.Or(c.MaxDelay, defaultMaxDelay)
	return c
}

// maxLease returns how long one delivery can be kept.
func (c Config) maxLease() time.Duration { return maxOut - clockMargin - c.MaxDelay }

func isQueueURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(u.Path) > 1 && !strings.HasSuffix(u.Path, "/")
}

func isFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

func isWholeSeconds(d time.Duration) bool { return d%time.Second == 0 }

func ceilSeconds(d time.Duration) time.Duration {
	if r := d % time.Second; r > 0 {
		return d - r + time.Second
	}
	return d
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }
