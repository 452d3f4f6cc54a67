package simulate

import (
	"reflect"
	"slices"

	"github.com/lullgo/lull/lab/sim"
)

// linked reports whether a fleet of s keeps connections.
func linked(s sim.Scenario) bool {
	return slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.Link.On })
}

// linkInWords describes a fleet whose processes keep connections.
func linkInWords(f sim.Fleet) parts {
	phrases := parts{each(f.Processes, "1 process keeps a connection", "processes keep a connection each") + " to " + f.Calls}
	phrases.add(!reflect.ValueOf(f.Arrivals).IsZero(), "and lose some: %s", arrivalsInWords(f.Arrivals))
	phrases.add(f.Link.From != "", "they run on the hosts of %s", f.Link.From)
	buffered := "while it is down, %s bytes of messages a second wait"
	if f.Link.Buffer > 0 {
		buffered += ", up to " + grouped(float64(f.Link.Buffer))
	}
	phrases.add(f.Link.PerSecond > 0, buffered, grouped(float64(f.Link.PerSecond)))
	phrases.add(f.Redial, "package redial decides when to dial")
	return phrases
}

var (
	lostColumn = column{"conns", "lost", func(m sim.Summary) string {
		return grouped(float64(meanOf(m, func(r sim.Result) float64 { return float64(r.Totals.Disconnects) })))
	}, "conns lost", "connections that were lost"}
	memoryColumn = column{"out of", "memory", func(m sim.Summary) string {
		return grouped(float64(meanOf(m, func(r sim.Result) float64 { return float64(r.Totals.OutOfMemory) })))
	}, "out of memory", "hosts that crashed because their memory was full"}
)
