// Package brokers connects to message brokers by URL. It returns interfaces of package
// queue; each kind of broker has a file of its own.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// Errors that have exit codes of their own. errors.Is finds them.
var (
	ErrUnreachable = errors.New("the broker cannot be reached")
	ErrNoQueue     = errors.New("there is no such queue")
)

// An Opener connects to a kind of broker.
type Opener func(ctx context.Context, u *url.URL) (Broker, error)

// Kinds are the kinds of brokers, by the scheme of their URLs.
var Kinds = map[string]Opener{}

// Parse parses the URL of a broker. The error names what is allowed, and never has a password in it.
func Parse(text string) (*url.URL, error) {
	allowed := "want a URL that begins with " + strings.Join(slices.Sorted(maps.Keys(Kinds)), "://, ") + "://"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New(allowed) // err contains the URL
	case Kinds[u.Scheme] == nil:
		return nil, fmt.Errorf("%s, not %q", allowed, u.Scheme+"://")
	case u.Host == "":
		return nil, fmt.Errorf("want a host: %s://host", u.Scheme)
	}
	return u, nil
}

// redacted returns u without what may be a secret: the password, and the user, which on NATS may be a token.
func redacted(u *url.URL) string {
	open := *u
	if open.User != nil {
		open.User = nil
		return strings.Replace(open.String(), "://", "://...@", 1)
	}
	return open.String()
}

// Open connects to the broker at u, a result of Parse.
func Open(ctx context.Context, u *url.URL) (Broker, error) {
	b, err := Kinds[u.Scheme](ctx, u)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redacted(u), err)
	}
	return b, nil
}

// markedAs returns err, which errors.Is then finds as kind, too.
func markedAs(kind, err error) error { return fmt.Errorf("%w: %w", kind, err) }
