package storetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

// Options hold what Run needs to know about a store. The zero Options are right for one
// with a real clock.
type Options struct {
	// Virtual: the store's clock is that of package time, and it waits for nothing outside of
	// the process. Then each test runs in a bubble of testing/synctest, and takes no time.
	Virtual bool
	// MaxRecord is the longest record that the store must keep. Zero: 1088 KiB,
	// what the middleware writes at most by default.
	MaxRecord int
	// Concurrent is how many claims are made at once. Zero: 200.
	Concurrent int
}

// Run runs the tests as subtests of t. open returns the store to be tested; it is
// called once for each. It need not be empty: keys are random.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store, o Options) {
	o.Concurrent = cmp.Or(o.Concurrent, 200)
	o.MaxRecord = cmp.Or(o.MaxRecord, 1<<20+64<<10)
	for _, test := range []struct {
		name string
		run  func(*tester)
	}{
		{"claim", (*tester).claim},
		{"mismatch comes first", (*tester).mismatch},
		{"complete and replay", (*tester).complete},
		{"release", (*tester).release},
		{"the lease ends", (*tester).leaseEnds},
		{"extend", (*tester).extend},
		{"give up", (*tester).giveUp},
		{"take over", (*tester).takeOver},
		{"one takes over", (*tester).oneTakesOver},
		{"completing races with taking over", (*tester).completeOrTakeOver},
		{"a record is forgotten", (*tester).recordForgotten},
		{"an owner is forgotten", (*tester).ownerForgotten},
		{"a token never comes back", (*tester).tokens},
		{"one owner of many claims", (*tester).concurrent},
		{"a context that has ended", (*tester).endedContext},
		{"a context that ends", (*tester).endingContext},
		{"records", (*tester).records},
		{"keys", (*tester).keys},
		{"long times", (*tester).longTimes},
		{"transactions", (*tester).transactions},
	} {
		run := func(t *testing.T) { test.run(&tester{T: t, s: open(t), o: o, ctx: context.Background()}) }
		t.Run(test.name, func(t *testing.T) {
			if o.Virtual {
				synctest.Test(t, run)
			} else {
				run(t)
			}
		})
	}
}

const (
	long  = time.Hour              // does not end during a test
	short = 300 * time.Millisecond // ends during a test
	past  = short + 50*time.Millisecond
)

type tester struct {
	*testing.T
	s   idempotency.Store
	o   Options
	ctx context.Context
}

// request is a claim for a new key by a new owner.
func request() idempotency.Claim {
	c := idempotency.Claim{
		Key: "storetest:" + rand.Text(), Fingerprint: sha256.Sum256([]byte("a request")), Lease: long,
		Retention: 2 * long,
	}
	rand.Read(c.Token[:])
	return c
}

// again is the same request by another owner.
func again(c idempotency.Claim) idempotency.Claim {
	rand.Read(c.Token[:])
	return c
}

func other(c idempotency.Claim) idempotency.Claim {
	c = again(c)
	c.Fingerprint = sha256.Sum256([]byte("another request"))
	return c
}

func resume(c idempotency.Claim) idempotency.Claim {
	c = again(c)
	c.Resume = true
	return c
}

func lasting(c idempotency.Claim, lease, retention time.Duration) idempotency.Claim {
	c.Lease, c.Retention = lease, retention
	return c
}

func (t *tester) wants(c idempotency.Claim, want idempotency.KeyState) idempotency.ClaimResult {
	t.Helper()
	a, err := t.s.Claim(t.ctx, c)
	if err != nil {
		t.Fatalf("Claim: %v, want %v", err, want)
	}
	t.check(a, want)
	return a
}

// check compares an answer with what belongs to its state.
func (t *tester) check(a idempotency.ClaimResult, want idempotency.KeyState) {
	t.Helper()
	if a.State != want {
		t.Fatalf("Claim answers %v, want %v", a.State, want)
	}
	if a.Resumed && want != idempotency.Claimed {
		t.Errorf("Resumed is set in an answer of %v", want)
	}
	if (a.Remaining > 0) != (want == idempotency.InFlight) {
		t.Errorf("Remaining is %v in an answer of %v", a.Remaining, want)
	}
	if a.Record != nil && want != idempotency.Replay {
		t.Errorf("there is a record in an answer of %v", want)
	}
}

// claimed makes the claim c, and returns it.
func (t *tester) claimed(c idempotency.Claim, resumed bool) idempotency.Claim {
	t.Helper()
	if a := t.wants(c, idempotency.Claimed); a.Resumed != resumed {
		t.Fatalf("claimed with Resumed %v, want %v", a.Resumed, resumed)
	}
	return c
}

func (t *tester) replays(c idempotency.Claim, record []byte) {
	t.Helper()
	if a := t.wants(c, idempotency.Replay); !bytes.Equal(a.Record, record) {
		t.Fatalf("the record is %s, want %s", describe(a.Record), describe(record))
	}
}

func describe(b []byte) string {
	if len(b) > 64 {
		return fmt.Sprintf("%q... (%d bytes)", b[:64], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func (t *tester) must(what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (t *tester) completes(c idempotency.Claim, record []byte, retention time.Duration) {
	t.Helper()
	t.must("Complete", t.s.Complete(t.ctx, c.Key, c.Token, record, retention))
}

func (t *tester) extends(c idempotency.Claim, lease, retention time.Duration) {
	t.Helper()
	t.must("Extend", t.s.Extend(t.ctx, c.Key, c.Token, lease, retention))
}

// fenced checks that c's token can do nothing, and that trying changes nothing.
func (t *tester) fenced(c idempotency.Claim) {
	t.Helper()
	for name, err := range map[string]error{
		"Extend":             t.s.Extend(t.ctx, c.Key, c.Token, long, 2*long),
		"Extend(0)":          t.s.Extend(t.ctx, c.Key, c.Token, 0, 2*long),
		"Complete":           t.s.Complete(t.ctx, c.Key, c.Token, []byte("by one who was fenced"), long),
		"Release":            t.s.Release(t.ctx, c.Key, c.Token),
		"Release once more":  t.s.Release(t.ctx, c.Key, c.Token),
		"Complete once more": t.s.Complete(t.ctx, c.Key, c.Token, nil, long),
	} {
		if !errors.Is(err, idempotency.ErrFenced) {
			t.Errorf("%s by one who does not own the key: %v, want ErrFenced", name, err)
		}
	}
}
