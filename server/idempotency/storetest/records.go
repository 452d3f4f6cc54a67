package storetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) records() {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	big := make([]byte, t.o.MaxRecord)
	rand.Read(big)
	for _, record := range [][]byte{nil, {}, {0}, all, []byte("\r\n'\"\\%s{}$1 \x00 \xff\xfe"), bytes.Repeat([]byte("ab"), 32<<10), big} {
		c := t.claimed(request(), false)
		t.completes(c, bytes.Clone(record), long)
		a := t.wants(again(c), idempotency.Replay)
		if !bytes.Equal(a.Record, record) {
			t.Errorf("a record of %d bytes came back as %s", len(record), describe(a.Record))
		}
		for i := range a.Record { // it is the caller's
			a.Record[i]++
		}
		t.replays(again(c), record)
	}
	// One that is longer than it must keep: it is kept, or refused and the key stays
	// owned.
	c := t.claimed(request(), false)
	err := t.s.Complete(t.ctx, c.Key, c.Token, make([]byte, 4*t.o.MaxRecord), long)
	switch {
	case errors.Is(err, idempotency.ErrTooLarge):
		t.wants(again(c), idempotency.InFlight)
		t.completes(c, []byte{1}, long)
		t.replays(again(c), []byte{1})
	case err != nil:
		t.Errorf("Complete with %d bytes: %v, want nil or ErrTooLarge", 4*t.o.MaxRecord, err)
	}
}

func (t *tester) keys() {
	base := request().Key
	var printable strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		printable.WriteByte(c)
	}
	keys := []string{
		base, base + " ", " " + base, base + "  ", strings.ToLower(base), base + ":", base + ":*", base + "*", base + "?", base + "%", base + "_", base + "/", base + "/..",
		base + "'", base + `"`, base + `\`, base + `\\`, base + `'; drop table keys; --`, "{" + base + "}", "{" + base, base + "{a}{b}", base + "$1", base + "${x}", base + "%s%n%00",
		base + "\x7e", base + printable.String(), base + strings.Repeat("x", idempotency.MaxStoreKey-len(base)-1), base + strings.Repeat("x", idempotency.MaxStoreKey-len(base)),
	}
	claims := make([]idempotency.Claim, len(keys))
	for i, key := range keys {
		claims[i] = request()
		claims[i].Key = key
		if a, err := t.s.Claim(t.ctx, claims[i]); err != nil || a.State != idempotency.Claimed {
			t.Fatalf("the new key %q (%d bytes): %v, %v", key, len(key), a.State, err)
		}
	}
	for i, c := range claims {
		t.completes(c, fmt.Append(nil, "record ", i), long)
	}
	for i, c := range claims {
		t.replays(again(c), fmt.Append(nil, "record ", i))
	}
	one := request()
	one.Key = one.Key[len(one.Key)-1:] // one byte: may be somebody's
	if a, err := t.s.Claim(t.ctx, one); err != nil {
		t.Errorf("a key of one byte: %v", err)
	} else if a.State == idempotency.Claimed {
		t.must("Release", t.s.Release(t.ctx, one.Key, one.Token))
	}
}
