package idempotency

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// An Event is the outcome of one request with a key, or of a step of it.
type Event struct {
	Kind EventKind
	Key  string // the store's key, see StoreKey; empty for RefusedNoCaller
	// Status of the response that the handler made, or that was replayed; zero
	// without a response.
	Status int
	// Err is the error, for the names that mention it; a *PanicError if the handler
	// panicked.
	Err error
}

// A PanicError is a panic of the handler. It is for observers: the panic itself is raised
// again for net/http.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked; nil for http.ErrAbortHandler, which is no mistake
}

// newPanic is for a deferred function, with what recover has returned.
func newPanic(value any) *PanicError {
	e := &PanicError{Value: value}
	if value != http.ErrAbortHandler {
		e.Stack = debug.Stack()
	}
	return e
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Unwrap returns the value of the panic, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// An EventKind is what happened.
type EventKind uint8

const (
	// Ran: the handler returned, and its response is recorded.
	Ran EventKind = iota
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

// A kindInLog has the name of a kind, its level in the log, and the text there.
type kindInLog struct {
	name  string
	level slog.Level
	text  string
}

var eventKinds = [...]kindInLog{
	Ran:             {"ran", slog.LevelDebug, "carried out"},
	Released:        {"released", slog.LevelDebug, "ended without effect; the key is free"},
	Abandoned:       {"abandoned", slog.LevelError, "the outcome is unknown: find out what was done, then delete the entry of this key in the store"},
	Replayed:        {"replayed", slog.LevelDebug, "replayed"},
	RefusedInFlight: {"refused-in-flight", slog.LevelInfo, "refused: the first request is still running"},
	RefusedReused:   {"refused-reused", slog.LevelInfo, "refused: the key was used for another request"},
	RefusedUnknown:  {"refused-unknown", slog.LevelInfo, "refused: the outcome of the first request is unknown"},
	RefusedNotKept:  {"refused-not-kept", slog.LevelInfo, "refused: the response to the first request was not kept, or cannot be read"},
	RefusedShare:    {"refused-share", slog.LevelWarn, "refused: the caller holds its share of the store; give it more room, or keep records for less long"},
	RefusedNoCaller: {"refused-no-caller", slog.LevelWarn, "refused: the request does not say whose it is"},
	StoreFailed:     {"store-failed", slog.LevelWarn, "the key could not be claimed"},
	SaveFailed:      {"save-failed", slog.LevelWarn, "the outcome could not be stored at once; it is tried again"},
	SaveLost:        {"save-lost", slog.LevelError, "the outcome could not be stored, and is unknown to others"},
	Fenced:          {"fenced", slog.LevelWarn, "another owner took over while the handler ran; its outcome is not recorded"},
}

func (w EventKind) inLog() kindInLog {
	if int(w) < len(eventKinds) {
		return eventKinds[w]
	}
	unknown := fmt.Sprintf("what(%d)", uint8(w))
	return kindInLog{unknown, slog.LevelDebug, unknown}
}

// String returns the name in lower case, such as "refused-in-flight".
func (w EventKind) String() string { return w.inLog().name }

// An Observer receives every event, in the goroutine in which it happens. It must be
// safe for concurrent use and should not block. See [NewLog].
type Observer func(ctx context.Context, e Event)
