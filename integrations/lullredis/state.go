package lullredis

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// FleetMode is an instance's relation to its fleet.
type FleetMode uint8

const (
	// ModeStarting: Redis has not answered yet. Only the tokens that calls have earned pay for retries.
	ModeStarting FleetMode = iota
	// ModeInStep: Redis answered lately.
	ModeInStep
	// ModeAlone: Redis has not answered for four times FleetConfig.SyncEvery. The instance spends its
	// tokens, and its share of a part of the floor.
	ModeAlone
)

var modeNames = [...]string{"starting", "in step", "alone"}

// String returns the mode in lower case, such as "in step".
func (m FleetMode) String() string { return choice.Name("mode", modeNames[:], m) }

// MarshalText returns String, for a valid FleetMode.
func (m FleetMode) MarshalText() ([]byte, error) { return choice.Marshal("Mode", modeNames[:], m) }

// UnmarshalText accepts the result of MarshalText, in any case.
func (m *FleetMode) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Mode", modeNames[:], m, text)
}

// A Snapshot is the knowledge of one instance about one dependency's fleet budget. Retries are counted in
// tokens.
type Snapshot struct {
	Name string
	Mode FleetMode

	Lease int64   // held, leased from the pool
	Share int64   // held, allowed to itself while alone
	Pool  float64 // left in the pool, at the last sync

	Instances int // in step at the last sync, this one included
	Members   int // remembered by Redis then: the floor is shared among them while alone

	LastSync time.Duration // since the last sync that was answered; negative if none was
	Syncs    int64         // answered, since Redis last knew nothing of this instance
	Failed   int64         // syncs that were not answered in time, or with an error
	Err      error         // the error of the last sync; nil if it succeeded
}

func (l *ledger) state(now time.Duration) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{
		Mode: l.mode(now), Lease: l.leased.Load(), Share: l.share.Load(), Pool: l.latest.pool,
		Instances: int(l.latest.recent), Members: int(l.latest.members), LastSync: -1, Syncs: l.answers,
		Failed: l.failed, Err: l.failure,
	}
	if l.answers > 0 {
		s.LastSync = saturating.Since(l.answeredAt, now)
	}
	return s
}
