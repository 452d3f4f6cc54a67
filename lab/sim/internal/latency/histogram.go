// Package latency counts durations so that any percentile of them can be asked for
// afterwards. It is a log-linear histogram, as HDR histograms are: each doubling of the
// duration is divided into 128 equal bars, below 256 ns each nanosecond has its own. A bar is
// so at most 1/128 (0.78 %) as wide as what it counts.
//
// Record is 3 ns and allocates nothing once its doubling was seen. An empty histogram is
// 72 bytes, each doubling that was seen adds 1 KiB; from 1 ms to 1 s there are ten. Quantile is
// 0.1 to 0.6 µs.
package latency

import (
	"math"
	"math/bits"
	"time"
)

// A Histogram counts durations from 0 to the greatest there is. The zero Histogram
// is empty and ready. Its figures do not depend on the order of the durations. It is not
// safe for concurrent use, and must not be copied once it was used: the copies would share
// bars.
type Histogram struct {
	rows        []*row // of the doublings first, first+1, ...; nil if never seen
	first       int
	count       int64
	upper, sum  uint64 // the sum of all, 128 bits
	least, most time.Duration
}

// A row is one doubling, from 128<<(n-1) up for the nth; row 0 is 0 to 127 ns.
type row [128]int64

// Record counts d. A negative d counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	at, bar := place(d)
	if i := at - h.first; uint(i) < uint(len(h.rows)) && h.rows[i] != nil {
		h.rows[i][bar]++
	} else {
		h.row(at)[bar]++
	}
	if h.count == 0 {
		h.least = d
	}
	h.least, h.most = min(h.least, d), max(h.most, d)
	h.count++
	var carry uint64
	h.sum, carry = bits.Add64(h.sum, uint64(d), 0)
	h.upper += carry
}

func (h *Histogram) Count() int64 { return h.count }

// Mean is the mean of all, to the nearest nanosecond; 0 if there are none. It is
// computed from their exact sum.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	n := uint64(h.count)
	mean, rest := bits.Div64(h.upper, h.sum, n)
	if rest >= n-rest {
		mean++
	}
	return time.Duration(mean)
}

// Max is the greatest of all, exactly; 0 if there are none.
func (h *Histogram) Max() time.Duration { return h.most }

// Quantile is a duration that at least a share of q of all do not exceed: the
// upper end of the bar in which the share is reached, or Max if that is less. So
// it is never below the exact quantile (the least recorded duration of which that
// is true), and at most 0.8 % above it. Below 256 ns it is exact, and so it is for
// q >= 1, which is Max, and q <= 0 (or not a number), which is the least of all. It is 0 if
// there are none.
//
// q times the count is taken to 15 digits, so that 0.07 of 100 are 7, although the
// float64 next to 0.07 is above it.
func (h *Histogram) Quantile(q float64) time.Duration {
	if !(q > 0) {
		return h.least
	}
	if rank := h.rank(q); rank < h.count {
		for i, r := range h.rows {
			if r == nil {
				continue
			}
			for bar, n := range r {
				if rank -= n; rank <= 0 {
					return min(end(h.first+i, bar), h.most)
				}
			}
		}
	}
	return h.most
}

// rank is the least number of cases that are a share of q.
func (h *Histogram) rank(q float64) int64 {
	n := float64(h.count)
	wanted := math.Ceil(float64(float64(q*n) * (1 - 0x1p-50)))
	if wanted >= n {
		return h.count
	}
	return max(int64(wanted), 1)
}

// place is the row and bar of d.
func place(d time.Duration) (at, bar int) {
	at = max(bits.Len64(uint64(d))-7, 0)
	return at, int(d>>max(at-1, 0)) & 127
}

// end is the greatest duration that place puts there.
func end(at, bar int) time.Duration {
	if at == 0 {
		return time.Duration(bar)
	}
	return time.Duration(uint64(128+bar+1)<<(at-1) - 1)
}

// row is the row at, made if need be.
func (h *Histogram) row(at int) *row {
	if len(h.rows) == 0 {
		h.first = at
	}
	if at < h.first {
		h.rows = append(make([]*row, h.first-at), h.rows...)
		h.first = at
	}
	for at-h.first >= len(h.rows) {
		h.rows = append(h.rows, nil)
	}
	r := &h.rows[at-h.first]
	if *r == nil {
		*r = new(row)
	}
	return *r
}
