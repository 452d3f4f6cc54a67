package rivals

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/clients"
)

func init() {
	var all []clients.Client
	for _, p := range All() {
		if !p.Reads.Timeouts {
			p.Policy.Timeouts = lull.TimeoutsNever // in a simulation the driver decides
		}
		all = append(all, clients.Client{Name: p.Name, Policy: p.Policy, Partial: p.Budget != Budget{} || p.Jitter != Jitter{} || p.Messages})
	}
	clients.Register(all)
}
