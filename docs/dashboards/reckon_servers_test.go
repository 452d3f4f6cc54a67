//go:build servers

package dashboards

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// key is a metric and its labels, as "name|k=v|k=v" in the order in which they were given.
func key(name string, labels ...string) string {
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		b.WriteString("|" + labels[i] + "=" + labels[i+1])
	}
	return b.String()
}

func label(series, name string) string {
	for _, part := range strings.Split(series, "|")[1:] {
		if k, v, _ := strings.Cut(part, "="); k == name {
			return v
		}
	}
	return ""
}

// snapshot is all that was counted when Prometheus came for it.
type snapshot struct {
	at     float64 // as Prometheus has it
	series map[string]float64
}

// reckoner computes what Prometheus should answer, at one time, with windows of the given length.
type reckoner struct {
	snapshots []snapshot
	at, over  float64
}

// matches is name, or name and labels with values.
func matches(series, name string, where []string) bool {
	if n, _, _ := strings.Cut(series, "|"); n != name {
		return false
	}
	for i := 0; i < len(where); i += 2 {
		got := label(series, where[i])
		if prefix, ok := strings.CutSuffix(where[i+1], "*"); ok && strings.HasPrefix(got, prefix) {
			continue
		}
		if got != where[i+1] {
			return false
		}
	}
	return true
}

// increase returns what PromQL's increase gives for one series: its growth between the first
// and the last sample of the window, extrapolated to the window's ends where those are less
// than 1.1 times the mean distance of samples away, else by half of that; but not to where
// it would be below zero. (promql/functions.go, extrapolatedRate)
func (r reckoner) increase(series string) (float64, bool) {
	var all []point
	from := millis(r.at - r.over) // a sample of exactly then does not count, and the difference of two floats is not exact
	for _, s := range r.snapshots {
		if v, ok := s.series[series]; ok && s.at > from && s.at <= r.at {
			all = append(all, point{s.at, v})
		}
	}
	if len(all) < 2 {
		return 0, false
	}
	first, last := all[0], all[len(all)-1]
	grew, sampled := last.V-first.V, last.T-first.T
	mean := sampled / float64(len(all)-1)
	toZero := math.Inf(1)
	if grew > 0 {
		toZero = sampled * first.V / grew
	}
	near := func(to float64) float64 {
		if to < 1.1*mean {
			return to
		}
		return mean / 2
	}
	toStart := min(near(first.T-(r.at-r.over)), toZero)
	return grew * (sampled + toStart + near(r.at-last.T)) / sampled, true
}

// group is sum by (labels), of increase or rate.
type group map[string]float64

func (r reckoner) sum(by []string, scale float64, name string, where ...string) group {
	g := make(group)
	for series := range r.snapshots[len(r.snapshots)-1].series { // none ever goes
		if !matches(series, name, where) {
			continue
		}
		if v, ok := r.increase(series); ok {
			g[groupKey(series, by)] += v * scale
		}
	}
	return g
}

func (r reckoner) rate(by []string, name string, where ...string) group {
	return r.sum(by, 1/r.over, name, where...)
}

func groupKey(series string, by []string) string {
	var parts []string
	for _, l := range by {
		parts = append(parts, label(series, l))
	}
	return strings.Join(parts, " ")
}

// nowBy sums the values of the latest snapshot.
func (r reckoner) nowBy(by []string, name string, where ...string) group {
	g := make(group)
	i := slices.IndexFunc(r.snapshots, func(s snapshot) bool { return s.at > r.at })
	if i < 0 {
		i = len(r.snapshots)
	}
	for k, v := range r.snapshots[i-1].series {
		if matches(k, name, where) {
			g[groupKey(k, by)] += v
		}
	}
	return g
}

func (g group) over(h group) group {
	out := make(group)
	for k, v := range g {
		if w, ok := h[k]; ok {
			out[k] = v / w
		}
	}
	return out
}

func (g group) plus(h group) group {
	for k, v := range h {
		g[k] += v
	}
	return g
}

// quantile is PromQL's histogram_quantile: linear within the bucket.
func (g group) quantile(q float64) group {
	type bucket struct{ le, n float64 }
	var all []bucket
	for le, n := range g {
		f, _ := strconv.ParseFloat(le, 64)
		all = append(all, bucket{f, n})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].le < all[j].le })
	if len(all) < 2 {
		return group{}
	}
	for i := range all[1:] { // each bucket is extrapolated by itself
		all[i+1].n = max(all[i+1].n, all[i].n)
	}
	total := all[len(all)-1].n
	if total == 0 {
		return group{"": math.NaN()}
	}
	rank := q * total
	i := sort.Search(len(all)-1, func(i int) bool { return all[i].n >= rank })
	if i == len(all)-1 {
		return group{"": all[i-1].le}
	}
	low, below := 0.0, 0.0
	if i > 0 {
		low, below = all[i-1].le, all[i-1].n
	}
	return group{"": low + (all[i].le-low)*(rank-below)/(all[i].n-below)}
}
