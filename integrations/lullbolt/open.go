package lullbolt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrInUse is the error of Open if the file is open already: in another process, or by another
	// Store of this one.
	ErrInUse = errors.New("lullbolt: the file is in use; only one process at a time can open it, and only once")

	// ErrClosed is the error of a Store's methods after Close.
	ErrClosed = errors.New("lullbolt: the store is closed")
)

// The content of a file: two buckets, one with the entries and one with the fields about the file
// itself.
var (
	bucketKeys = []byte("lull idempotency keys")
	bucketFile = []byte("lull idempotency file")
	fieldForm  = []byte("form")  // of the file: the byte 2
	fieldSwept = []byte("swept") // the key at which the sweep continues
	fieldTotal = []byte("total") // of the entries
	form       = []byte{2}
)

// A Store is an idempotency.Store in a file. It is safe for concurrent use.
type Store struct {
	path     string
	maxBytes int64
	db       *bbolt.DB
	now      func() instant

	mu      sync.Mutex
	queue   []*op
	writing bool       // a goroutine is at work on the queue
	idle    *sync.Cond // signalled when writing becomes false; with mu
	closed  bool
	broken  error // bbolt panicked

	sweeper // the writing goroutine's
}

// Open opens the store in the file at path. It creates a missing file. Only the file's owner can
// read and write it: it contains responses.
//
// If the file is in use, Open waits for Config.LockTimeout and returns an error that is ErrInUse. A file
// that is not a store's is not changed; Open returns an error. The same holds for a damaged file:
// ErrDamaged (see Config.CheckTimeout).
func Open(path string, c Config) (s *Store, err error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("lullbolt: %w", err)
	}
	c.LockTimeout, c.MaxBytes, c.CheckTimeout = cmp.Or(c.LockTimeout, DefaultLockTimeout), cmp.Or(c.MaxBytes, DefaultMaxBytes), cmp.Or(c.CheckTimeout, DefaultCheckTimeout)
	info, err := os.Stat(path)
	created := errors.Is(err, os.ErrNotExist)
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 && c.CheckTimeout > 0 {
		if err := check(path, c); err != nil {
			return nil, err
		}
	}
	// A panic here means that the file was not checked.
	defer recoverOpen(path, &s, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: c.LockTimeout,
		NoSync:  c.NoSync,
		// With the list of free pages in it, each transaction would write as much as was ever free:
		// two megabytes after a gigabyte was forgotten. Without it, Open reads all pages.
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, openError(path, c, err)
	}
	began := time.Now()
	s = &Store{
		path:     path,
		maxBytes: c.MaxBytes,
		db:       db,
		// The wall's time at the opening, and a monotonic clock from then on.
		now: func() instant { return instant(began.UnixNano()).after(time.Since(began)) },
	}
	s.idle = sync.NewCond(&s.mu)
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("lullbolt: open %s: %w", path, err), db.Close())
	}
	if created && !c.NoSync {
		syncDir(filepath.Dir(path))
	}
	return s, nil
}

// repairAdvice is the advice in errors that are ErrDamaged.
const repairAdvice = "restore a backup, or move the file away and begin with an empty one: what it remembers may then be carried out once more. " +
	"With Config.CheckTimeout below zero it is opened as it is, at the process's risk"

// openError explains an error of bbolt.Open: from the system, or about the first pages.
func openError(path string, c Config, err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("%w: %s, after waiting for %v", ErrInUse, path, c.LockTimeout)
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return fmt.Errorf("lullbolt: open %s: %w", path, err)
	}
	return fmt.Errorf("%w, or not a store's: %s: %w; %s", ErrDamaged, path, err, repairAdvice)
}

// check reads the file before bbolt maps it for writing. Meanwhile bbolt has it open for reading,
// so that nobody writes to it. In this mode bbolt reads only the first two pages.
func check(path string, c Config) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: c.LockTimeout, ReadOnly: true})
	if err != nil {
		return openError(path, c, err)
	}
	defer db.Close()
	if err = checkFile(path, c.CheckTimeout); errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w (%s); %s", err, path, repairAdvice)
	} else if err != nil {
		return fmt.Errorf("%w (%s)", err, path)
	}
	return nil
}

// recoverOpen turns a panic of bbolt into an error of Open.
func recoverOpen(path string, s **Store, err *error) {
	if v := recover(); v != nil {
		*s, *err = nil, fmt.Errorf("%w: %s: bbolt panicked: %v; %s", ErrDamaged, path, v, repairAdvice)
	}
}

// prepare makes the buckets of a new file, and checks those of an old one.
func (s *Store) prepare() error {
	fresh := false
	err := s.db.View(func(tx *bbolt.Tx) error {
		file := tx.Bucket(bucketFile)
		if file == nil {
			first, _ := tx.Cursor().First()
			if fresh = first == nil; !fresh {
				return fmt.Errorf("there is something else in it (bucket %q): want a file that this package has made, or none", first)
			}
			return nil
		}
		if got := file.Get(fieldForm); string(got) != string(form) || tx.Bucket(bucketKeys) == nil {
			return fmt.Errorf("its form is %v: want %v; another version's?", got, form)
		}
		if _, err := decodeTotal(file.Get(fieldTotal)); err != nil {
			return err
		}
		s.sweeper.next = append([]byte(nil), file.Get(fieldSwept)...)
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucketKeys)
		if err != nil {
			return err
		}
		file, err := tx.CreateBucket(bucketFile)
		if err != nil {
			return err
		}
		return errors.Join(file.Put(fieldForm, form), file.Put(fieldTotal, entryTotals{}.encode()))
	})
}

// syncDir makes the name of a new file survive, too. On some systems a directory cannot be synced
// (Windows): they do not need it.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// Close waits for the calls that are being carried out, and releases the file. Calls after it
// return ErrClosed. It may be called twice.
//
// Call it after idempotency.Middleware.Wait: if the outcome of a handler cannot be stored, it is
// unknown.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for s.writing {
		s.idle.Wait()
	}
	s.mu.Unlock()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("lullbolt: close %s: %w", s.path, err)
	}
	return nil
}
