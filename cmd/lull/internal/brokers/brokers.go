// Package brokers reaches message brokers by a URL, for the command line. What it
// hands out is package queue's; each kind of broker has a file of its own.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lullgo/lull/queue"
)

// A Broker is a server that has queues.
type Broker interface {
	// Letters begins to read the queue of dead letters of that name.
	Letters(ctx context.Context, name string) (queue.DeadLetters, error)
	// Sender sends to the queue of that name.
	Sender(ctx context.Context, name string) (queue.Sender, error)
	// Close ends the connection.
	Close() error
}

// Errors that scripts want to tell from others. They are found with errors.Is.
var (
	ErrUnreachable = errors.New("the broker cannot be reached")
	ErrNoQueue     = errors.New("there is no such queue")
)

// An Opener connects to a kind of broker.
type Opener func(ctx context.Context, u *url.URL) (Broker, error)

var kinds = map[string]Opener{}

// Register makes open the Opener of URLs with that scheme; nil removes it. It is for
// tests: what it does is seen by all.
func Register(scheme string, open Opener) {
	kinds[scheme] = open
	if open == nil {
		delete(kinds, scheme)
	}
}

// Schemes are those of the URLs that Open takes, in order.
func Schemes() []string {
	var s []string
	for scheme := range kinds {
		s = append(s, scheme)
	}
	slices.Sort(s)
	return s
}

// Parse reads the URL of a broker. The error says what is allowed, and never what a
// password was.
func Parse(text string) (*url.URL, error) {
	allowed := "want a URL that begins with " + strings.Join(Schemes(), "://, ") + "://"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New(allowed) // err has the URL in it
	case kinds[u.Scheme] == nil:
		return nil, fmt.Errorf("%s, not %q", allowed, u.Scheme+"://")
	case u.Host == "":
		return nil, fmt.Errorf("want a host: %s://host", u.Scheme)
	}
	return u, nil
}

// redacted is u without what may be a secret: a password, and a user, which on NATS may be
// a token.
func redacted(u *url.URL) string {
	open := *u
	if open.User != nil {
		open.User = nil
		return strings.Replace(open.String(), "://", "://...@", 1)
	}
	return open.String()
}

// Open connects to the broker at u, which Parse has read.
func Open(ctx context.Context, u *url.URL) (Broker, error) {
	open := kinds[u.Scheme]
	if open == nil {
		return nil, fmt.Errorf("no broker is known by the scheme %q", u.Scheme)
	}
	b, err := open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redacted(u), err)
	}
	return b, nil
}

// as is err, to be found as kind too.
func as(kind, err error) error { return fmt.Errorf("%w: %w", kind, err) }
