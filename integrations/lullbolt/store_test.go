package lullbolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func open(t testing.TB, path string, c Config) *Store {
	t.Helper()
	s := must.Have(Open(path, c))
	t.Cleanup(func() { s.Close() })
	return s
}

// claims makes a claim of a key that is free.
func claims(t testing.TB, s *Store, c idempotency.Claim) {
	t.Helper()
	if a, err := s.Claim(context.Background(), c); err != nil || a.State != idempotency.Claimed {
		t.Fatalf("Claim: %v, %v", a.State, err)
	}
}

func temp(t testing.TB) string { return filepath.Join(t.TempDir(), "keys.bolt") }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t, temp(t), Config{NoSync: true}) }, storetest.Options{Virtual: true})
}

// A second Store gets an error soon, with the reason.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := temp(t)
		s := open(t, path, Config{NoSync: true})
		began := time.Now()
		_, err := Open(path, Config{})
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), path) {
			t.Errorf("a second Store gets %v, want ErrInUse with the path", err)
		}
		if waited := time.Since(began); waited < DefaultLockTimeout-100*time.Millisecond || waited > DefaultLockTimeout {
			t.Errorf("after %v, want %v", waited, DefaultLockTimeout)
		}
		must.Succeed(s.Close())
		open(t, path, Config{NoSync: true})
	})
}

// edit changes a file as another program does.
func edit(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db := must.Have(bbolt.Open(path, 0o600, nil))
	must.Succeed(db.Update(f))
	must.Succeed(db.Close())
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	edit(t, foreign, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("accounts")); return err })
	later := filepath.Join(dir, "later")
	open(t, later, Config{NoSync: true}).Close()
	edit(t, later, func(tx *bbolt.Tx) error { return tx.Bucket(bucketFile).Put(fieldForm, []byte{9}) })
	text := filepath.Join(dir, "text")
	must.Succeed(os.WriteFile(text, []byte(strings.Repeat("not a database\n", 4000)), 0o600))
	for path, want := range map[string]string{
		foreign:                            `"accounts"`,
		later:                              "[9]",
		text:                               "invalid database",
		dir:                                dir,
		filepath.Join(dir, "absent", "db"): "absent",
	} {
		_, err := Open(path, Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s): %v, want an error that says %s", filepath.Base(path), err, want)
		}
	}
	for field, c := range map[string]Config{"LockTimeout": {LockTimeout: -1}, "MaxBytes": {MaxBytes: 1000}} {
		if _, err := Open(temp(t), c); err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("Open with a bad %s: %v", field, err)
		}
	}
	if runtime.GOOS != "windows" {
		path := temp(t)
		open(t, path, Config{})
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("a new file: %v, %v, want one that only its owner can read", st.Mode(), err)
		}
	}
}

func TestClosed(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	c := request()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for {
				mine := request()
				_, err := s.Claim(context.Background(), mine)
				if err == nil {
					err = s.Complete(context.Background(), mine.Key, mine.Token, nil, time.Hour)
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("while it is closed: %v", err)
					return
				}
			}
		})
	}
	for range 2 {
		must.Succeed(s.Close())
	}
	wg.Wait()
	_, err := s.Claim(context.Background(), c)
	_, err2 := s.Sweep(context.Background())
	_, err3 := s.Len()
	for _, err := range []error{err, err2, err3, s.Release(context.Background(), c.Key, c.Token)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}

// Close waits for the calls that came before it.
func TestCloseWaits(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	const n = 5
	var owned [n]idempotency.Claim
	for i := range owned {
		owned[i] = request()
		claims(t, s, owned[i])
	}
	record := make([]byte, 5<<20) // no two of them in one transaction
	waitFor(t, s, 0, false)
	release := hold(s)
	errs := make(chan error, n)
	for i, c := range owned {
		go func() { errs <- s.Complete(context.Background(), c.Key, c.Token, record, time.Hour) }()
		waitFor(t, s, i, true) // the writer has the first
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for {
		if _, err := s.Len(); errors.Is(err, ErrClosed) {
			break
		}
		runtime.Gosched()
	}
	must.Succeed(release())
	must.Succeed(<-closed)
	for range n {
		if err := <-errs; err != nil {
			t.Errorf("a call that came before Close: %v", err)
		}
	}
}

// If bbolt panics, no call blocks, nothing more is written, and the process continues.
func TestBroken(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	c := request()
	claims(t, s, c)
	waitFor(t, s, 0, false)
	release := hold(s)
	errs := make(chan error, 2)
	go func() {
		errs <- s.carryOut(context.Background(), &op{do: func(*txn) error { panic("page 7: not a leaf") }})
	}()
	waitFor(t, s, 0, true)
	go func() { // it is in the queue when it happens
		_, err := s.Claim(context.Background(), request())
		errs <- err
	}()
	waitFor(t, s, 1, true)
	must.Succeed(release())
	one, two := <-errs, <-errs
	_, err := s.Claim(context.Background(), request())
	for _, err := range []error{one, two, err, s.Complete(context.Background(), c.Key, c.Token, nil, time.Hour)} {
		if err == nil || errors.Is(err, idempotency.ErrFenced) || !strings.Contains(err.Error(), "page 7") {
			t.Errorf("after a panic: %v", err)
		}
	}
	must.Succeed(s.Close())
}

// An unreadable entry is a reason not to open the file. If it is opened nevertheless, this key
// returns an error, and others are not affected.
func TestDamagedEntry(t *testing.T) {
	path := temp(t)
	c := request()
	s := open(t, path, Config{NoSync: true})
	claims(t, s, c)
	s.Close()
	edit(t, path, func(tx *bbolt.Tx) error {
		keys := tx.Bucket(bucketKeys)
		b := bytes.Clone(keys.Get([]byte(c.Key)))
		b[20]++
		return keys.Put([]byte(c.Key), b)
	})
	if _, err := Open(path, Config{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.Key) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open: %v", err)
	}
	s = open(t, path, Config{NoSync: true, CheckTimeout: -1})
	if _, err := s.Claim(context.Background(), c); err == nil || !strings.Contains(err.Error(), c.Key) {
		t.Errorf("Claim of a damaged entry: %v", err)
	}
	if err := s.Complete(context.Background(), c.Key, c.Token, nil, time.Hour); err == nil || errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("Complete of a damaged entry: %v", err)
	}
	must.Have(s.Claim(context.Background(), request()))
	if n, err := s.Sweep(context.Background()); n != 0 || err != nil {
		t.Errorf("Sweep: %d, %v; a damaged entry is for somebody to look at", n, err)
	}
}

// A call whose context ends before its turn is not carried out, although it was in the queue.
func TestAbandoned(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	release := hold(s)
	var all []idempotency.Claim
	for range 10 { // the first is in the writer's hands already, the others are not
		c := request()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond) //clock: nothing else ends the call
		if _, err := s.Claim(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim of a store that is held up: %v, want context.DeadlineExceeded", err)
		}
		cancel()
		all = append(all, c)
	}
	must.Succeed(release())
	for _, c := range all {
		claims(t, s, request2(c)) // so it was not carried out
	}
}

// Contexts end at any moment. Whatever the outcome of a call, later calls come after it.
func TestOrder(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 { // to keep the file busy
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Claim(context.Background(), request())
				}
			}
		})
	}
	for i := range 50 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*10*time.Microsecond) //clock: the rule holds whenever it ends
		c := request()
		_, err := s.Claim(ctx, c)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim: %v", err)
		}
		released := s.Release(context.Background(), c.Key, c.Token)
		if err == nil && released != nil {
			t.Errorf("Release after Claim: %v", released)
		}
		claims(t, s, request2(c))
	}
	close(stop)
	wg.Wait()
}

// Many small calls share a transaction, and the failure of one does not affect the others. Large
// records do not come into one transaction in any number.
func TestShared(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true, MaxBytes: 16 << 20})
	owned := make([]idempotency.Claim, 100)
	for i := range owned {
		owned[i] = request()
		claims(t, s, owned[i])
	}
	release := hold(s)
	errs := make([]error, len(owned))
	var wg sync.WaitGroup
	for i, c := range owned {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				errs[i] = s.Complete(context.Background(), c.Key, c.Token, make([]byte, 100<<10), time.Hour)
			case 1:
				errs[i] = s.Complete(context.Background(), c.Key, request().Token, nil, time.Hour)
			case 2:
				errs[i] = s.Complete(context.Background(), c.Key, c.Token, make([]byte, 20<<20), time.Hour)
			}
		})
	}
	for n := 0; n < 50; n, _ = queued(s) { // most of them have come
		runtime.Gosched()
	}
	must.Succeed(release())
	wg.Wait()
	for i, err := range errs {
		if want := []error{nil, idempotency.ErrFenced, idempotency.ErrTooLarge}[i%3]; !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
}

func request() idempotency.Claim {
	c := idempotency.Claim{Key: rand.Text(), Lease: time.Minute, Retention: time.Hour}
	rand.Read(c.Token[:])
	return c
}

func request2(c idempotency.Claim) idempotency.Claim {
	rand.Read(c.Token[:])
	return c
}

// hold keeps the store from writing until the result is called.
func hold(s *Store) (release func() error) {
	tx, err := s.db.Begin(true)
	if err != nil {
		panic(err)
	}
	return tx.Rollback
}

// queued returns how many calls wait for their turn, and whether the writer has others.
func queued(s *Store) (n int, writing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.writing
}

// waitFor waits until that many calls wait for their turn, and the writer has others or has none.
func waitFor(t *testing.T, s *Store, calls int, writing bool) {
	t.Helper()
	for q, w := queued(s); q != calls || w != writing; q, w = queued(s) {
		runtime.Gosched()
	}
}
