package simulate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

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
