package idempotency

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		c    Config
		want string // the fields complained of
	}{
		{Config{}, ""},
		{Config{}.WithDefaults(), ""},
		{Config{Lease: 100 * time.Millisecond, Retention: 100 * time.Millisecond}, ""},
		{Config{MaxKey: 1, MaxBody: 1, MaxResponse: 1}, ""},
		{Config{Lease: time.Hour, Retention: 10 * 365 * 24 * time.Hour, MaxKey: 1024, MaxBody: 1 << 30, MaxResponse: 1 << 30}, ""},
		{Config{Lease: 99 * time.Millisecond}, "Lease"},
		{Config{Lease: time.Hour + 1}, "Lease"},
		{Config{Lease: -1}, "Lease"},
		{Config{Retention: 29 * time.Second}, "Retention"},
		{Config{Retention: 10*365*24*time.Hour + 1}, "Retention"},
		{Config{Retention: -1, RetryAfter: -1, MaxKey: -1, MaxBody: -1, MaxResponse: -1}, "Retention RetryAfter MaxKey MaxBody MaxResponse"},
		{Config{MaxKey: 1025, MaxBody: 1<<30 + 1, MaxResponse: 1<<30 + 1}, "MaxKey MaxBody MaxResponse"},
		{Config{Documentation: "https://example.com/a?b#c"}, ""},
		{Config{Documentation: "/relative"}, "Documentation"},
		{Config{Documentation: "https://example.com/a>b"}, "Documentation"},
		{Config{Documentation: "https://example.com/a\r\nX: y"}, "Documentation"},
		{Config{Documentation: "https://example.com/é"}, "Documentation"},
		{Config{Transactional: true}, ""},
		{Config{Transactional: true, FailOpen: true}, "FailOpen"},
		{Config{Store: lull.Policy{Attempts: -1}}, "Store.Attempts"},
		{Config{Store: lull.Policy{Hedge: hedge.Config{Attempts: 2}}}, "Store.Hedge.Attempts"},
	} {
		err := test.c.Validate()
		check.Equal(t, strings.Join(problem.Fields(err), " "), test.want, "%+v: %v", test.c, err)
		if _, err2 := New(&MemoryStore{}, test.c); (err == nil || test.c.Transactional) && (err2 == nil) == test.c.Transactional || err != nil && err2 == nil {
			t.Errorf("%+v: New: %v", test.c, err2)
		}
	}
}

// A Config is comparable data: it can be a key.
var _ map[Config]bool

func TestMemoryConfig(t *testing.T) {
	err := MemoryStoreConfig{MaxEntries: -1, MaxBytes: -1}.Validate()
	if got := problem.Fields(err); len(got) != 2 || got[0] != "MaxEntries" || got[1] != "MaxBytes" {
		t.Errorf("%v", err)
	}
	if _, err := NewMemoryStore(MemoryStoreConfig{MaxEntries: -1}); err == nil {
		t.Error("NewMemory takes a negative number of entries")
	}
}

func TestNewRefuses(t *testing.T) {
	store, _ := NewMemoryStore(MemoryStoreConfig{})
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no store")
	}
	for _, o := range []Option{WithScope(nil), WithPayload(nil), WithObserver(nil)} {
		if _, err := New(store, Config{}, o); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("an option of nil: %v", err)
		}
	}
}

func TestWorstCaseOfStorePolicy(t *testing.T) {
	check.Equal(t, StorePolicy().WorstCase(), 3*time.Second, "how long a request waits for the store, as documented")
	check.Equal(t, StorePolicy().Validate(), nil, "StorePolicy().Validate()")
	for _, lease := range []time.Duration{minLease, DefaultLease, maxLease} {
		p := savePolicy(lease)
		check.Equal(t, p.Validate(), nil, "p.Validate()")
		// A store that is back has the outcome after as long, at most.
		if soon, late := p.Backoff.Max(1), p.Backoff.Max(p.Attempts); soon != 100*time.Millisecond || late != 5*time.Second {
			t.Errorf("an outcome is stored again after %v at first, and %v at last", soon, late)
		}
	}
}

func TestPeriod(t *testing.T) {
	for d, want := range map[time.Duration]string{24 * time.Hour: "24 hours", 48 * time.Hour: "48 hours", 72 * time.Hour: "3 days", time.Hour: "1h0m0s", 90 * time.Minute: "1h30m0s", 36 * time.Hour: "36 hours"} {
		check.Equal(t, period(d), want, "%v is said as", d)
	}
}
