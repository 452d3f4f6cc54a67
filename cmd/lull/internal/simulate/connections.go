package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/lab/sim"
)

// pooled reports whether connections are simulated in s.
func pooled(s sim.Scenario) bool {
	on := func(n sim.Network) bool { return n.Pool.On }
	return slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return on(f.Network) }) ||
		slices.ContainsFunc(s.Topics, func(t sim.Topic) bool { return on(t.Consumers.Network) }) ||
		slices.ContainsFunc(s.Services, func(v sim.Service) bool {
			return slices.ContainsFunc(v.Calls, func(h sim.Hop) bool { return on(h.Network) })
		})
}

func poolInWords(p sim.Pool) string {
	size := "any number of connections"
	if p.Size > 0 {
		size = "up to " + each(p.Size, "one connection", "connections")
	}
	phrases := parts{"a pool (" + p.Kind.String() + ") of " + size}
	phrases.add(p.Open > 0, "%s at first", grouped(float64(p.Open)))
	phrases.add(p.Idle < 0, "each closed after its attempt")
	phrases.add(p.Idle > 0, "%s kept without work", grouped(float64(p.Idle)))
	phrases.add(p.IdleFor > 0, "each for %s without work", inWords(p.IdleFor))
	phrases.add(p.RoundTrips > 1, "%d round trips for a new one", p.RoundTrips)
	phrases.add(somewhat(p.Handshake), "%s of the client's own work for it", distributionInWords(p.Handshake))
	phrases.add(p.Ports > 0, "%s local ports", grouped(float64(p.Ports)))
	return strings.Join(phrases, ", ")
}

func connectionsInWords(c sim.Connections) string {
	var phrases parts
	phrases.add(c.Limit > 0, "%s at most", grouped(float64(c.Limit)))
	phrases.add(c.Refuse, "others are refused")
	phrases.add(somewhat(c.Handshake), "%s of a worker for each", distributionInWords(c.Handshake))
	beyond := "refused"
	if c.Drop {
		beyond = "not answered"
	}
	phrases.add(c.Limit > 0 && !c.Refuse || somewhat(c.Handshake), "a backlog of %s, beyond that %s", grouped(float64(cmp.Or(c.Backlog, 4096))), beyond)
	phrases.add(c.IdleFor > 0, "closed after %s without work", inWords(c.IdleFor))
	if len(phrases) == 0 {
		return ""
	}
	return "connections: " + strings.Join(phrases, ", ")
}

// somewhat reports whether d takes any time.
func somewhat(d sim.Distribution) bool { return d.Kind != sim.Fixed || d.Mean > 0 }

var dialsColumn = column{"dials", "per call", func(m sim.Summary) string {
	calls := total(m, func(r sim.Result) int64 { return r.Totals.Calls })
	if calls == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(total(m, func(r sim.Result) int64 { return r.Connections.Dials }))/float64(calls))
}, "dials", "connections that were dialled, for each call"}
