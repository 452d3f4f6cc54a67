package report

import (
	"math"
	"slices"
	"strconv"
)

// A point of a line: the number of its step, and its value. NaN is a gap.
type point struct {
	x int
	y float64
}

// medianOf returns the median and the extremes of the seeds at each step. A seed had that median, the lower of two: where some seeds
// recovered and some did not, a mean would show what none did.
func medianOf(seeds [][]float64) (median, low, high []float64) {
	n := 0
	for _, s := range seeds {
		n = max(n, len(s))
	}
	median, low, high = make([]float64, n), make([]float64, n), make([]float64, n)
	values := make([]float64, 0, len(seeds))
	for i := range n {
		values = values[:0]
		for _, s := range seeds {
			if i < len(s) && !math.IsNaN(s[i]) && !math.IsInf(s[i], 0) {
				values = append(values, s[i])
			}
		}
		if len(values) == 0 {
			median[i], low[i], high[i] = math.NaN(), math.NaN(), math.NaN()
			continue
		}
		slices.Sort(values)
		median[i], low[i], high[i] = values[(len(values)-1)/2], values[0], values[len(values)-1]
	}
	return median, low, high
}

// thin returns at most limit points: the extremes of each interval, at their own steps, so that no peak is lost.
func thin(values []float64, limit int) []point {
	n := len(values)
	var points []point
	if n <= limit {
		for i, v := range values {
			points = append(points, point{i, v})
		}
		return points
	}
	intervals := limit / 2
	for k := range intervals {
		low, high := -1, -1
		from, to := k*n/intervals, (k+1)*n/intervals
		for i := from; i < to; i++ {
			if math.IsNaN(values[i]) {
				continue
			}
			if low < 0 || values[i] < values[low] {
				low = i
			}
			if high < 0 || values[i] > values[high] {
				high = i
			}
		}
		switch {
		case low < 0:
			points = append(points, point{from, math.NaN()})
		case low == high:
			points = append(points, point{low, values[low]})
		default:
			points = append(points, point{min(low, high), values[min(low, high)]}, point{max(low, high), values[max(low, high)]})
		}
	}
	return points
}

// envelope returns f (the least or the greatest) of each interval, at its first and its last step.
func envelope(values []float64, limit int, f func(a, b float64) float64) []point {
	n := len(values)
	if n <= limit {
		return thin(values, limit)
	}
	intervals := limit / 2
	var points []point
	for k := range intervals {
		from, to := k*n/intervals, (k+1)*n/intervals
		v := math.NaN()
		for _, w := range values[from:to] {
			if math.IsNaN(v) || !math.IsNaN(w) && f(v, w) == w {
				v = w
			}
		}
		points = append(points, point{from, v}, point{to - 1, v})
	}
	return points
}

// pieces splits points at gaps, rounds them to four digits, and leaves out those between two of the same value.
func pieces(points []point) [][]point {
	var all [][]point
	var piece []point
	flush := func() {
		if len(piece) > 0 {
			all = append(all, piece)
		}
		piece = nil
	}
	for _, p := range points {
		if math.IsNaN(p.y) {
			flush()
			continue
		}
		p.y = fourDigits(p.y)
		if k := len(piece); k >= 2 && piece[k-1].y == p.y && piece[k-2].y == p.y {
			piece[k-1].x = p.x
			continue
		}
		piece = append(piece, p)
	}
	flush()
	return all
}

func fourDigits(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r + 0 // never -0
}

// trace returns a line as an SVG path, and the number of its points. A single point is drawn as a dot, by a line to itself.
func trace(points []point) (path string, n int) {
	var b []byte
	for _, piece := range pieces(points) {
		b = append(b, 'M')
		b = appendPoints(b, piece)
		if len(piece) == 1 {
			b = append(b, "h0"...)
		}
		n += len(piece)
	}
	return string(b), n
}

// between returns the area between two lines with gaps at the same places.
func between(low, high []point) string {
	lows, highs := pieces(low), pieces(high)
	if len(lows) != len(highs) {
		return ""
	}
	var b []byte
	for i, piece := range lows {
		b = append(b, 'M')
		b = appendPoints(b, piece)
		b = append(b, 'L')
		slices.Reverse(highs[i])
		b = appendPoints(b, highs[i])
		b = append(b, 'Z')
	}
	return string(b)
}

func appendPoints(b []byte, points []point) []byte {
	for i, p := range points {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(p.x), 10)
		b = append(b, ' ')
		b = strconv.AppendFloat(b, p.y, 'f', -1, 64)
	}
	return b
}
