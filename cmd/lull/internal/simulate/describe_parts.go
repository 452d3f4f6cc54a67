package simulate

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

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

func heapInWords(h sim.Heap) string {
	phrases := parts{bytesInWords(int64(h.Size)) + " of memory"}
	phrases.add(h.Live > 0, "%s in use at rest", bytesInWords(int64(h.Live)))
	phrases.add(h.PerAttempt > 0, "%s for each attempt in hand", bytesInWords(int64(h.PerAttempt)))
	phrases.add(h.PerConnection > 0, "%s for each connection", bytesInWords(int64(h.PerConnection)))
	phrases.add(h.Garbage > 0, "%s of garbage an attempt", bytesInWords(int64(h.Garbage)))
	phrases.add(h.Pause > 0, "a collection stops all work for %s a million bytes in use", inWords(h.Pause))
	phrases.add(true, "a crash and %s to restart when it is full", inWords(cmp.Or(h.Restart, 10*time.Second)))
	return strings.Join(phrases, ", ")
}

func cacheInWords(c sim.Cache) string {
	phrases := parts{fmt.Sprintf("unless a cache has it (%s keys", grouped(float64(c.Keys)))}
	phrases.add(c.Skew > 0, "popularity with exponent %s", trimmed(c.Skew, 3))
	phrases.add(c.Size > 0, "room for %s", grouped(float64(c.Size)))
	phrases.add(c.For > 0, "each for %s", inWords(c.For))
	phrases.add(c.Cold, "empty at first")
	return strings.Join(phrases, ", ") + ")"
}

func endpointsInWords(e sim.Endpoints) string {
	if e.Config.Off {
		return "processes choose the less busy of two hosts"
	}
	return "processes choose among hosts, and leave sick ones out"
}
