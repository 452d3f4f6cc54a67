package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/server/idempotency"
)

// faulty is a store some of whose calls fail, before or after they took effect.
type faulty struct {
	idempotency.Store
	mu     sync.Mutex
	before map[string]fault // by method: if it returns an error nothing happens
	after  map[string]fault // it happens, and the answer is lost
	calls  map[string]int
}

// A fault is what a call meets, nil for nothing.
type fault func(ctx context.Context) error

var errDown = errors.New("the store is down")

func down(context.Context) error      { return errDown }
func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func newFaulty(s idempotency.Store) *faulty {
	return &faulty{Store: s, before: map[string]fault{}, after: map[string]fault{}, calls: map[string]int{}}
}

func (f *faulty) fail(when map[string]fault, method string, how fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	when[method] = how
}

func (f *faulty) called(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *faulty) call(ctx context.Context, method string, do func() error) error {
	f.mu.Lock()
	f.calls[method]++
	before, after := f.before[method], f.after[method]
	f.mu.Unlock()
	for _, step := range []fault{before, func(context.Context) error { return do() }, after} {
		if step != nil {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *faulty) Claim(ctx context.Context, c idempotency.Claim) (a idempotency.ClaimResult, err error) {
	err = f.call(ctx, "Claim", func() (err error) {
		a, err = f.Store.Claim(ctx, c)
		return err
	})
	if err != nil {
		a = idempotency.ClaimResult{}
	}
	return a, err
}

func (f *faulty) Extend(ctx context.Context, key string, token idempotency.FencingToken, lease, retention time.Duration) error {
	return f.call(ctx, "Extend", func() error { return f.Store.Extend(ctx, key, token, lease, retention) })
}

func (f *faulty) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	return f.call(ctx, "Complete", func() error { return f.Store.Complete(ctx, key, token, record, retention) })
}

func (f *faulty) Release(ctx context.Context, key string, token idempotency.FencingToken) error {
	return f.call(ctx, "Release", func() error { return f.Store.Release(ctx, key, token) })
}

// A store that is down: 503, and nothing is run. When it is back, a claim whose answer was lost is taken back, and the key is
// left as it was found. A request that never began changes nothing for the next one: its outcome is not unknown, and it does
// not resume.
func TestStoreDown(t *testing.T) {
	for _, x := range []struct {
		lost, resume bool
		began        bool // somebody did, and was interrupted
	}{
		{}, {lost: true}, {lost: true, resume: true}, {lost: true, began: true}, {lost: true, resume: true, began: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			memory := newMemory(t, idempotency.MemoryStoreConfig{})
			if x.began {
				interrupt(t, memory, request("k"))
			}
			store := newFaulty(memory)
			store.fail(map[bool]map[string]fault{false: store.before, true: store.after}[x.lost], "Claim", down)
			r := newRig(t, store, idempotency.Config{Resume: x.resume})
			c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "resumed ", idempotency.KeyedRequestFrom(r.Context()).Resumed)
			}}
			got := send(t, r.m.Wrap(c), request("k"))
			got.is(t, 503, "store-unavailable")
			c.times(t, 0)
			if n, ra := store.called("Claim"), got.header.Get("Retry-After"); n < 2 || ra != "2" {
				t.Errorf("the store was called %d times, under a policy that retries; Retry-After is %q, want 2", n, ra)
			}
			store.fail(store.after, "Claim", nil)
			r.wait()
			r.saw("store-failed")
			got = send(t, newRig(t, memory, idempotency.Config{Resume: x.resume}).m.Wrap(c), request("k"))
			if x.began && !x.resume {
				got.is(t, 409, "outcome-unknown")
			} else {
				got.ran(t, 200, fmt.Sprint("resumed ", x.began))
			}
		})
	}
}

// A process reports no outcome as unknown while it has yet to free the key in its store, even if the
// lease is over because the store was stopped for longer.
func TestNothingDoneIsNotUnknown(t *testing.T) {
	for _, method := range []string{"Claim", "Release"} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
			r := newRig(t, store, idempotency.Config{Lease: 2 * time.Second})
			c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
				if method == "Release" && n == 1 {
					idempotency.NoEffect(r.Context())
				}
				fmt.Fprint(w, "time ", n)
			}}
			h := r.m.Wrap(c)
			store.fail(map[string]map[string]fault{"Claim": store.after, "Release": store.before}[method], method, down)
			store.fail(store.before, "Release", down)
			send(t, h, request("k"))
			store.fail(store.after, "Claim", nil)
			time.Sleep(10 * time.Second)
			send(t, h, request("k")).is(t, 409, "in-flight")
			store.fail(store.before, "Release", nil)
			r.wait()
			send(t, h, request("k")).ran(t, 200, map[string]string{"Claim": "time 1", "Release": "time 2"}[method])
		})
	}
}

// A handler that had no effect frees its key only when no claim of the request can be carried out
// any more: such a claim would take the key again, and nobody would work on it.
func TestReleaseWaitsForLateClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t, idempotency.MemoryStoreConfig{})
		store := &belated{Store: memory}
		r := newRig(t, store, idempotency.Config{})
		c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				idempotency.NoEffect(r.Context())
			}
			fmt.Fprint(w, "time ", n)
		}}
		send(t, r.m.Wrap(c), request("k")).ran(t, 200, "time 1")
		time.Sleep(time.Minute)
		send(t, r.m.Wrap(c), request("k")).ran(t, 200, "time 2")
		r.saw("released", "ran")
	})
}

// A request whose first claim was lost, and whose second one was refused, has no handler either.
func TestLostClaimOfARequestThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t, idempotency.MemoryStoreConfig{})
		c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				time.Sleep(500 * time.Millisecond)
				idempotency.NoEffect(r.Context())
			}
			fmt.Fprint(w, "time ", n)
		}}
		first := begin(t, newRig(t, memory, idempotency.Config{}).m.Wrap(c), request("k"))
		r := newRig(t, &belated{Store: memory}, idempotency.Config{})
		send(t, r.m.Wrap(c), request("k")).is(t, 409, "in-flight")
		(<-first).ran(t, 200, "time 1")
		time.Sleep(time.Minute)
		send(t, r.m.Wrap(c), request("k")).ran(t, 200, "time 2")
	})
}

// belated is a store whose first claim seems to fail at once, and is carried out at the last moment.
type belated struct {
	idempotency.Store
	once sync.Once
}

func (b *belated) Claim(ctx context.Context, c idempotency.Claim) (a idempotency.ClaimResult, err error) {
	b.once.Do(func() {
		end, _ := ctx.Deadline()
		time.AfterFunc(time.Until(end)-1, func() { b.Store.Claim(context.WithoutCancel(ctx), c) })
		err = errDown
	})
	if err != nil {
		return a, err
	}
	return b.Store.Claim(ctx, c)
}

// However often the answer to a claim is lost, it is taken back.
func TestClaimsAreLostAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t, idempotency.MemoryStoreConfig{})
		store := newFaulty(memory)
		r := newRig(t, store, idempotency.Config{})
		c := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "paid") })
		for i := range 100 {
			key := fmt.Sprint("k", i)
			store.fail(store.after, "Claim", down)
			send(t, r.m.Wrap(c), request(key)).is(t, 503, "store-unavailable")
			r.wait()
			store.fail(store.after, "Claim", nil)
			time.Sleep(time.Minute) // the circuit closes
			send(t, newRig(t, memory, idempotency.Config{}).m.Wrap(c), request(key)).ran(t, 200, "paid")
		}
	})
}

// A store without room for a single byte more still records that a request was carried
// out, and how it ended.
func TestShortRecordsAlwaysFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{MaxBytes: len(idempotency.StoreKey("", "k"))})
		const receipt = "a receipt that is longer than the shortest records"
		c := &counter{do: func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, receipt) }}
		h := newRig(t, store, idempotency.Config{}).m.Wrap(c)
		send(t, h, request("k")).ran(t, 200, receipt)
		got := send(t, h, request("k"))
		got.is(t, 409, "response-not-kept")
		check.Equal(t, got.details["original_status"], 200.0, "%v", got.details)
		c.times(t, 1)
	})
}

// While the store has been down for some time, nobody waits for it.
func TestStoreDownForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		store.fail(store.before, "Claim", down)
		c := &counter{}
		h := newRig(t, store, idempotency.Config{}).m.Wrap(c)
		for range 40 {
			send(t, h, request("k")).is(t, 503, "store-unavailable")
			time.Sleep(100 * time.Millisecond)
		}
		before := store.called("Claim")
		for range 10 {
			began := time.Now()
			send(t, h, request("k")).is(t, 503, "store-unavailable")
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("a request waited %v", waited)
			}
		}
		if n := store.called("Claim") - before; n > 2 {
			t.Errorf("the circuit is not open: %d calls", n)
		}
		store.fail(store.before, "Claim", nil)
		time.Sleep(time.Minute)
		send(t, h, request("k")).ran(t, 201, "receipt 1")
		c.times(t, 1)
	})
}

// A hung store holds a request no longer than the policy allows.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		store.fail(store.before, "Claim", hangs)
		store.fail(store.before, "Release", hangs)
		h := newRig(t, store, idempotency.Config{}).m.Wrap(c)
		began := time.Now()
		send(t, h, request("k")).is(t, 503, "store-unavailable")
		if waited := time.Since(began); waited > idempotency.StorePolicy().WorstCase() {
			t.Errorf("the request waited %v, more than %v", waited, idempotency.StorePolicy().WorstCase())
		}
		c.times(t, 0)
		time.Sleep(time.Hour) // the claims that are taken back
	})
}

// A response waits for a store that hangs as long as one call of the policy may take, or a lease
// if the policy does not bound it; it is stored later.
func TestStoreHangsWhenAllIsDone(t *testing.T) {
	unbounded := idempotency.StorePolicy()
	unbounded.AttemptTimeout = lull.NoTimeout
	for _, c := range []struct {
		policy lull.Policy
		want   time.Duration
	}{{lull.Policy{}, time.Second}, {unbounded, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
			store.fail(store.before, "Complete", hangs)
			r := newRig(t, store, idempotency.Config{Store: c.policy, Lease: 10 * time.Second})
			h := r.m.Wrap(&counter{})
			began := time.Now()
			send(t, h, request("k"))
			check.Equal(t, time.Since(began), c.want, "the response waited")
			store.fail(store.before, "Complete", nil)
			r.wait()
			r.saw("save-failed", "ran")
		})
	}
}

func TestFailOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		store.fail(store.before, "Claim", down)
		c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
			b := make([]byte, 10)
			k, _ := r.Body.Read(b)
			fmt.Fprintf(w, "%s, time %d", b[:k], n)
		}}
		h := newRig(t, store, idempotency.Config{FailOpen: true}).m.Wrap(c)
		send(t, h, request("k")).ran(t, 200, "100, time 1")
		send(t, h, request("k")).ran(t, 200, "100, time 2")
		time.Sleep(time.Hour)
	})
}

// A store that answers nonsense has not given the key to anybody.
func TestStoreAnswersNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, state := range []idempotency.KeyState{0, idempotency.Unknown + 1, 255} {
			c := &counter{}
			h := newRig(t, nonsense{state: state}, idempotency.Config{}).m.Wrap(c)
			send(t, h, request("k")).is(t, 503, "store-unavailable")
			c.times(t, 0)
			time.Sleep(time.Hour) // the claims that are taken back
		}
	})
}

// nonsense is a store that answers what it likes, whether it runs the handler of a transaction or not.
type nonsense struct {
	idempotency.Store
	state  idempotency.KeyState
	record []byte
	runs   bool
}

func (n nonsense) Claim(context.Context, idempotency.Claim) (idempotency.ClaimResult, error) {
	return idempotency.ClaimResult{State: n.state, Record: n.record}, nil
}

func (n nonsense) Transact(ctx context.Context, _ idempotency.Claim, run func(context.Context, bool) ([]byte, bool)) (idempotency.ClaimResult, error) {
	if n.runs {
		run(ctx, false)
	}
	return idempotency.ClaimResult{State: n.state}, nil
}

func (n nonsense) Release(context.Context, string, idempotency.FencingToken) error { return nil }

// A record that cannot be read is still the record of something that was done.
func TestDamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, record := range [][]byte{nil, {}, {0}, {2, 0, 0}, []byte("HTTP/1.1 200 OK"), {1, 0, 0, 0, 0}} {
			c := &counter{}
			r := newRig(t, nonsense{state: idempotency.Replay, record: record}, idempotency.Config{})
			send(t, r.m.Wrap(c), request("k")).is(t, 409, "response-not-kept")
			c.times(t, 0)
			r.saw("refused-not-kept")
		}
	})
}

// The outcome cannot be stored at once: the client gets its response nevertheless, and
// it is stored as soon as that is possible.
func TestSaveIsTriedAgain(t *testing.T) {
	for _, method := range []string{"Complete", "Release", "Extend"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(method, "/answers lost ", lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
					when := store.before
					if lost {
						when = store.after
					}
					store.fail(when, method, down)
					r := newRig(t, store, idempotency.Config{})
					c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
						switch {
						case method == "Extend" && n == 1:
							panic("boom")
						case method == "Release":
							idempotency.NoEffect(r.Context())
						}
						fmt.Fprint(w, "time ", n)
					}}
					h := r.m.Wrap(c)
					func() {
						defer func() { recover() }()
						send(t, h, request("k")).ran(t, 200, "time 1")
					}()
					released := method == "Release" && lost // the try in the background finds that at once
					if !released {
						r.saw("save-failed")
					}
					if !lost {
						send(t, h, request("k")).is(t, 409, "in-flight")
						r.happened()
					}
					time.Sleep(20 * time.Second)
					store.fail(when, method, nil)
					r.wait()
					if released {
						r.saw("save-failed", "fenced")
					} else {
						r.saw(map[string]string{"Complete": "ran", "Release": "released", "Extend": "abandoned"}[method])
					}
					switch got := send(t, h, request("k")); method {
					case "Complete":
						got.replays(t, 200, "time 1")
					case "Release":
						got.ran(t, 200, "time 2")
					case "Extend":
						got.is(t, 409, "outcome-unknown")
					}
				})
			})
		}
	}
}

// The response cannot be stored at all: when the lease has ended, the key's outcome is unknown.
func TestSaveIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		store.fail(store.before, "Complete", down)
		r := newRig(t, store, idempotency.Config{})
		c := &counter{}
		h := r.m.Wrap(c)
		send(t, h, request("k")).ran(t, 201, "receipt 1")
		time.Sleep(31 * time.Second)
		send(t, h, request("k")).is(t, 409, "outcome-unknown")
		r.wait()
		r.saw("save-failed", "refused-unknown", "save-lost")
		c.times(t, 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		send(t, h, request("l")).ran(t, 201, "receipt 2")
		check.Is(t, r.m.Wait(ctx), context.DeadlineExceeded, "Wait while something is being saved")
		time.Sleep(time.Hour)
	})
}

// A full store refuses new keys, at once, and forgets none.
func TestMemoryIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{MaxEntries: 2})
		h := newRig(t, store, idempotency.Config{Retention: time.Hour}, idempotency.WithScope(idempotency.SharedScope)).m.Wrap(&counter{})
		send(t, h, request("a")).ran(t, 201, "receipt 1")
		send(t, h, request("b")).ran(t, 201, "receipt 2")
		send(t, h, request("c")).is(t, 503, "store-unavailable")
		send(t, h, request("a")).replays(t, 201, "receipt 1")
		send(t, h, request("b")).replays(t, 201, "receipt 2")
		time.Sleep(time.Hour)
		send(t, h, request("c")).ran(t, 201, "receipt 3")
		check.Equal(t, store.Len(), 1, "keys are remembered")
	})
}

// The lease of a handler that panicked is not extended any more: its successor under
// Resume need not wait for a process that is alive.
func TestTheLeaseEndsWithAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		h := newRig(t, store, idempotency.Config{}).m.Wrap(&counter{do: func(int, http.ResponseWriter, *http.Request) { panic("boom") }})
		panics(t, h, request("k"))
		given := store.called("Extend") // the outcome is given up by an Extend of zero
		time.Sleep(time.Hour)
		if n := store.called("Extend"); n != given {
			t.Errorf("the lease was extended %d times after the panic", n-given)
		}
		send(t, h, request("k")).is(t, 409, "outcome-unknown")
	})
}
