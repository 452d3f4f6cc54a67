package lullbolt

import (
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// The defaults of the zero Config.
const (
	DefaultLockTimeout  = time.Second
	DefaultMaxBytes     = 8 << 30
	DefaultCheckTimeout = 5 * time.Minute
)

const minMaxBytes = 1 << 20

// A Config configures how a file is opened. It is plain, comparable data; the zero Config is the
// recommended one.
type Config struct {
	// LockTimeout is how long Open waits until another process releases the file, before it fails with
	// ErrInUse. It asks every 50 ms. Zero: 1 s. If a new process is started while the old one ends,
	// allow for that time.
	LockTimeout time.Duration

	// MaxBytes is how much of the file may be in use, in bytes. At that limit, new keys get
	// idempotency.ErrFull, and a record without room gets idempotency.ErrTooLarge. Owned keys can
	// still be completed with a record of no more than 64 bytes. The file itself may be somewhat
	// larger, because one transaction needs room beside the data that it replaces, and because of
	// holes. Zero: 8 GiB. At least 1 MiB.
	MaxBytes int64

	// CheckTimeout is how long Open may take to read the whole file, before bbolt uses it, and to compare it
	// with its checksums. That takes as long as the disk needs for the pages in use, plus about the
	// time that bbolt itself takes to open the file. A damaged file is refused with ErrDamaged; one that cannot be
	// read in this time with ErrUnchecked. Zero: 5 minutes. Negative: it is not checked. A damaged
	// entry is still refused when it is read, but damaged pages can end the process, or lose keys.
	CheckTimeout time.Duration

	// NoSync lets the operating system decide when it writes to the disk. It is for tests. The data
	// survives when the process is killed. If the machine loses power, the data may be lost, and
	// the whole file with it.
	NoSync bool
}

// Validate reports everything that is wrong with c at once. Each problem names its field, the value
// and what is allowed. It returns nil if nothing is wrong.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.LockTimeout >= 0, "LockTimeout", c.LockTimeout, "a positive duration, or 0 for the default of 1s")
	l.Check(c.MaxBytes == 0 || c.MaxBytes >= minMaxBytes, "MaxBytes", c.MaxBytes, "at least 1 MiB, or 0 for the default of 8 GiB")
	return l.Err()
}
