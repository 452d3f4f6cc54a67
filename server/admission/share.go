package admission

import (
	"time"

	"github.com/lullgo/lull/internal/window"
)

// The inbound retry budget. In ten seconds at most so many retries and hedges are let in:
//
//	ratio × first attempts of the last ten seconds + 10
//
// Clients with a budget of their own (a tenth of what succeeds in lull; a fifth in
// Finagle and Envoy) stay below it. It holds clients that have none, at each layer of
// services: three layers that each make three attempts multiply to 27, and with this
// budget to 1.2³ = 1.7.
const (
	shareSlots = 10
	shareSlot  = time.Second
	shareFree  = 10
)

type retryShare struct {
	firsts, extras window.Counter
}

// spend reports whether one more retry or hedge may come in. If so it counts it.
func (s *retryShare) spend(now time.Duration, ratio float64) bool {
	tick := window.Tick(now, shareSlot)
	allowed := ratio*float64(s.firsts.Sum(tick, shareSlots)) + shareFree
	if float64(s.extras.Sum(tick, shareSlots)+1) > allowed {
		return false
	}
	s.extras.Add(tick, 1)
	return true
}
