package lullredis

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/problem"
)

// The defaults of zero fields.
const (
	DefaultPrefix     = "lull"
	DefaultSyncEvery  = time.Second
	DefaultRatio      = budget.DefaultRatio
	DefaultFloor      = 1   // retries per second, of the whole fleet
	DefaultAloneShare = 0.5 // of the floor
)

// The limits that Validate enforces.
const (
	MinSyncEvery = 10 * time.Millisecond
	MaxSyncEvery = 30 * time.Second
	MinFloor     = 1e-6
	MaxFloor     = 1e6
	MaxPool      = 1e6
)

// poolSeconds is how long a floor takes to fill a pool of the default size.
const poolSeconds = 10

// A FleetConfig configures how a Fleet syncs with Redis. It is plain, comparable data, and the zero
// value is the recommended setting.
type FleetConfig struct {
	// Prefix begins every key. Fleets with different prefixes share nothing. It must
	// not contain braces. Empty: "lull".
	Prefix string

	// SyncEvery is how often an instance syncs. The time is drawn anew from ±25 % of it, so that
	// instances do not fall into step. All instances of a fleet should have the same. An instance
	// without an answer for four times as long counts as on its own. One that runs out of tokens
	// syncs earlier, after a quarter, if the pool is not empty. Zero: 1 s. From 10 ms to 30 s.
	SyncEvery time.Duration

	// SyncTimeout is how long one sync may take. No request waits for it, but no other sync begins
	// until it is over. Zero: half of SyncEvery. At most SyncEvery.
	SyncTimeout time.Duration
}

// Validate reports every mistake at once, each naming its field. Nil: none.
func (c FleetConfig) Validate() error {
	var l problem.List
	l.Check(!strings.ContainsAny(c.Prefix, "{}"), "Prefix", c.Prefix, "text without braces, which Redis Cluster reads")
	l.Check(c.SyncEvery == 0 || c.SyncEvery >= MinSyncEvery && c.SyncEvery <= MaxSyncEvery, "SyncEvery", c.SyncEvery,
		fmt.Sprintf("zero (%v), or a duration from %v to %v", DefaultSyncEvery, MinSyncEvery, MaxSyncEvery))
	l.Check(c.SyncTimeout >= 0 && c.SyncTimeout <= cmp.Or(c.SyncEvery, DefaultSyncEvery), "SyncTimeout", c.SyncTimeout, "zero (half of SyncEvery), or a duration up to SyncEvery")
	return l.Err()
}

func (c FleetConfig) withDefaults() FleetConfig {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.SyncEvery = cmp.Or(c.SyncEvery, DefaultSyncEvery)
	c.SyncTimeout = cmp.Or(c.SyncTimeout, c.SyncEvery/2)
	return c
}

// A BudgetConfig limits what the whole fleet may spend on retries of one dependency. It is plain,
// comparable data, and the zero value is the recommended setting. All instances should have the
// same. While they differ, as during a deployment, the largest values bound the spending.
type BudgetConfig struct {
	// Ratio is the number of retries for each call that earns, as in budget.Config. Each instance
	// counts it for itself. Zero: 0.1.
	Ratio float64

	// Earn selects the calls that earn. Zero: those that succeed.
	Earn budget.Earn

	// Floor is how many retries per second the whole fleet may make beyond the ratio, however many
	// instances it has. A dependency must be able to bear that on top of everything, for as long as
	// an outage lasts. Zero: 1. From 1e-6 to 1e6.
	Floor float64

	// Pool is how much of the floor is kept while nobody needs it, in retries: the whole fleet may
	// spend it at once. Zero: ten seconds of Floor, one retry at least. From 1 to 1e6.
	Pool float64

	// AloneShare is the part of the floor that the fleet spends while Redis does not answer. Each
	// instance has its share, by the last known number of instances. Zero: 0.5. Negative: nothing.
	// At most 1.
	AloneShare float64
}

// Validate reports every mistake at once, each naming its field. Nil: none.
func (c BudgetConfig) Validate() error {
	var l problem.List
	// The local part names the fields that it knows.
	l.In("", c.local().Validate())
	for i := range l {
		l[i].Field = strings.TrimPrefix(l[i].Field, ".")
	}
	l.Check(c.Floor == 0 || c.Floor >= MinFloor && c.Floor <= MaxFloor, "Floor", c.Floor,
		fmt.Sprintf("zero (%v), or retries per second from %v to %.0f", DefaultFloor, MinFloor, MaxFloor))
	l.Check(c.Pool == 0 || c.Pool >= 1 && c.Pool <= MaxPool, "Pool", c.Pool,
		fmt.Sprintf("zero (%d s of Floor), or retries from 1 to %.0f", poolSeconds, MaxPool))
	l.Check(c.AloneShare <= 1, "AloneShare", c.AloneShare, fmt.Sprintf("zero (%v), a part up to 1, or negative for none", DefaultAloneShare))
	return l.Err()
}

// local returns the part of the budget that needs no fleet.
func (c BudgetConfig) local() budget.Config { return budget.Config{Ratio: c.Ratio, Earn: c.Earn} }

func (c BudgetConfig) withDefaults() BudgetConfig {
	c.Ratio = cmp.Or(c.Ratio, DefaultRatio)
	c.Floor = cmp.Or(c.Floor, DefaultFloor)
	c.Pool = cmp.Or(c.Pool, min(max(1, poolSeconds*c.Floor), MaxPool))
	c.AloneShare = cmp.Or(c.AloneShare, DefaultAloneShare)
	return c
}

// ledgerSettings are the settings of a ledger.
type ledgerSettings struct {
	floor float64 // tokens per second
	pool  float64 // tokens
	alone float64 // of floor, zero for none
	every time.Duration
}

// ledgerSettings returns those of a BudgetConfig that Validate has accepted.
func (c BudgetConfig) ledgerSettings(every time.Duration) ledgerSettings {
	c = c.withDefaults()
	return ledgerSettings{floor: c.Floor, pool: c.Pool, alone: max(c.AloneShare, 0), every: every}
}
