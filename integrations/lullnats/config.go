package lullnats

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// The defaults of a zero Config.
const (
	defaultOutstanding = 1000
	defaultDuplicates  = 2 * time.Minute

	slack = 5 // how many deliveries beyond Policy.Attempts the server may make by default
	// MaxDelay is the longest delay of a retry or a deferral.
	MaxDelay = 30 * 24 * time.Hour
)

// restartError is the largest error of the server's times after a restart: it keeps the times of
// deliveries that are out or waiting in whole seconds, rounded down.
const restartError = time.Second

// A Config names a queue in JetStream and its settings: a stream, a durable pull consumer of it
// that all instances of a service share, a stream for dead letters, and one for the server's
// advisories about messages that it has given up. It is plain, comparable data. Stream, Consumer
// and Subject are required. The zero values of the others are recommended.
//
// Use the same Config for all functions of this package, in all processes.
type Config struct {
	// Stream is the name of the stream. Letters, digits, - and _, up to 100.
	Stream string
	// Consumer is the name of the durable consumer, with the same characters.
	Consumer string
	// Subject selects the consumer's messages in the stream. It may have wildcards. Declare makes
	// the stream with it.
	Subject string

	// Source is the name of the queue in dead letters that the Reaper writes: the name that
	// queue.New got. Zero: Stream.
	Source string

	// Lease is how long a message is out: AckWait of the consumer, less a second that a restart of
	// the server may take away. From 100 ms to 12 h. Zero: 30 s when the consumer is declared, and
	// the existing value if it exists.
	Lease time.Duration
	// Policy is the policy of the consumer's dependency. Check compares DeliveryLimit and MaxAge with
	// it: a message must not be dropped while it is retried. Zero: queue.Policy.
	Policy lull.Policy
	// DeliveryLimit is the number of deliveries after which the server gives a message up: MaxDeliver of
	// the consumer. The Reaper then makes a dead letter of it. At least Policy.Attempts + 2. Zero:
	// Policy.Attempts + 5. Negative: never.
	DeliveryLimit int
	// Outstanding is how many messages may be out or waiting for a retry, over all instances:
	// MaxAckPending of the consumer. At this number no other is delivered. Zero: 1,000; 1 if Order
	// is queue.Total. Negative: any number.
	Outstanding int
	// Concurrency is how many messages all instances together handle at a time. Check reports an
	// Outstanding that is less. Zero: not known.
	Concurrency int
	// Order is queue.Unordered or queue.Total. Zero: queue.Unordered.
	Order queue.Order

	// Schedules: retries and deferrals are messages that the server keeps until their time (server
	// 2.12). They do not count as Outstanding, and a deferral is no attempt. The stream must be a
	// work queue. See docs/queues.md.
	Schedules bool
	// LaterSubject is the subject, without wildcards, below which messages wait if Schedules is
	// set. The stream must cover it, and the consumer must not. Zero: later.<Stream>.<Consumer>.
	LaterSubject string

	// DeadLetters is the stream for dead letters. Zero: <Stream>_DEAD.
	DeadLetters string
	// DeadLetterSubject is the subject of dead letters, without wildcards. Zero:
	// dead.<Stream>.<Consumer>.
	DeadLetterSubject string
	// AdvisoryStream is the stream that keeps the advisories for the Reaper. It is not used if
	// DeliveryLimit is negative. Zero: <Stream>_<Consumer>_ADVISORIES.
	AdvisoryStream string

	// Duplicates is how long a message, or a dead letter, with the id of another is discarded.
	// Zero: 2 minutes.
	Duplicates time.Duration
	// MaxAge is the age at which the server drops a message from the stream, dead letter or not. It
	// must be more than a message can take under Policy (queue.Config.WorstCase). Zero: any age.
	MaxAge time.Duration
	// Replicas is how many servers keep each stream. Zero: 1 when a stream is declared, and any
	// number if it exists.
	Replicas int
	// Memory: declared streams are kept in memory only.
	Memory bool
}

var (
	validID      = regexp.MustCompile(`^[!-~]{0,128}$`)
	validName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
	validSubject = regexp.MustCompile(`^[^\s.*>]+(\.[^\s.*>]+)*$`)
	validFilter  = regexp.MustCompile(`^(>|([^\s.*>]+|\*)(\.([^\s.*>]+|\*))*(\.>)?)$`)
)

// Validate reports everything that is wrong with c at once. Each problem names its field, the value
// and what is allowed. It returns nil if nothing is wrong.
func (c Config) Validate() error {
	var l problem.List
	d := c.WithDefaults()
	name := func(field, value string) {
		l.Check(validName.MatchString(value), field, fmt.Sprintf("%q", value), "1 to 100 letters, digits, hyphens and underscores")
	}
	subject := func(field, value string) {
		l.Check(validSubject.MatchString(value) && len(value) <= 300 && !strings.HasPrefix(value, "$"), field, fmt.Sprintf("%q", value), "a subject without wildcards, of up to 300 bytes, that does not begin with $")
	}
	name("Stream", c.Stream)
	name("Consumer", c.Consumer)
	l.Check(validFilter.MatchString(c.Subject) && len(c.Subject) <= 300 && !strings.HasPrefix(c.Subject, "$"), "Subject", fmt.Sprintf("%q", c.Subject), "a subject, with wildcards or not, of up to 300 bytes, that does not begin with $")
	l.Check(c.Lease == 0 || c.Lease >= 100*time.Millisecond && c.Lease <= 12*time.Hour, "Lease", c.Lease, "a duration from 100ms to 12h, or 0 for the default of 30s")
	attempts := d.attempts()
	l.In("Policy", c.Policy.Validate())
	l.Check(c.DeliveryLimit <= 0 || c.DeliveryLimit >= attempts+2, "DeliveryLimit", c.DeliveryLimit, fmt.Sprintf("at least %d (Policy.Attempts + 2), 0 for Policy.Attempts + %d, or less for no limit", attempts+2, slack))
	switch c.Order {
	case queue.Unordered:
	case queue.Total:
		l.Check(c.Outstanding == 0 || c.Outstanding == 1, "Outstanding", c.Outstanding, "0 or 1, as Order is total")
		l.Check(!c.Schedules, "Schedules", c.Schedules, "false, as Order is total")
	default:
		l.Add("Order", c.Order, "unordered or total: JetStream has no order by group")
	}
	l.Check(c.Concurrency >= 0, "Concurrency", c.Concurrency, "a positive number, or 0 if it is not known")
	if d.Outstanding > 0 && c.Order != queue.Total {
		l.Check(c.Concurrency <= d.Outstanding, "Concurrency", c.Concurrency, fmt.Sprintf("at most Outstanding, %d", d.Outstanding))
	}
	if c.DeadLetters != "" {
		name("DeadLetters", c.DeadLetters)
	}
	if c.AdvisoryStream != "" {
		name("AdvisoryStream", c.AdvisoryStream)
	}
	l.Check(d.DeadLetters != c.Stream, "DeadLetters", fmt.Sprintf("%q", d.DeadLetters), "another stream than Stream")
	l.Check(d.AdvisoryStream != c.Stream && d.AdvisoryStream != d.DeadLetters, "AdvisoryStream", fmt.Sprintf("%q", d.AdvisoryStream), "another stream than Stream and DeadLetters")
	if c.DeadLetterSubject != "" {
		subject("DeadLetterSubject", c.DeadLetterSubject)
	}
	if c.LaterSubject != "" {
		subject("LaterSubject", c.LaterSubject)
	}
	l.Check(!matchesAll(c.Subject, d.DeadLetterSubject), "DeadLetterSubject", fmt.Sprintf("%q", d.DeadLetterSubject), "none that is of Subject, "+c.Subject)
	if c.Schedules {
		l.Check(!matchesAll(c.Subject, d.LaterSubject+".x"), "LaterSubject", fmt.Sprintf("%q", d.LaterSubject), "none below which is Subject, "+c.Subject)
	}
	l.Check(c.Duplicates == 0 || c.Duplicates >= time.Second, "Duplicates", c.Duplicates, "at least 1s, or 0 for the default of 2m")
	l.Check(c.MaxAge >= 0 && (c.MaxAge == 0 || c.MaxAge >= d.Duplicates), "MaxAge", c.MaxAge, "at least Duplicates, "+d.Duplicates.String()+", or 0 for any")
	l.Check(c.Replicas >= 0 && c.Replicas <= 5, "Replicas", c.Replicas, "1 to 5, or 0")
	return l.Err()
}

// WithDefaults returns c with every zero replaced by its default, except Lease and Replicas, which
// depend on the existing queue.
func (c Config) WithDefaults() Config {
	c.Source = cmp.Or(c.Source, c.Stream)
	c.Policy = cmp.Or(c.Policy, queue.Policy())
	c.DeliveryLimit = max(cmp.Or(c.DeliveryLimit, c.attempts()+slack), -1)
	if c.Outstanding == 0 {
		c.Outstanding = choice.Either(c.Order == queue.Total, 1, defaultOutstanding)
	}
	c.Outstanding = max(c.Outstanding, -1)
	c.LaterSubject = cmp.Or(c.LaterSubject, "later."+c.Stream+"."+c.Consumer)
	c.DeadLetters = cmp.Or(c.DeadLetters, c.Stream+"_DEAD")
	c.DeadLetterSubject = cmp.Or(c.DeadLetterSubject, "dead."+c.Stream+"."+c.Consumer)
	c.AdvisoryStream = cmp.Or(c.AdvisoryStream, c.Stream+"_"+c.Consumer+"_ADVISORIES")
	c.Duplicates = cmp.Or(c.Duplicates, defaultDuplicates)
	return c
}

func (c Config) attempts() int { return c.Policy.WithDefaults().MaxAttempts() }

// ackWait returns AckWait of the consumer that Declare makes.
func (c Config) ackWait() time.Duration { return cmp.Or(c.Lease, queue.DefaultLease) + restartError }

// advisories returns the subjects of the server's advisories about messages that it gives up.
func (c Config) advisories() []string {
	const about = "$JS.EVENT.ADVISORY.CONSUMER."
	return []string{about + "MAX_DELIVERIES." + c.Stream + "." + c.Consumer, about + "MSG_TERMINATED." + c.Stream + "." + c.Consumer}
}
func (c Config) reaper() string { return "lull-reaper-" + c.Stream + "-" + c.Consumer }

// reaps reports whether the server may give messages up.
func (c Config) reaps() bool { return c.DeliveryLimit > 0 }

// matchesAll reports whether filter a matches everything that subject b matches.
func matchesAll(a, b string) bool {
	if a == "" {
		return b == ""
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i, t := range as {
		switch {
		case t == ">":
			return len(bs) > i
		case i >= len(bs) || bs[i] == ">":
			return false
		case t != "*" && t != bs[i]:
			return false
		}
	}
	return len(as) == len(bs)
}
