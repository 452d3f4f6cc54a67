package lullredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// A stub is a Redis for the driver: the model behind a function.
type stub struct {
	mu      sync.Mutex
	redis   map[string]*model
	epoch   time.Time
	frozen  bool          // answers nobody until ctx is over
	deaf    chan struct{} // if not nil, answers nobody until it is closed, whatever ctx does
	late    time.Duration // carries out that much later what was sent, whether or not anybody waits
	err     error
	batches [][]string // who synced with whom
	at      []time.Duration
	under   int // way
	most    int
}

func newStub() *stub {
	return &stub{redis: map[string]*model{}, epoch: time.Now()}
}

func (s *stub) exchange(ctx context.Context, batch []*budgetSync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under++
	s.most = max(s.most, s.under)
	defer func() { s.under-- }()
	names := make([]string, len(batch))
	for i, e := range batch {
		names[i] = e.budget.name
	}
	s.batches = append(s.batches, names)
	s.at = append(s.at, time.Since(s.epoch))
	deaf := s.deaf
	fail := s.err
	if s.frozen {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		fail = ctx.Err()
	} else if deaf != nil {
		s.mu.Unlock()
		<-deaf
		s.mu.Lock()
	} else if s.late > 0 {
		sent := make([]*budgetSync, len(batch))
		for i, e := range batch {
			sent[i] = new(*e)
		}
		carried := make(chan struct{})
		time.AfterFunc(s.late, func() {
			s.set(func(s *stub) { s.sync(sent, fail) })
			close(carried)
		})
		s.mu.Unlock()
		defer s.mu.Lock()
		select {
		case <-carried:
			for i, e := range sent {
				*batch[i] = *e
			}
		case <-ctx.Done():
			for _, e := range batch {
				e.err = ctx.Err()
			}
		}
		return
	}
	s.sync(batch, fail)
}

// sync carries a batch out, or lets it fail.
func (s *stub) sync(batch []*budgetSync, fail error) {
	for _, e := range batch {
		if e.err = fail; fail != nil {
			continue
		}
		m := s.redis[e.budget.name]
		if m == nil {
			m = newModel()
			s.redis[e.budget.name] = m
		}
		e.answer = m.sync(time.Since(s.epoch)+time.Hour, e.id, e.request, e.budget.ledger.settings)
	}
}

func (s *stub) set(f func(*stub)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func draws() func() uint64 {
	var mu sync.Mutex
	x := uint64(1)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		x = x*6364136223846793005 + 1442695040888963407
		return x ^ x>>29
	}
}

func mustBudget(t testing.TB, f *Fleet, name string, c BudgetConfig) *FleetBudget {
	t.Helper()
	return must.Have(f.Budget(name, c))
}

// withFleet runs f in a bubble, 12 s after a fleet has got its budget "a" with a floor of 10.
func withFleet(t *testing.T, f func(t *testing.T, s *stub, fleet *Fleet, b *FleetBudget)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		fleet := open(s.exchange, FleetConfig{}, draws())
		defer fleet.Close(t.Context())
		b := mustBudget(t, fleet, "a", BudgetConfig{Floor: 10})
		time.Sleep(12 * time.Second)
		f(t, s, fleet, b)
	})
}

// spend withdraws until refused.
func spend(b *FleetBudget, now time.Duration) (n int) {
	for b.Withdraw(now, budget.Transient, nil).OK {
		n++
	}
	return n
}

func TestAFleetSyncsAllItsBudgetsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		f := open(s.exchange, FleetConfig{}, draws())
		for _, name := range []string{"b", "c", "a"} {
			mustBudget(t, f, name, BudgetConfig{})
		}
		time.Sleep(10*time.Second + time.Millisecond)
		s.set(func(s *stub) {
			if n := len(s.batches); n < 9 || n > 15 {
				t.Errorf("%d exchanges in 10 s", n)
			}
			check.Equal(t, fmt.Sprint(s.batches[len(s.batches)-1]), "[a b c]", "the last exchange")
			gaps := map[time.Duration]bool{}
			for i := range s.at[3:] {
				gap := s.at[i+3] - s.at[i+2]
				gaps[gap] = true
				if gap < 750*time.Millisecond || gap > 1250*time.Millisecond {
					t.Errorf("syncs %v apart", gap)
				}
			}
			if len(gaps) < 3 {
				t.Errorf("syncs are in step: gaps %v", gaps)
			}
		})
		for i, st := range f.Snapshots() {
			if want := string(rune('a' + i)); st.Name != want || st.Mode != ModeInStep || st.Instances != 1 || st.Syncs < 8 || st.LastSync > 1250*time.Millisecond || st.Err != nil {
				t.Errorf("state %+v", st)
			}
		}
		check.Equal(t, f.Close(t.Context()), nil, "f.Close(t.Context())")
	})
}

func TestOneThatRunsOutIsServedSooner(t *testing.T) {
	withFleet(t, func(t *testing.T, s *stub, f *Fleet, b *FleetBudget) {
		total := 0
		for range 9 { // 1, 2, 4, ... at each quarter of a second, up to half of what is there
			total += spend(b, time.Since(s.epoch))
			time.Sleep(250*time.Millisecond + time.Millisecond)
		}
		if total < 60 || total > 100+23 {
			t.Errorf("spent %d in two seconds", total)
		}
	})
}

// While an exchange blocks no time passes in a decision. In this bubble time would pass if
// anything waited.
func TestNoDecisionWaitsForRedis(t *testing.T) {
	withFleet(t, func(t *testing.T, s *stub, f *Fleet, b *FleetBudget) {
		for name, trouble := range map[string]func(*stub){
			"frozen":  func(s *stub) { s.frozen = true },
			"deaf":    func(s *stub) { s.deaf = make(chan struct{}) },
			"failing": func(s *stub) { s.err = errors.New("READONLY") },
		} {
			s.set(trouble)
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				before := time.Now()
				for range 1000 {
					now := time.Since(s.epoch)
					b.Start(now)
					b.Failed(now)
					b.Release(now, b.Withdraw(now, budget.Transient, nil).Receipt)
					b.Done(now, false, 0, 0)
					b.Balance(now)
					b.Snapshot()
				}
				if waited := time.Since(before); waited != 0 {
					t.Fatalf("%s: a thousand decisions took %v", name, waited)
				}
			}
			time.Sleep(5 * time.Second)
			if st := b.Snapshot(); st.Mode != ModeAlone || st.Err == nil || st.Failed == 0 && name != "deaf" {
				t.Errorf("%s: state %+v", name, st)
			}
			s.set(func(s *stub) {
				if s.deaf != nil {
					close(s.deaf)
				}
				s.frozen, s.deaf, s.err = false, nil, nil
			})
			time.Sleep(4 * time.Second)
			if st := b.Snapshot(); st.Mode != ModeInStep || st.Err != nil {
				t.Errorf("%s is over: state %+v", name, st)
			}
		}
		check.Equal(t, s.most, 1, "exchanges at once")
	})
}

// Alone, an instance still gets its share, even if its client never comes back.
func TestAnInstanceWithADeafClientGetsItsShare(t *testing.T) {
	withFleet(t, func(t *testing.T, s *stub, f *Fleet, b *FleetBudget) {
		deaf := make(chan struct{})
		s.set(func(s *stub) { s.deaf = deaf })
		time.Sleep(5 * time.Second)
		spend(b, 0)
		got := 0
		for range 20 {
			time.Sleep(time.Second)
			got += spend(b, 0)
		}
		if got < 93 || got > 107 {
			t.Errorf("spent %d in 20 s, want about half of the floor of 200", got)
		}
		close(deaf)
	})
}

func TestCloseHandsTokensBack(t *testing.T) {
	withFleet(t, func(t *testing.T, s *stub, f *Fleet, b *FleetBudget) {
		for range 5 {
			spend(b, 0)
			time.Sleep(300 * time.Millisecond)
		}
		if b.Snapshot().Lease == 0 {
			t.Fatal("it holds nothing: the test shows nothing")
		}
		check.Equal(t, f.Close(t.Context()), nil, "f.Close(t.Context())")
		if m := s.redis["a"]; m.out() != 0 || len(m.seen) != 0 || m.pool < 10 {
			t.Errorf("left behind: %+v", m)
		}
		check.Equal(t, spend(b, 0), 0, "spent after Close")
		for range 30 { // what calls earn is still there
			b.Done(time.Minute, true, 0, 0)
		}
		if n := spend(b, time.Minute); n < 2 {
			t.Errorf("spent %d of three that were earned after Close", n)
		}
		check.Equal(t, f.Close(t.Context()), nil, "f.Close(t.Context())")
		if _, err := f.Budget("b", BudgetConfig{}); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A sync that is under way when the fleet closes must not reach Redis behind the farewell: it would
// enter the instance again, which then holds tokens that nobody spends for ten minutes.
func TestCloseWaitsForTheSyncUnderWay(t *testing.T) {
	withFleet(t, func(t *testing.T, s *stub, f *Fleet, b *FleetBudget) {
		s.set(func(s *stub) { s.late = 200 * time.Millisecond })
		for under := 0; under == 0; time.Sleep(time.Millisecond) {
			spend(b, 0)
			s.set(func(s *stub) { under = s.under })
		}
		s.set(func(s *stub) { s.late = 0 }) // the farewell is quicker
		check.Equal(t, f.Close(t.Context()), nil, "f.Close(t.Context())")
		time.Sleep(time.Second)
		if m := s.redis["a"]; m.out() != 0 || len(m.seen) != 0 {
			t.Errorf("left behind: %+v", m)
		}
	})
}

func TestCloseDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		f := open(s.exchange, FleetConfig{}, draws())
		mustBudget(t, f, "a", BudgetConfig{})
		time.Sleep(5 * time.Second)
		deaf := make(chan struct{})
		s.set(func(s *stub) { s.deaf = deaf })
		time.Sleep(2 * time.Second)
		began := time.Now()
		check.Is(t, f.Close(t.Context()), context.DeadlineExceeded, "Close")
		check.Equal(t, time.Since(began), 500*time.Millisecond, "Close took")
		close(deaf)
	})
}

func TestTheSameNameIsTheSameBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(newStub().exchange, FleetConfig{}, draws())
		defer f.Close(t.Context())
		a := mustBudget(t, f, "a", BudgetConfig{Floor: 2})
		if again := mustBudget(t, f, "a", BudgetConfig{Floor: 2}); again != a || a.Snapshot().Name != "a" {
			t.Error("another budget")
		}
		if _, err := f.Budget("a", BudgetConfig{Floor: 3}); err == nil {
			t.Error("another Config was taken")
		}
		if _, err := f.Budget("", BudgetConfig{}); err == nil {
			t.Error("no name was taken")
		}
		if _, err := f.Budget("b", BudgetConfig{Floor: -1}); err == nil {
			t.Error("a negative floor was taken")
		}
	})
}

func TestOpenReportsWhatIsWrong(t *testing.T) {
	deaf := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer deaf.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for name, client := range map[string]redis.UniversalClient{"nil": nil, "client": deaf, "cluster": cluster, "ring": ring} {
		if f, err := Open(client, FleetConfig{}); err == nil {
			t.Errorf("%s was taken", name)
			f.Close(t.Context())
		} else {
			t.Log(err)
		}
	}
	if _, err := Open(deaf, FleetConfig{SyncEvery: -1}); err == nil {
		t.Error("a negative Every was taken")
	}
}

// The first refusal after a payment wakes the driver, the others do not, whoever paid.
func TestRefusalsAreNewsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(newStub().exchange, FleetConfig{}, draws())
		defer f.Close(t.Context())
		b := mustBudget(t, f, "a", BudgetConfig{})
		ask := func() string {
			g := b.Withdraw(time.Since(f.epoch), budget.Transient, nil)
			return fmt.Sprint(g.OK, g.Exhausted)
		}
		want := func(answers ...string) {
			t.Helper()
			for _, a := range answers {
				if got := ask(); got != a {
					t.Fatalf("paid, news: %s, want %s", got, a)
				}
			}
		}
		want("false true", "false false") // before the fleet was ever heard of
		for range 10 {
			b.Done(0, true, 0, 0)
		}
		want("true false", "false true", "false false") // by what was earned
		time.Sleep(8 * time.Second)
		want("true false", "false true", "false false") // by the fleet
	})
}

// The local part pays ratio × calls that earn, and nothing before: there is no stock at the start.
func TestTheLocalPartIsWhatWasEarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.err = errors.New("no Redis")
		f := open(s.exchange, FleetConfig{}, draws())
		defer f.Close(t.Context())
		for _, c := range []BudgetConfig{{}, {Ratio: 0.5}, {Earn: budget.Arrivals}} {
			b := mustBudget(t, f, fmt.Sprint(c), c)
			ratio := c.withDefaults().Ratio
			earned, spent := 0, 0
			for i := range 6000 {
				time.Sleep(time.Millisecond)
				now, success := time.Since(f.epoch), i%3 == 0
				b.Start(now)
				if c.Earn == budget.Arrivals {
					earned++
				}
				for b.Withdraw(now, budget.Transient, nil).OK {
					spent++
				}
				b.Done(now, success, 0, 0)
				if success && c.Earn == budget.Successes {
					earned++
				}
				if float64(spent) > ratio*float64(earned)+1e-9 {
					t.Fatalf("%+v: spent %d of %d × %v", c, spent, earned, ratio)
				}
			}
			if float64(spent) < ratio*float64(earned)-1.5 {
				t.Errorf("%+v: spent only %d", c, spent)
			}
		}
	})
}
