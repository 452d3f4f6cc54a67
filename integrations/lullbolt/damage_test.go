package lullbolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// remembered returns the content of a file for its i-th key.
func remembered(i int) (c idempotency.Claim, record []byte, done bool) {
	c = idempotency.Claim{Key: fmt.Sprintf("caller:%d", i), Token: idempotency.FencingToken{1, byte(i), byte(i >> 8)}, Lease: 24 * time.Hour, Retention: 48 * time.Hour}
	c.Fingerprint[3] = byte(i)
	r := rand.New(rand.NewPCG(uint64(i), 33))
	record = make([]byte, 20+r.IntN(500))
	if i%50 == 7 {
		record = make([]byte, 30_000) // on pages of its own
	}
	for j := range record {
		record[j] = byte(r.Uint32())
	}
	return c, record, i%5 > 0
}

const damageKeys = 300

// intact returns a file, and an earlier state of it: with keys that are owned, done, and gone.
func intact(t *testing.T, freelist bool) (now, earlier []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intact")
	s := open(t, path, Config{NoSync: true})
	ctx := context.Background()
	var gone []idempotency.Claim
	for i := range damageKeys {
		c, record, done := remembered(i)
		must.Have(s.Claim(ctx, c))
		if done {
			must.Succeed(s.Complete(ctx, c.Key, c.Token, record, c.Retention))
		}
		if i%3 == 0 { // to have free pages
			c := request()
			must.Have(s.Claim(ctx, c))
			gone = append(gone, c)
		}
		if i == damageKeys/2 {
			earlier = must.Have(os.ReadFile(path))
		}
	}
	for _, c := range gone {
		must.Succeed(s.Release(ctx, c.Key, c.Token))
	}
	must.Succeed(s.Close())
	if freelist { // as "bbolt compact" leaves it
		edit(t, path, func(*bbolt.Tx) error { return nil })
	}
	now = must.Have(os.ReadFile(path))
	return now, earlier
}

// damage makes the n-th damage of a file, and returns its description.
func damage(seed uint64, now, earlier []byte) ([]byte, string) {
	r := rand.New(rand.NewPCG(seed, 44))
	b := bytes.Clone(now)
	const page = 4096
	pages := len(b) / page
	used := int(binary.NativeEndian.Uint64(b[16+40:])) // by either meta page, about
	at := r.IntN(min(used, pages)) * page
	edge := []uint64{0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 1 << 40, ^uint64(0), uint64(r.IntN(pages)), r.Uint64()}[r.IntN(13)]
	switch seed % 12 {
	case 0:
		n := r.IntN(len(b) + 1)
		return b[:n], fmt.Sprintf("cut off at %d of %d", n, len(b))
	case 1, 2:
		n := []int{1, 3, 20, 200}[r.IntN(4)]
		for range n {
			b[r.IntN(min(used, pages)*page)] ^= byte(1 + r.IntN(255))
		}
		return b, fmt.Sprintf("%d bytes changed", n)
	case 3:
		clear(b[at : at+page])
		return b, fmt.Sprintf("page %d zeroed", at/page)
	case 4:
		for i := range page {
			b[at+i] = byte(r.Uint32())
		}
		return b, fmt.Sprintf("page %d random", at/page)
	case 5: // one field of a page's header
		offset, size := []int{0, 8, 10, 12}[seed/12%4], []int{8, 2, 2, 4}[seed/12%4]
		var v [8]byte
		binary.NativeEndian.PutUint64(v[:], edge)
		copy(b[at+offset:at+offset+size], v[:])
		return b, fmt.Sprintf("page %d, byte %d of its header set to %#x", at/page, offset, edge)
	case 6, 7: // one field of an element
		count := max(1, int(binary.NativeEndian.Uint16(b[at+10:])))
		offset := at + 16 + min(r.IntN(count), 200)*16 + r.IntN(4)*4
		binary.NativeEndian.PutUint32(b[offset:], uint32(edge))
		return b, fmt.Sprintf("page %d, byte %d set to %#x", at/page, offset-at, edge)
	case 8:
		from := r.IntN(pages) * page
		copy(b[at:at+page], b[from:from+page])
		return b, fmt.Sprintf("page %d written over %d", from/page, at/page)
	case 9: // a write that never reached the disk
		at = max(at, 2*page)
		if at+page > len(earlier) {
			return b, "none"
		}
		copy(b[at:at+page], earlier[at:at+page])
		return b, fmt.Sprintf("page %d as it was earlier", at/page)
	case 10: // elements that are gone
		if n := binary.NativeEndian.Uint16(b[at+10:]); n > 0 {
			binary.NativeEndian.PutUint16(b[at+10:], uint16(r.IntN(int(n))))
		}
		return b, fmt.Sprintf("page %d has fewer elements", at/page)
	}
	i := r.IntN(2 * page)
	for j := range 64 {
		b[(i+j)%(2*page)] ^= byte(r.Uint32())
	}
	return b, fmt.Sprintf("64 bytes of the meta pages changed at %d", i)
}

// outcomes opens a damaged file and asks for all keys. It returns the wrong answers. An error is
// not wrong, nor is the right answer.
func outcomes(path string) (refused bool, wrong error) {
	s, err := Open(path, Config{NoSync: true})
	if err != nil {
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
			return true, fmt.Errorf("an error that leads nowhere: %w", err)
		}
		return true, nil
	}
	defer s.Close()
	for i := range damageKeys {
		c, record, done := remembered(i)
		c.Token[0]++
		a, err := s.Claim(context.Background(), c)
		switch {
		case err != nil:
			refused = true
		case done && a.State == idempotency.Replay && bytes.Equal(a.Record, record), !done && a.State == idempotency.InFlight:
		default:
			return refused, fmt.Errorf("key %d: %v, with a record of %d bytes", i, a.State, len(a.Record))
		}
	}
	return refused, nil
}

// After any damage there is an error, or the right answer: no key is lost silently, and none returns another's record. No
// damage ends the process.
func TestDamagedFile(t *testing.T) {
	n := 600
	if testing.Short() {
		n = 120
	}
	refused := 0
	for kind, freelist := range []bool{false, true} {
		now, earlier := intact(t, freelist)
		for seed := range uint64(n) {
			if seed/12%2 != uint64(kind) {
				continue
			}
			b, what := damage(seed, now, earlier)
			path := filepath.Join(t.TempDir(), "damaged")
			must.Succeed(os.WriteFile(path, b, 0o600))
			no, wrong := outcomes(path)
			if wrong != nil {
				t.Errorf("seed %d, %s: %v", seed, what, wrong)
			}
			if no {
				refused++
			}
		}
	}
	if refused < n/3 {
		t.Errorf("%d of %d damages were refused: the test damages nothing", refused, n)
	}
}

// The check ends when its time is over, and can be switched off.
func TestCheckIsBounded(t *testing.T) {
	b, _ := intact(t, false)
	path := temp(t)
	must.Succeed(os.WriteFile(path, append(b, make([]byte, 4<<20)...), 0o600))
	for check, want := range map[time.Duration]error{1: ErrUnchecked, 0: nil, -1: nil} {
		s, err := Open(path, Config{NoSync: true, CheckTimeout: check})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("Check %v: %v, want %v", check, err, want)
		}
		if err == nil {
			s.Close()
		}
	}
}

// A file that is cut off while it is open causes a fault in mapped memory. It ends the store, not
// the process.
func TestFileIsCutOffWhileItIsOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no fault of the machine: Windows does not cut off a file that is mapped")
	}
	b, _ := intact(t, false)
	path, ctx := temp(t), context.Background()
	must.Succeed(os.WriteFile(path, b, 0o600))
	s := open(t, path, Config{NoSync: true})
	must.Succeed(os.Truncate(path, 2*4096))
	c, _, _ := remembered(1)
	_, err := s.Claim(ctx, c)
	_, err2 := s.Claim(ctx, request())
	for _, err := range []error{err, err2, s.Complete(ctx, c.Key, c.Token, nil, time.Hour)} {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%v, want ErrDamaged", err)
		}
	}
}
