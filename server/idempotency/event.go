package idempotency

import (
	"context"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/server/idempotency/internal/panicked"
)

// An Event is the outcome of one request with a key, or of a step of it.
type Event struct {
	What What
	Key  string // the store's key, see StoreKey; empty for RefusedNoCaller
	// Status of the response that the handler made, or that was replayed; zero if
	// there is none.
	Status int
	// Err is the error, for the names that mention it; a *PanicError if the handler
	// panicked.
	Err error
}

// A PanicError is a panic of the handler, with its stack. It is for observers: the panic
// itself is raised again for net/http.
type PanicError = panicked.Error

// What happened.
type What uint8

const (
	// Ran: the handler returned, and its response is recorded.
	Ran What = iota
	// Released: the handler ended without effect, and the key is free.
	Released
	// Abandoned: the handler panicked or, resumed, failed, without declaring an
	// outcome. Somebody may have to look.
	Abandoned
	// Replayed: the recorded response was sent.
	Replayed
	// RefusedInFlight: 409, the first request is running.
	RefusedInFlight
	// RefusedReused: 422, the key was used for something else.
	RefusedReused
	// RefusedUnknown: 409, the outcome of the first request is unknown.
	RefusedUnknown
	// RefusedNotKept: 409, the response was not kept, or cannot be read (Err).
	RefusedNotKept
	// RefusedShare: 429, the caller's share of the store is used up (Err).
	RefusedShare
	// RefusedNoCaller: 400, the Scope does not know whose request it is (Err has what to
	// do about it).
	RefusedNoCaller
	// StoreFailed: the key could not be claimed (Err): 503, or run without
	// protection under Config.FailOpen.
	StoreFailed
	// SaveFailed: an outcome could not be stored at once (Err). It is tried again in
	// the background.
	SaveFailed
	// SaveLost: an outcome could not be stored at all (Err), and is unknown to others.
	SaveLost
	// Fenced: another owner took over while the handler ran; what it made is not
	// recorded.
	Fenced
)

var whatNames = [...]string{
	"ran", "released", "abandoned", "replayed", "refused-in-flight", "refused-reused", "refused-unknown",
	"refused-not-kept", "refused-share", "refused-no-caller", "store-failed", "save-failed", "save-lost", "fenced",
}

// String returns the name in lower case, such as "refused-in-flight".
func (w What) String() string { return choice.Name("what", whatNames[:], w) }

// An Observer receives every event, in the goroutine in which it happens. It must be
// safe for concurrent use and should not block. See [NewLog].
type Observer func(ctx context.Context, e Event)
