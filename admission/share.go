package admission

import (
	"time"

	"github.com/lullgo/lull/internal/window"
)

// The inbound retry budget: of the attempts that are not first ones no more are let
// in than
//
//	ratio × first attempts of the last ten seconds + 10
//
// Clients that keep a budget of their own (a tenth of what succeeds, here; a fifth in
// Finagle and Envoy) stay below it. Those that keep none are held to it, each layer of
// services on its own account: three layers that each make three attempts multiply to
// 27, and with this budget to 1.2³ = 1.7.
const (
	shareSlots = 10
	shareSlot  = time.Second
	shareFree  = 10
)

type share struct {
	firsts, extras window.Counter
}

func newShare() share {
	return share{window.New(shareSlots + 1), window.New(shareSlots + 1)}
}

func (s *share) first(now time.Duration) { s.firsts.Add(window.Tick(now, shareSlot), 1) }

// spend tells whether another attempt that is not a first one may come in, and
// counts it if so.
func (s *share) spend(now time.Duration, ratio float64) bool {
	tick := window.Tick(now, shareSlot)
	allowed := ratio*float64(s.firsts.Sum(tick, shareSlots)) + shareFree
	if float64(s.extras.Sum(tick, shareSlots)+1) > allowed {
		return false
	}
	s.extras.Add(tick, 1)
	return true
}
