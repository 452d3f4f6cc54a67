package lullbolt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/server/idempotency"
)

// An instant is nanoseconds since 1970, by the store's clock.
type instant int64

// after returns t+d, no later than the last instant (in the year 2262).
func (t instant) after(d time.Duration) instant {
	return instant(saturating.Add(time.Duration(t), max(d, 0)))
}

// An entry is the value of a key in the file.
type entry struct {
	fingerprint idempotency.Fingerprint
	token       idempotency.FencingToken
	completed   bool
	resumed     bool
	leaseEnd    instant
	forgetAt    instant
	record      []byte
}

// The encoding: a byte 2, a byte of flags, the token, the fingerprint, the end of the lease and
// forget-at as big-endian nanoseconds, the record, and at the end the CRC-32C of the key and of
// everything before it.
const (
	entryVersion = 2
	sumSize      = 4
	offToken     = 2
	offPrint     = offToken + len(idempotency.FencingToken{})
	offLease     = offPrint + len(idempotency.Fingerprint{})
	offForget    = offLease + 8
	offRecord    = offForget + 8

	flagCompleted = 1
	flagResumed   = 2
)

var errEntry = errors.New("lullbolt: the entry is damaged: find out what became of its request, and delete it or the file")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of an entry without its last bytes.
func checksum(key, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b)
}

// entryTotals are the number of all entries of the file, and the sum of their checksums. They are
// written with each transaction that changes entries. So Open notices an entry that is lost, or
// that an older one has replaced.
type entryTotals struct{ entries, sum uint64 }

// add counts an entry that is well-formed.
func (t *entryTotals) add(b []byte)    { t.entries++; t.sum += storedChecksum(b) }
func (t *entryTotals) remove(b []byte) { t.entries--; t.sum -= storedChecksum(b) }

// storedChecksum returns the checksum that an entry carries.
func storedChecksum(b []byte) uint64 {
	if len(b) < offRecord+sumSize {
		return 0
	}
	return uint64(binary.BigEndian.Uint32(b[len(b)-sumSize:]))
}

func (t entryTotals) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, t.entries), t.sum)
}

func decodeTotal(b []byte) (entryTotals, error) {
	if len(b) != 16 {
		return entryTotals{}, damagedf("the sum of its entries is malformed")
	}
	return entryTotals{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// decode reads the entry of key. Its record is a part of b.
func decode(key, b []byte) (entry, error) {
	if len(b) < offRecord+sumSize || uint64(checksum(key, b[:len(b)-sumSize])) != storedChecksum(b) {
		return entry{}, errEntry
	}
	b = b[:len(b)-sumSize]
	if b[0] != entryVersion || b[1]&^(flagCompleted|flagResumed) != 0 {
		return entry{}, errEntry
	}
	return entry{
		fingerprint: idempotency.Fingerprint(b[offPrint:offLease]),
		token:       idempotency.FencingToken(b[offToken:offPrint]), completed: b[1]&flagCompleted != 0,
		resumed: b[1]&flagResumed != 0, leaseEnd: instant(binary.BigEndian.Uint64(b[offLease:])),
		forgetAt: instant(binary.BigEndian.Uint64(b[offForget:])), record: b[offRecord:],
	}, nil
}

func (e *entry) encode(key []byte) []byte {
	b := make([]byte, offRecord+len(e.record), offRecord+len(e.record)+sumSize)
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
	return binary.BigEndian.AppendUint32(b, checksum(key, b))
}

// forgotten reports whether the entry of a key has expired. An unreadable entry has not: it is kept
// for inspection.
func forgotten(key, b []byte, now instant) bool {
	if len(b) < offRecord || instant(binary.BigEndian.Uint64(b[offForget:])) > now {
		return false // without decoding it, as for most
	}
	e, err := decode(key, b)
	return err == nil && e.forgetAt <= now
}

// claim is the table of idempotency.Store. It returns the answer to c, where old is the entry, nil
// for none, and the entry to write if the answer is Claimed.
func claim(old *entry, c *idempotency.Claim, now instant) (idempotency.ClaimResult, *entry) {
	next := &entry{
		fingerprint: c.Fingerprint, token: c.Token, leaseEnd: now.after(c.Lease),
		forgetAt: now.after(c.Retention),
	}
	switch {
	case old == nil:
	case old.fingerprint != c.Fingerprint:
		return idempotency.ClaimResult{State: idempotency.Mismatch}, nil
	case old.completed:
		// A copy: the file's memory may be gone after the transaction.
		return idempotency.ClaimResult{State: idempotency.Replay, Record: append([]byte(nil), old.record...)}, nil
	case old.token == c.Token:
		next.resumed = old.resumed
	case old.leaseEnd > now:
		return idempotency.ClaimResult{State: idempotency.InFlight, Remaining: time.Duration(old.leaseEnd - now)}, nil
	case c.Resume:
		next.resumed = true
	default:
		return idempotency.ClaimResult{State: idempotency.Unknown}, nil
	}
	return idempotency.ClaimResult{State: idempotency.Claimed, Resumed: next.resumed}, next
}
