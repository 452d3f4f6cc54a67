package sim

import (
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// Events of the metastable stall at 80 % of the capacity, where naive retries keep
// the service down: timeouts, a full queue, and most work in vain.
func BenchmarkMetastable(b *testing.B) {
	p := retrying(4, 100*millisecond)
	p.Backoff.Jitter = 0 // full
	s := metastableStall()
	b.ReportAllocs()
	var events int64
	for i := range b.N {
		r := must.Have(Run(b.Context(), s, Contender{Policy: p}, Options{Seed: uint64(i)}))
		events += r.Totals.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(0, "ns/op")
}

// Events of three times the capacity before admission control, most of which are
// refusals.
func BenchmarkAdmission(b *testing.B) {
	s := overloaded(true)
	c := naive(4, 100*millisecond)
	b.ReportAllocs()
	var events int64
	for i := range b.N {
		r := must.Have(Run(b.Context(), s, c, Options{Seed: uint64(i)}))
		events += r.Totals.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(0, "ns/op")
}
