package lullbolt

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What the zero Config means.
const (
	DefaultWait     = time.Second
	DefaultMaxBytes = 8 << 30
	DefaultCheck    = 5 * time.Minute
)

const minMaxBytes = 1 << 20

// A Config says how a file is opened. It is plain, comparable data; the zero Config is
// the recommended one.
type Config struct {
	// Wait is how long Open waits for another process to let go of the file, before it
	// gives up with ErrInUse; it asks every 50 ms. Zero: 1 s. Where a new process is
	// started while the old one ends, give it the time that takes.
	Wait time.Duration

	// MaxBytes is how much of the file may be in use, in bytes. When it is, new keys get
	// idempotency.ErrFull, and a record that has no room idempotency.ErrTooLarge; keys
	// that were given out can still be completed with a record of no more than 64 bytes.
	// The file itself may be somewhat larger, by what one transaction needs beside what
	// it replaces, and by holes. Zero: 8 GiB. At least 1 MiB.
	MaxBytes int64

	// Check is how long Open may take to read the whole file, before bbolt does, and to
	// compare it with its checksums: as long as the disk needs for what is in use, and
	// once more as long as bbolt takes to open it. A file that is damaged is refused with
	// ErrDamaged; one that cannot be read in this time with ErrUnchecked. Zero: 5 minutes.
	// Negative: it is not checked. A damaged entry is still refused when it is read, but
	// damaged pages can end the process, or lose keys.
	Check time.Duration

	// NoSync leaves it to the operating system when it writes to the disk. For tests:
	// what was stored is kept when the process is killed, but if the machine loses power
	// it may be lost, and the whole file with it.
	NoSync bool
}

// Validate reports everything that is wrong with c at once, each problem naming its
// field, the value and what is allowed; nil if nothing is.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Wait >= 0, "Wait", c.Wait, "a positive duration, or 0 for the default of 1s")
	l.Check(c.MaxBytes == 0 || c.MaxBytes >= minMaxBytes, "MaxBytes", c.MaxBytes, "at least 1 MiB, or 0 for the default of 8 GiB")
	return l.Err()
}

// WithDefaults is c with every zero replaced by what it means.
func (c Config) WithDefaults() Config {
	c.Wait = cmp.Or(c.Wait, DefaultWait)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.Check = cmp.Or(c.Check, DefaultCheck)
	return c
}
