package idempotency

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// The defaults of the zero Config.
const (
	DefaultRetention   = 24 * time.Hour
	DefaultLease       = 30 * time.Second
	DefaultRetryAfter  = 2 * time.Second
	DefaultMaxKey      = 255
	DefaultMaxBody     = 1 << 20
	DefaultMaxResponse = 1 << 20
)

// The bounds that Validate checks.
const (
	minLease     = 100 * time.Millisecond
	maxLease     = time.Hour
	maxRetention = 10 * 365 * 24 * time.Hour
	maxBytes     = 1 << 30
)

// A Config sets how the middleware behaves. It is plain, comparable data; the zero
// Config is the recommended one.
type Config struct {
	// Optional: a POST, a PATCH, or a request with an unknown method may come
	// without a key, and is then run without protection. Otherwise it is answered
	// with 400. PUT and DELETE never need a key; GET, HEAD, OPTIONS and TRACE pass
	// through with or without one.
	Optional bool

	// Retention is how long a key is remembered, counted from the end of its request:
	// after that the same key is a new request. Publish it ([Config.Describe]). Zero:
	// 24 h, as Stripe promises at least. From Lease to 10 years.
	Retention time.Duration

	// Lease is how long a key stays taken when its owner falls silent: crashed, cut
	// off from the store, or stopped. While the handler runs the lease is extended
	// every third of it, so it need not be longer than the handler runs. Zero: 30 s.
	// From 100 ms to 1 h.
	Lease time.Duration

	// Resume: when an owner's lease has ended and its outcome is unknown, the next
	// request with its key is given to the handler, and [KeyedRequest.Resumed] is set, so
	// that it can find out what the first one did. Only for handlers that look at it.
	// Otherwise such a request is answered with 409 and ProblemOutcomeUnknown, for as
	// long as the key is remembered.
	Resume bool

	// Strict: responses with status 408 and 425, and those with 429 and 503 that have a
	// Retry-After, are recorded like others, unless the handler declared [NoEffect].
	// Otherwise they mean "not done, try again", as they are defined, and release
	// the key, unless the handler declared [Committed].
	Strict bool

	// FollowClient: the handler's context ends when the client's connection does.
	// Otherwise it has only the values and the deadline of the request's context: the
	// handler runs to its end, and a client that lost its connection finds the response
	// when it asks again. After a handler that was cut off the outcome is unknown.
	FollowClient bool

	// FailOpen: while the store is down, requests are run without protection, and may
	// run twice. Otherwise they are answered with 503 and Retry-After.
	FailOpen bool

	// Transactional: the handler runs in a transaction of the store, which must be a
	// [Transactor]. All that the handler does must be done in that transaction. Then
	// there are no unknown outcomes. A response of 500 or more, or one that releases
	// the key, rolls back. Store bounds the claim; the commit may take as long as one attempt of Store.
	Transactional bool

	// RetryAfter is the largest Retry-After of a request that should be sent again: 503,
	// and 409 while the first request is running. With 409 it is the rest of the lease if
	// that is shorter. The key is free when the lease ends, at the latest; most handlers
	// end long before. Whole seconds, rounded up. Zero: 2 s.
	RetryAfter time.Duration

	// MaxKey is the length of the longest key, in characters. A longer one is answered
	// with 400. Zero: 255, as at Stripe. Up to 1024.
	MaxKey int
	// MaxBody is the length of the longest request body, in bytes: it is read into
	// memory before the handler starts. A longer one is answered with 413. Zero: 1 MiB.
	// Up to 1 GiB.
	MaxBody int64
	// MaxResponse is how much of a response is kept in memory and stored, header and
	// body together, in bytes. A longer one is passed on to the client, and what is
	// recorded is that the request was carried out: later requests are answered with
	// 409 and ProblemResponseNotKept. Zero: 1 MiB. Up to 1 GiB.
	MaxResponse int

	// Documentation is the URL of the page about how this server treats keys. If
	// it is not empty, problems have a Link to it (rel="describedby").
	Documentation string

	// Store is the policy for calls to the store before the handler runs, in a transaction
	// or not. The zero Policy stands for [StorePolicy]. Its WorstCase is the longest that a
	// request waits for the handler or an answer of 503. After the handler it waits for the
	// store as long as for one attempt.
	Store lull.Policy
}

// StorePolicy is the default of Config.Store: three attempts of at most a second
// within three seconds, about 20 ms apart, and everything else as in the zero
// [lull.Policy]. Its circuit breaker opens when a store has been down for two seconds.
func StorePolicy() lull.Policy {
	return lull.Policy{
		AttemptTimeout: time.Second,
		Deadline:       3 * time.Second,
		Backoff:        backoff.Schedule{Base: 20 * time.Millisecond, Cap: 200 * time.Millisecond},
	}
}

// savePolicy is for an outcome that could not be stored at once: it is retried for a
// long time, until the store answers. It needs no budget: there is at most one such call
// per request.
func savePolicy(lease time.Duration) lull.Policy {
	p := lull.Policy{
		Attempts:       1000,
		AttemptTimeout: 5 * time.Second,
		Deadline:       max(10*lease, time.Minute),
		Backoff:        backoff.Schedule{Base: 100 * time.Millisecond, Cap: 5 * time.Second},
		Timeouts:       lull.TimeoutsAlways,
		Nested:         lull.NestedAlways,
		Budget:         budget.Config{Unlimited: true},
	}
	p.Breaker.Off = true
	return p
}

// Validate returns all mistakes in c as one error, each naming its field, the value and
// what is allowed; nil if there are none.
func (c Config) Validate() error {
	var l problem.List
	d := c.WithDefaults()
	l.Check(d.Lease >= minLease && d.Lease <= maxLease, "Lease", c.Lease, "a duration from 100ms to 1h, or 0 for the default of 30s")
	l.Check(d.Retention >= d.Lease && d.Retention <= maxRetention, "Retention", c.Retention, "a duration from that of Lease to 10 years, or 0 for the default of 24h")
	l.Check(c.RetryAfter >= 0, "RetryAfter", c.RetryAfter, "a positive duration, or 0 for the default of 2s")
	l.Check(d.MaxKey >= 1 && d.MaxKey <= maxKeyLimit, "MaxKey", c.MaxKey, "1 to 1024 characters, or 0 for the default of 255")
	l.Check(d.MaxBody >= 1 && d.MaxBody <= maxBytes, "MaxBody", c.MaxBody, "1 byte to 1 GiB, or 0 for the default of 1 MiB")
	l.Check(d.MaxResponse >= 1 && d.MaxResponse <= maxBytes, "MaxResponse", c.MaxResponse, "1 byte to 1 GiB, or 0 for the default of 1 MiB")
	l.Check(documentation(c.Documentation), "Documentation", fmt.Sprintf("%q", c.Documentation), "an absolute URL, or empty")
	l.Check(!c.Transactional || !c.FailOpen, "FailOpen", c.FailOpen, "false beside Transactional: the handler cannot run without a transaction")
	l.In("Store", c.Store.Validate())
	l.Check(d.Store.Hedge.Attempts < 2, "Store.Hedge.Attempts", c.Store.Hedge.Attempts, "none: claims do not run beside themselves")
	l.Units(c)
	return l.Err()
}

func documentation(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	if err != nil || !u.IsAbs() {
		return false
	}
	for i := range len(s) { // it goes into a header, between < and >
		if s[i] <= ' ' || s[i] > '~' || s[i] == '<' || s[i] == '>' {
			return false
		}
	}
	return true
}

// WithDefaults returns c with every zero replaced by its default.
func (c Config) WithDefaults() Config {
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.RetryAfter = cmp.Or(c.RetryAfter, DefaultRetryAfter)
	c.MaxKey = cmp.Or(c.MaxKey, DefaultMaxKey)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.MaxResponse = cmp.Or(c.MaxResponse, DefaultMaxResponse)
	c.Store = cmp.Or(c.Store, StorePolicy())
	return c
}

// Describe returns what the draft asks a server to publish, in a paragraph for the
// documentation of an API: which requests need a key, what a key is, and how long it
// is remembered.
func (c Config) Describe() string {
	c = c.WithDefaults()
	need := choice.Either(c.Optional, "POST and PATCH requests may have", "POST and PATCH requests need")
	return fmt.Sprintf("%s a header Idempotency-Key: a string in double quotes, of 1 to %d printable ASCII characters, "+
		"unique to the operation; a random UUID is best. A request that is repeated with the same key, method, target, "+
		"credentials and body is not carried out again: it gets the first one's response, marked Idempotency-Replayed: true, "+
		"or 409 while that is still running. A key is remembered for %s after its request. The body may have up to %d bytes.",
		need, c.MaxKey, period(c.Retention), c.MaxBody)
}

// period returns d as text, in hours or days if it is a whole number of them.
func period(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d > 2*day && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d > time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return d.String()
}
