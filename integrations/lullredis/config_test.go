package lullredis

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		config interface{ Validate() error }
		wrong  []string
	}{
		{BudgetConfig{}, nil},
		{BudgetConfig{Ratio: 0.2, Earn: budget.Arrivals, Floor: MinFloor, Pool: 1, AloneShare: -1}, nil},
		{BudgetConfig{Floor: MaxFloor, Pool: MaxPool, AloneShare: 1}, nil},
		{BudgetConfig{AloneShare: math.Inf(-1)}, nil},
		{BudgetConfig{Ratio: -1, Earn: 7, Floor: -1, Pool: 0.5, AloneShare: 1.1}, []string{"Ratio", "Earn", "Floor", "Pool", "AloneShare"}},
		{BudgetConfig{Ratio: nan, Floor: nan, Pool: nan, AloneShare: nan}, []string{"Ratio", "Floor", "Pool", "AloneShare"}},
		{BudgetConfig{Ratio: inf, Floor: inf, Pool: inf, AloneShare: inf}, []string{"Ratio", "Floor", "Pool", "AloneShare"}},
		{BudgetConfig{Floor: MinFloor / 2, Pool: MaxPool + 1}, []string{"Floor", "Pool"}},
		{FleetConfig{}, nil},
		{FleetConfig{Prefix: "a:b", SyncEvery: MinSyncEvery, SyncTimeout: MinSyncEvery}, nil},
		{FleetConfig{SyncTimeout: DefaultSyncEvery}, nil},
		{FleetConfig{Prefix: "a{", SyncEvery: MinSyncEvery - 1, SyncTimeout: -1}, []string{"Prefix", "SyncEvery", "SyncTimeout"}},
		{FleetConfig{Prefix: "}", SyncEvery: MaxSyncEvery + 1, SyncTimeout: time.Hour}, []string{"Prefix", "SyncEvery", "SyncTimeout"}},
		{FleetConfig{SyncTimeout: DefaultSyncEvery + 1}, []string{"SyncTimeout"}},
	} {
		if got := problem.Fields(c.config.Validate()); !slices.Equal(got, c.wrong) {
			t.Errorf("%+v: wrong %q, want %q", c.config, got, c.wrong)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct{ in, want BudgetConfig }{
		{BudgetConfig{}, BudgetConfig{Ratio: 0.1, Floor: 1, Pool: 10, AloneShare: 0.5}},
		{BudgetConfig{Floor: 0.01}, BudgetConfig{Ratio: 0.1, Floor: 0.01, Pool: 1, AloneShare: 0.5}},
		{BudgetConfig{Floor: MaxFloor, AloneShare: -1}, BudgetConfig{Ratio: 0.1, Floor: MaxFloor, Pool: MaxPool, AloneShare: -1}},
	} {
		if got := c.in.withDefaults(); got != c.want || got.Validate() != nil {
			t.Errorf("%+v: %+v, want %+v", c.in, got, c.want)
		}
	}
	if got := (FleetConfig{SyncEvery: 3 * time.Second}).withDefaults(); got != (FleetConfig{Prefix: "lull", SyncEvery: 3 * time.Second, SyncTimeout: 1500 * time.Millisecond}) {
		t.Errorf("%+v", got)
	}
}

func TestModesAsText(t *testing.T) {
	for m := range FleetMode(3) {
		text, err := json.Marshal(m)
		var back FleetMode
		if err != nil || json.Unmarshal(text, &back) != nil || back != m || string(text) != `"`+m.String()+`"` {
			t.Errorf("%v: %s, %v, %v", m, text, err, back)
		}
	}
	if _, err := FleetMode(3).MarshalText(); err == nil || FleetMode(3).String() != "mode(3)" {
		t.Errorf("mode 3 is %v", FleetMode(3))
	}
	var m FleetMode
	if err := m.UnmarshalText([]byte("lost")); err == nil {
		t.Error("lost is no mode")
	}
}

// Whatever the configuration, the times and the answers, nothing panics, and an instance
// holds what it was granted at most.
func FuzzLedger(f *testing.F) {
	f.Add(1.0, 10.0, 0.5, int64(time.Second), []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add(1e6, 1e6, 1.0, int64(math.MaxInt64/2), []byte{1, 1, 1, 3, 3, 3, 2, 9, 200})
	f.Fuzz(func(t *testing.T, floor, pool, alone float64, start int64, steps []byte) {
		c := BudgetConfig{Floor: floor, Pool: pool, AloneShare: alone}
		if c.Validate() != nil {
			return
		}
		now := time.Duration(start)
		l := newLedger(c.ledgerSettings(time.Second), "a", now)
		var granted, shared int64
		var r request
		for i, s := range steps {
			now += time.Duration(int8(s)) * time.Duration(i) * 100 * time.Millisecond
			switch s % 8 {
			case 0:
				l.accrue(now, nil)
				shared = max(shared, l.share.Load())
			case 1:
				if q, ok := l.nextRequest(now, float64(s)/100); ok {
					r = q
				}
			case 2:
				l.lost(nil)
			case 3:
				grant := min(r.want, int64(s))
				if l.waiting && r.seq == l.pending.seq {
					granted += grant
				}
				l.apply(now, answer{kind: int64(s/8) % 3, seq: r.seq, grant: grant, pool: float64(s), members: int64(s % 5), at: now}, func() string { return "b" })
			case 4, 5:
				l.withdraw()
			case 6:
				l.needsSync()
				l.state(now)
			case 7:
				l.lastRequest()
			}
			if h := l.leased.Load(); h < 0 || h > granted || r.want < 0 || r.give < 0 || r.want > int64(pool)+1 {
				t.Fatalf("holds %d of %d granted, %+v", h, granted, r)
			}
		}
		if shared < 0 || float64(shared) > max(1, pool) {
			t.Fatalf("a share of %d", shared)
		}
	})
}

func TestConcurrentUse(t *testing.T) { synctest.Test(t, testConcurrentUse) }

func testConcurrentUse(t *testing.T) {
	s := newStub()
	f := open(s.exchange, FleetConfig{SyncEvery: MinSyncEvery}, draws())
	done := make(chan bool)
	for i := range 8 {
		go func() {
			defer func() { done <- true }()
			b, err := f.Budget(string(rune('a'+i%3)), BudgetConfig{Floor: 1e5})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 3000 {
				now := time.Since(s.epoch)
				b.Start(now)
				b.Withdraw(now, budget.Transient, nil)
				b.Done(now, n%4 == 0, 0, 0)
				b.Balance(now)
				if n%500 == 0 {
					f.Snapshots()
					time.Sleep(MinSyncEvery)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	check.Equal(t, f.Close(t.Context()), nil, "f.Close(t.Context())")
	for name, m := range s.redis {
		check.Equal(t, m.out(), 0, "%s: tokens are held by nobody", name)
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	for _, v := range []any{
		nil, "OK", int64(3), []any{}, []any{int64(0), int64(1), int64(1), int64(0), int64(1), int64(1)},
		[]any{int64(0), int64(1), "1", int64(0), int64(1), int64(1), int64(1)},
		[]any{int64(3), int64(1), int64(1), int64(0), int64(1), int64(1), int64(1)},
		[]any{int64(0), int64(1), int64(-1), int64(0), int64(1), int64(1), int64(1)},
	} {
		if a, err := parseAnswer(v); err == nil {
			t.Errorf("%v was read as %+v", v, a)
		}
	}
}

func mustStore(t testing.TB, c redis.UniversalClient, config StoreConfig) *Store {
	t.Helper()
	return must.Have(NewStore(c, config))
}

// A connection notices a deadline a little before its context does. The error is that of the context all the same.
func TestADeadlineThatOnlyTheConnectionHasNoticed(t *testing.T) {
	for left, ended := range map[time.Duration]bool{time.Millisecond: true, time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			if err := failure(ctx, "claim", os.ErrDeadlineExceeded); errors.Is(err, context.DeadlineExceeded) != ended || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v before the end: %v", left, err)
			}
		})
	}
}

func TestStoreConfig(t *testing.T) {
	for _, c := range []struct {
		config StoreConfig
		wrong  []string
	}{
		{StoreConfig{}, nil},
		{StoreConfig{Prefix: "a", MaxRecord: 1, Replicas: 1, ReplicaTimeout: time.Millisecond}, nil},
		{StoreConfig{Prefix: "{", MaxRecord: -1, Replicas: -1, ReplicaTimeout: 1}, []string{"Prefix", "MaxRecord", "Replicas", "ReplicaTimeout"}},
		{StoreConfig{MaxRecord: maxBulk + 1}, []string{"MaxRecord"}},
	} {
		if got := problem.Fields(c.config.Validate()); !slices.Equal(got, c.wrong) {
			t.Errorf("%+v: wrong %q, want %q", c.config, got, c.wrong)
		}
	}
	deaf := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer deaf.Close()
	if _, err := NewStore(deaf, StoreConfig{}); err == nil {
		t.Error("a client that ignores deadlines was taken")
	}
	if _, err := NewStore(nil, StoreConfig{}); err == nil {
		t.Error("no client was taken")
	}
	heeding := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer heeding.Close()
	if _, err := NewStore(heeding, StoreConfig{Replicas: -1}); err == nil {
		t.Error("less than no replicas were taken")
	}
	a, b := mustStore(t, heeding, StoreConfig{}), mustStore(t, heeding, StoreConfig{Prefix: "x"})
	check.Equal(t, a.RedisKey("s:{k}%"), "lull:idempotency:{s:%7Bk%7D%25}", "key")
	check.Equal(t, b.RedisKey("s:k"), "x:{s:k}", "key")
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{-1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 1<<63 - 1: 9223372036855} {
		check.Equal(t, millis(d), want, "%v in ms", d)
	}
	if duration(5) != 5*time.Millisecond || duration(1<<62) != 1<<63-1 {
		t.Error("milliseconds as a Duration")
	}
}
