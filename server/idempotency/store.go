package idempotency

import (
	"context"
	"errors"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// A Store remembers keys for the middleware: who is at work on a key, and its
// outcome. It keeps one entry for each key, which is in one of two forms:
//
//	owned      fingerprint, token, end of the lease, forget-at, resumed
//	completed  fingerprint, token, record, forget-at
//
// An implementation needs nothing else from this package. The record is bytes; the
// fingerprint and the token are 32 and 16 bytes that it compares for equality. Package
// storetest has the tests that every Store must pass.
//
// # Time
//
// The store's clock decides when a lease and an entry end, never the caller's: a
// caller passes durations. Where several processes share a store that is the clock
// of the server (Redis TIME, PostgreSQL clock_timestamp()), so that clocks that
// disagree cannot give a key to two owners. Durations may be rounded up to a
// millisecond. What ends at t is over at t.
//
// An entry whose forget-at has come does not exist any more, for every method,
// whether it has been deleted or not; when it is deleted is the store's business.
//
// # Fencing
//
// The token is made by the caller, at random, anew for each request, so no token
// comes up twice and an owner that was thought dead cannot be taken for its
// successor, not even where the key was released or forgotten in between. Extend,
// Complete and Release act for the entry's token only, and atomically with that
// comparison.
//
// # Errors
//
// ErrFenced and ErrTooLarge (wrapped or not) are answers: nothing was changed. Any
// other error means that it is not known whether the call took effect. So every
// method may be called again with the same arguments: a claim that did arrive is
// recognised by its token, and so is a completion.
//
// A method returns promptly when ctx ends, with an error for which
// errors.Is(err, ctx.Err()) holds unless it had its answer already; called with a
// ctx that has ended it changes nothing. A Store is safe for concurrent use.
//
// # Calls that arrive late
//
// A server that was stopped later carries out the requests in its connections, also of
// callers that have given up. Such a claim would hold a key on which nobody works. So a
// Claim changes nothing once ctx's deadline has passed, even if the server begins with it
// only then: send the deadline with it, by the server's clock. And after a Release that
// begins after the deadlines of all claims with its token, none of these claims has an
// entry.
//
// # Keys
//
// A key is 1 to MaxStoreKey bytes of printable ASCII (0x20 to 0x7e), compared byte
// by byte: spaces, quotes, backslashes, braces, colons, percent signs and all. A
// Store must not fold case, trim, or interpret them.
//
// # Durability
//
// An entry must survive everything that the store's documentation lists; write that list.
// If a claim can be lost (a Redis replica that takes over without it), the handler can
// run twice.
type Store interface {
	// Claim asks for c.Key, atomically. The first line that applies is the answer:
	//
	//	no entry                            new entry: Claimed
	//	fingerprint is not c.Fingerprint    Mismatch
	//	completed                           Replay, with the record
	//	token is c.Token                    renewed: Claimed (Resumed as the first time)
	//	the lease has not ended             InFlight, with what remains of it
	//	the lease has ended, c.Resume       taken over: Claimed, Resumed
	//	the lease has ended                 Unknown
	//
	// A new entry has c's fingerprint and token, a lease until now+c.Lease, and is
	// forgotten at now+c.Retention. Renewing sets the same lease and forget-at. Taking
	// over does that too, and replaces the former owner's token, which is fenced from
	// then on, by c.Token. Mismatch, Replay, InFlight and Unknown change nothing; Replay
	// does not prolong the record's life.
	//
	// Mismatch comes before all that follows it: a key reused for something else is
	// the caller's mistake whether or not the first request is still running.
	Claim(ctx context.Context, c Claim) (ClaimResult, error)

	// Extend gives the owner a lease until now+lease and has the entry forgotten at
	// now+retention. It is allowed after the lease has ended, as long as nobody has
	// taken over.
	//
	// A lease of zero gives up ownership without an outcome: from now on the key is
	// Unknown to whoever claims it. The token stays the entry's, so that the owner
	// may still complete it.
	//
	// ErrFenced if there is no entry, or it is completed, or has another token.
	Extend(ctx context.Context, key string, token FencingToken, lease, retention time.Duration) error

	// Complete stores the record in the owner's entry and has it forgotten at
	// now+retention. It is allowed after the lease has ended, as long as nobody has
	// taken over. The caller does not change the slice afterwards.
	//
	// An entry that was completed by the same token stays as it is, and the answer is
	// nil. ErrFenced if there is no entry, or it has another token. ErrTooLarge if
	// the store cannot keep a record of this length; the entry stays owned.
	Complete(ctx context.Context, key string, token FencingToken, record []byte, retention time.Duration) error

	// Release deletes the owner's entry: the key is as though it had never been used.
	// It is allowed after the lease has ended, as long as nobody has taken over.
	//
	// ErrFenced if there is no entry, or it is completed, or has another token.
	Release(ctx context.Context, key string, token FencingToken) error
}

// A Transactor is a Store that can run the handler inside a transaction in which
// the outcome is recorded too, so that either both are there afterwards or
// neither. The middleware uses it if Config.Transactional is set.
type Transactor interface {
	Store

	// Transact claims c.Key as Claim does. If that gives anything but Claimed, it
	// returns the answer and does not call run.
	//
	// Otherwise it calls run, once and in the same goroutine, with a context from
	// which the handler gets the transaction by a function of the store's own. No
	// retry after a serialization failure or a deadlock: run may have done what no
	// database rolls back, and cannot be called again.
	//
	//   - If run returns keep, the entry is completed with the record, to be forgotten
	//     at now+c.Retention, and the transaction is committed. Transact returns
	//     Claimed and nil only if all of that is committed.
	//   - If not, everything is rolled back, the claim with it: a new entry is gone,
	//     and one that was taken over is Unknown again. Transact returns Claimed and
	//     nil.
	//   - If run panics, the same, and Transact panics with the value.
	//
	// The error may be ErrTooLarge (everything is rolled back). With any other error
	// it is not known whether the transaction was committed; a later Claim shows it.
	//
	// ctx bounds the claim: Transact returns promptly when it ends before run is called,
	// and may then be called again. run is not called after that. Once run runs, the end
	// of ctx means nothing: the middleware gives the handler the request's own context,
	// with the values of the one that run was called with. After run, c.CommitTimeout is the
	// bound.
	//
	// The key is owned for as long as run runs; the middleware does not extend a lease
	// meanwhile. A store whose claim is not visible before the commit cannot know the
	// fingerprint of a request that is still running: it answers InFlight, and Remaining
	// may be zero. It must not wait for the other transaction to end.
	Transact(ctx context.Context, c Claim, run func(ctx context.Context, resumed bool) (record []byte, keep bool)) (ClaimResult, error)
}

// MaxStoreKey is the length, in bytes, of the longest key a Store is given.
const MaxStoreKey = scopeLen + 1 + maxKeyLimit

// A Fingerprint is the SHA-256 of what a request asks for.
type Fingerprint [32]byte

// A FencingToken is an owner: 128 random bits. The zero FencingToken owns nothing and is never
// passed to a Store.
type FencingToken [16]byte

// A Claim is the middleware's request to a Store for a key.
type Claim struct {
	Key string
	// Caller is the same for all keys of one caller, and empty where callers share their
	// keys. A Store may use it to give each a part of its room, and for nothing else.
	Caller        string
	Fingerprint   Fingerprint
	Token         FencingToken  // the owner, if it is claimed
	Lease         time.Duration // how long it is owned unless extended; positive
	Retention     time.Duration // when it is forgotten; not less than Lease
	Resume        bool          // take over from an owner whose lease has ended
	CommitTimeout time.Duration // Transact: how long storing the record and committing may take; 0: as the store likes
}

// A ClaimResult is a Store's answer to a Claim. The zero ClaimResult is no answer.
type ClaimResult struct {
	State     KeyState
	Resumed   bool          // Claimed: a former owner did not record its outcome
	Remaining time.Duration // InFlight: what is left of the owner's lease, more than zero
	Record    []byte        // Replay: as it was given to Complete; the caller's from now on
}

// A KeyState is the state of a key in a Store.
type KeyState uint8

const (
	// Claimed: the caller owns the key and shall run the handler.
	Claimed KeyState = iota + 1
	// InFlight: another owner is at work.
	InFlight
	// Replay: it is done, and here is the record.
	Replay
	// Mismatch: the key was used for something else.
	Mismatch
	// Unknown: an owner's lease has ended, or it gave up, and its outcome was never
	// recorded. It may have done everything, nothing, or a part.
	Unknown
)

var stateNames = [...]string{"none", "claimed", "in-flight", "replay", "mismatch", "unknown"}

// String is "claimed", "in-flight", "replay", "mismatch" or "unknown".
func (s KeyState) String() string { return choice.Name("state", stateNames[:], s) }

var (
	// ErrFenced is a Store's answer to a caller that does not own the key: it never did,
	// another has taken over, or the entry is completed, released or forgotten.
	ErrFenced = errors.New("idempotency: the key is not owned by this token")

	// ErrTooLarge is a Store's answer to a record that it cannot keep for its length.
	ErrTooLarge = errors.New("idempotency: the record is too large for the store")
)
