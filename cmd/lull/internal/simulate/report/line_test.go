package report

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var none = math.NaN()

func TestTrace(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
		points int
	}{
		{nil, "", 0},
		{[]float64{none, none}, "", 0},
		{[]float64{1, 2.5, 3}, "M0 1 1 2.5 2 3", 3},
		{[]float64{0, 0, 0, 0, 7}, "M0 0 3 0 4 7", 3}, // a straight line needs only its ends
		{[]float64{1, none, 2, none, none, 3, 4}, "M0 1h0M2 2h0M5 3 6 4", 4},
		{[]float64{123456, 0.00012345}, "M0 123500 1 0.0001234", 2},
	} {
		got, n := trace(thin(c.values, 600))
		if got != c.want || n != c.points {
			t.Errorf("%v: %q with %d points, want %q with %d", c.values, got, n, c.want, c.points)
		}
	}
}

func TestThinKeepsPeaks(t *testing.T) {
	values := make([]float64, 10_007)
	for i := range values {
		values[i] = 100 + 10*math.Sin(float64(i)/50)
	}
	values[4321], values[9001] = 5000, -7
	for i := 6000; i < 6500; i++ {
		values[i] = none
	}
	points := thin(values, 600)
	if len(points) > 600 {
		t.Errorf("%d points", len(points))
	}
	for _, want := range []point{{4321, 5000}, {9001, -7}} {
		if !slices.Contains(points, want) {
			t.Errorf("%v is gone", want)
		}
	}
	last := -1
	gap := false
	for _, p := range points {
		if p.x <= last {
			t.Fatalf("step %d after %d", p.x, last)
		}
		last = p.x
		gap = gap || math.IsNaN(p.y)
		if !math.IsNaN(p.y) && p.y != values[p.x] {
			t.Fatalf("%v is not in the series", p)
		}
	}
	if !gap {
		t.Error("the gap is closed")
	}
}

func TestMiddle(t *testing.T) {
	median, low, high := medianOf([][]float64{{1, 5, none}, {2, 3}, {9, none, none, 4}, {8, 4, math.Inf(1)}})
	for name, c := range map[string]struct{ got, want []float64 }{
		"median": {median, []float64{2, 4, none, 4}},
		"low":    {low, []float64{1, 3, none, 4}},
		"high":   {high, []float64{9, 5, none, 4}},
	} {
		if !slices.EqualFunc(c.got, c.want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
}

func TestBand(t *testing.T) {
	low, high := []float64{1, 2, none, 3}, []float64{4, 5, none, 6}
	if got, want := between(thin(low, 600), thin(high, 600)), "M0 1 1 2L1 5 0 4ZM3 3L3 6Z"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// The band of a thinned series covers every point of it.
	var l, h []float64
	for i := range 5000 {
		l, h = append(l, float64(i*7919%100)), append(h, 100+float64(i*104729%100))
	}
	lows, highs := envelope(l, 100, math.Min), envelope(h, 100, math.Max)
	for i := 1; i < len(lows); i += 2 {
		for x := lows[i-1].x; x <= lows[i].x; x++ {
			if l[x] < lows[i].y || h[x] > highs[i].y {
				t.Fatalf("step %d lies outside", x)
			}
		}
	}
}

// FuzzTrace: the path of any series has its values, rounded, at the steps of its points, and
// straight lines between them.
func FuzzTrace(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var values []float64
		for len(data) >= 8 && len(values) < 500 {
			v := math.Float64frombits(binary.LittleEndian.Uint64(data))
			if math.IsInf(v, 0) || math.Abs(v) > 1e15 || math.Abs(v) < 1e-9 {
				v = math.Trunc(math.Mod(v, 8)) // some are equal
			}
			values, data = append(values, v), data[8:]
		}
		path, _ := trace(thin(values, 600))
		covered := make([]bool, len(values))
		for piece := range strings.SplitSeq(path, "M") {
			if piece == "" {
				continue
			}
			fields := strings.Fields(strings.TrimSuffix(piece, "h0"))
			lastX, lastY := -1, 0.0
			for i := 0; i+1 < len(fields); i += 2 {
				x, errX := strconv.Atoi(fields[i])
				y, errY := strconv.ParseFloat(fields[i+1], 64)
				if errX != nil || errY != nil || x >= len(values) || x <= lastX {
					t.Fatalf("%v: path %q", values, path)
				}
				if y != fourDigits(values[x]) {
					t.Fatalf("step %d is %g, path says %g", x, values[x], y)
				}
				for between := lastX + 1; lastX >= 0 && between < x; between++ {
					if fourDigits(values[between]) != y || lastY != y {
						t.Fatalf("step %d (%g) is left out of %q", between, values[between], path)
					}
					covered[between] = true
				}
				covered[x] = true
				lastX, lastY = x, y
			}
		}
		for i, v := range values {
			if covered[i] == math.IsNaN(v) {
				t.Fatalf("step %d is %g, covered: %t", i, v, covered[i])
			}
		}
	})
}
