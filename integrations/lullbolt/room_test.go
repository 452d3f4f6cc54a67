package lullbolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// runs makes n keys and completes them with a record of that size.
func runs(t *testing.T, s *Store, n, size int) {
	t.Helper()
	record := bytes.Repeat([]byte("x"), size)
	for range n {
		c := request()
		claims(t, s, c)
		must.Succeed(s.Complete(context.Background(), c.Key, c.Token, record, time.Hour))
	}
}

// Under steady traffic the file stops growing, although nobody calls Sweep, and although the
// process is restarted more often than the sweep completes a round.
func TestGrowthIsBounded(t *testing.T) { synctest.Test(t, growthIsBounded) }

func growthIsBounded(t *testing.T) {
	path := temp(t)
	size := func() int64 {
		st := must.Have(os.Stat(path))
		return st.Size()
	}
	const perHour, perSession = 500, 20
	hours := func(n int) (most int) {
		for range n * perHour / perSession {
			s := must.Have(Open(path, Config{NoSync: true}))
			runs(t, s, perSession, 300)
			time.Sleep(time.Hour / (perHour / perSession))
			entries := must.Have(s.Len())
			most = max(most, entries)
			must.Succeed(s.Close())
		}
		return most
	}
	hours(3)
	before := size()
	most := hours(5)
	t.Logf("%d live, at most %d entries; file %d, then %d bytes", perHour, most, before, size())
	if most > 2*perHour {
		t.Errorf("%d entries for %d that live", most, perHour)
	}
	if size() > before*5/4 {
		t.Errorf("the file has grown from %d to %d bytes", before, size())
	}
}

// A burst of keys leaves room when it has expired.
func TestSweep(t *testing.T) { synctest.Test(t, sweep) }

func sweep(t *testing.T) {
	s := open(t, temp(t), Config{NoSync: true})
	runs(t, s, 2500, 1000)
	full := inUse(t, s)
	if n, err := s.Sweep(context.Background()); n != 0 || err != nil {
		t.Errorf("Sweep: %d, %v; nothing is to be forgotten yet", n, err)
	}
	time.Sleep(2 * time.Hour)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := s.Sweep(ended); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep with a context that has ended: %d, %v", n, err)
	}
	if n, err := s.Sweep(context.Background()); n != 2500 || err != nil {
		t.Errorf("Sweep: %d, %v, want 2500", n, err)
	}
	runs(t, s, 1, 0) // what has become free is counted with the next transaction
	if left := inUse(t, s); left > full/10 {
		t.Errorf("%d of %d bytes are in use when all is forgotten", left, full)
	}
}

func TestFull(t *testing.T) { synctest.Test(t, full) }

func full(t *testing.T) {
	ctx := context.Background()
	path := temp(t)
	const limit = 1 << 20
	s := open(t, path, Config{NoSync: true, MaxBytes: limit})
	var owned []idempotency.Claim
	for range 50 {
		c := request()
		claims(t, s, c)
		owned = append(owned, c)
	}
	c := owned[0]
	if err := s.Complete(ctx, c.Key, c.Token, make([]byte, limit), time.Hour); !errors.Is(err, idempotency.ErrTooLarge) {
		t.Errorf("a record as large as the file: %v, want ErrTooLarge", err)
	}
	var err error
	for n := 0; err == nil; n++ {
		if n > limit/500 {
			t.Fatalf("%d keys with records of 1000 bytes in %d", n, limit)
		}
		c := request()
		if _, err = s.Claim(ctx, c); err == nil {
			err = s.Complete(ctx, c.Key, c.Token, make([]byte, 1000), time.Hour)
			if errors.Is(err, idempotency.ErrTooLarge) {
				err = s.Complete(ctx, c.Key, c.Token, make([]byte, 64), time.Hour)
			}
		}
	}
	if !errors.Is(err, idempotency.ErrFull) {
		t.Errorf("a full store: %v, want ErrFull", err)
	}
	for _, c := range owned { // owned keys can still be completed
		if a, err := s.Claim(ctx, c); err != nil || a.State != idempotency.Claimed {
			t.Errorf("a claim that is repeated: %v, %v", a.State, err)
		}
		if err := s.Complete(ctx, c.Key, c.Token, make([]byte, 64), time.Hour); err != nil {
			t.Errorf("Complete with a short record: %v", err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 2*limit {
		t.Errorf("the file has %d bytes, and may have %d", st.Size(), limit)
	}
	// Time makes room, and claims use it, although all of them fail at first.
	time.Sleep(2 * time.Hour)
	for n := 0; ; n++ {
		_, err := s.Claim(ctx, request())
		if err == nil {
			break
		}
		if n > 100 {
			t.Fatalf("after all is past its time: %v", err)
		}
	}
}

// inUse returns how many bytes of the file are in use.
func inUse(t *testing.T, s *Store) (n int64) {
	t.Helper()
	must.Succeed(s.view(func(tx *bbolt.Tx) error { n = s.inUse(tx); return nil }))
	return n
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte("k"), []byte{})
	for _, n := range []int{64, 68, 100} {
		b := append([]byte{2, 3}, make([]byte, n)...)
		f.Add([]byte("k"), binary.BigEndian.AppendUint32(b, crc32.Checksum(append([]byte("k"), b...), crc32.MakeTable(crc32.Castagnoli))))
	}
	f.Fuzz(func(t *testing.T, key, b []byte) {
		e, err := decode(key, b)
		if err == nil && !bytes.Equal(e.encode(key), b) {
			t.Errorf("%x is encoded as %x", b, e.encode(key))
		}
		if err != nil || len(key) == 0 {
			return
		}
		if _, err := decode(key[1:], b); err == nil {
			t.Errorf("%x is an entry of another key, too", b)
		}
		b = bytes.Clone(b)
		b[len(b)/2]++
		if _, err := decode(key, b); err == nil {
			t.Errorf("%x is an entry with another byte, too", b)
		}
	})
}
