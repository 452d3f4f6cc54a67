package lullbolt

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/lullgo/lull/idempotency"
	"github.com/lullgo/lull/internal/saturating"
)

// An instant is nanoseconds since 1970, by the store's clock.
type instant int64

// after is t+d, no later than the last instant there is (in the year 2262).
func (t instant) after(d time.Duration) instant {
	return instant(saturating.Add(time.Duration(t), max(d, 0)))
}

// An entry is what the file has under a key.
type entry struct {
	fingerprint idempotency.Fingerprint
	token       idempotency.Token
	completed   bool
	resumed     bool
	leaseEnd    instant
	forgetAt    instant
	record      []byte
}

// The encoding: a byte 1, a byte of flags, the token, the fingerprint, the end of the
// lease and forget-at as big-endian nanoseconds, and the record to the end.
const (
	entryVersion = 1
	offToken     = 2
	offPrint     = offToken + len(idempotency.Token{})
	offLease     = offPrint + len(idempotency.Fingerprint{})
	offForget    = offLease + 8
	offRecord    = offForget + 8

	flagCompleted = 1
	flagResumed   = 2
)

var errEntry = errors.New("lullbolt: the entry is damaged, or a later version's")

// decode reads an entry. Its record is a part of b.
func decode(b []byte) (entry, error) {
	if len(b) < offRecord || b[0] != entryVersion || b[1]&^(flagCompleted|flagResumed) != 0 {
		return entry{}, errEntry
	}
	return entry{
		fingerprint: idempotency.Fingerprint(b[offPrint:offLease]),
		token:       idempotency.Token(b[offToken:offPrint]),
		completed:   b[1]&flagCompleted != 0,
		resumed:     b[1]&flagResumed != 0,
		leaseEnd:    instant(binary.BigEndian.Uint64(b[offLease:])),
		forgetAt:    instant(binary.BigEndian.Uint64(b[offForget:])),
		record:      b[offRecord:],
	}, nil
}

func (e *entry) encode() []byte {
	b := make([]byte, offRecord+len(e.record))
	b[0] = entryVersion
	if e.completed {
		b[1] |= flagCompleted
	}
	if e.resumed {
		b[1] |= flagResumed
	}
	copy(b[offToken:], e.token[:])
	copy(b[offPrint:], e.fingerprint[:])
	binary.BigEndian.PutUint64(b[offLease:], uint64(e.leaseEnd))
	binary.BigEndian.PutUint64(b[offForget:], uint64(e.forgetAt))
	copy(b[offRecord:], e.record)
	return b
}

// forgotten tells whether what is under a key has come to its end. What cannot be read
// has not: it is for somebody to look at.
func forgotten(b []byte, now instant) bool {
	e, err := decode(b)
	return err == nil && e.forgetAt <= now
}

// claim is the table of idempotency.Store: the answer to c where old is the entry, nil
// for none; and the entry that is to be written, if the answer is Claimed.
func claim(old *entry, c *idempotency.Claim, now instant) (idempotency.Answer, *entry) {
	next := &entry{
		fingerprint: c.Fingerprint,
		token:       c.Token,
		leaseEnd:    now.after(c.Lease),
		forgetAt:    now.after(c.Retention),
	}
	switch {
	case old == nil:
	case old.fingerprint != c.Fingerprint:
		return idempotency.Answer{State: idempotency.Mismatch}, nil
	case old.completed:
		// A copy: the file's memory may be gone when the transaction is.
		return idempotency.Answer{State: idempotency.Replay, Record: append([]byte(nil), old.record...)}, nil
	case old.token == c.Token:
		next.resumed = old.resumed
	case old.leaseEnd > now:
		return idempotency.Answer{State: idempotency.InFlight, Remaining: time.Duration(old.leaseEnd - now)}, nil
	case c.Resume:
		next.resumed = true
	default:
		return idempotency.Answer{State: idempotency.Unknown}, nil
	}
	return idempotency.Answer{State: idempotency.Claimed, Resumed: next.resumed}, next
}
