package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// A scale is a vertical axis from Lo at the bottom to Hi at the top, in the units of the
// paths: decimal logarithms if the axis is logarithmic.
type scale struct {
	Lo, Hi float64
	Ticks  []tick
}

// A tick is a labelled place on an axis. At is its share of the axis, from the left or from
// the top.
type tick struct {
	At   float64
	Text string
}

// Percent is At for SVG.
func (t tick) Percent() string { return place(t.At) }

// Anchor keeps the first and the last label of a horizontal axis within it.
func (t tick) Anchor() string {
	switch {
	case t.At < 0.02:
		return "start"
	case t.At > 0.95:
		return "end"
	}
	return "middle"
}

func place(share float64) string { return trimmed(share*100, 3) + "%" }

// round returns the round number k, which is 1, 2, 5 and 10 for 0, 1, 2 and 3.
func round(k int) float64 {
	e := int(math.Floor(float64(k) / 3))
	v, _ := strconv.ParseFloat(fmt.Sprintf("%de%d", [3]int{1, 2, 5}[k-3*e], e), 64)
	return v
}

const smallest, largest = -36, 45

// atLeast returns the k of the least round number that is not below v.
func atLeast(v float64) int {
	k := smallest
	for k < largest && round(k) < v*(1-1e-9) {
		k++
	}
	return k
}

// linear returns an axis from zero to at least high, in at most six round steps. The axis of
// a count has no ticks between whole numbers.
func linear(high float64, counted bool, text func(float64) string) scale {
	if !(high > 0) {
		high = 1
	}
	step := round(atLeast(high / 5))
	if counted {
		step = max(step, 1)
	}
	n := math.Ceil(high/step - 1e-9)
	s := scale{Hi: n * step}
	for i := range int(n) + 1 {
		s.Ticks = append(s.Ticks, tick{1 - float64(i)/n, text(float64(i) * step)})
	}
	return s
}

// logarithmic returns an axis between round numbers around low and high, two logarithms.
func logarithmic(low, high float64, text func(float64) string) scale {
	from, to := atLeast(math.Pow(10, low)), atLeast(math.Pow(10, high))
	if round(from) > math.Pow(10, low)*(1+1e-9) {
		from--
	}
	if from >= to {
		to = from + 1
	}
	s := scale{Lo: math.Log10(round(from)), Hi: math.Log10(round(to))}
	for k := from; k <= to; k++ {
		if to-from > 6 && k%3 != 0 {
			continue // powers of ten only
		}
		s.Ticks = append(s.Ticks, tick{(s.Hi - math.Log10(round(k))) / (s.Hi - s.Lo), text(round(k))})
	}
	return s
}

func shares() scale { return linear(1, false, percent) }

// quarters are the steps of longer axes in seconds or minutes.
var quarters = []float64{10, 15, 20, 30, 60, 120, 300, 600}

// timeTicks returns a horizontal axis of time with at most six labels, in a unit that fits.
func timeTicks(horizon time.Duration) []tick {
	if horizon <= 0 {
		return nil
	}
	all := horizon.Seconds()
	unit, name := 1.0, "s"
	switch {
	case all < 1:
		unit, name = 1e-3, "ms"
	case all > 3*3600:
		unit, name = 3600, "h"
	case all > 600:
		unit, name = 60, "min"
	}
	step := round(atLeast(all / unit / 5))
	if i := slices.IndexFunc(quarters, func(q float64) bool { return q >= all/unit/5 }); i >= 0 && step >= 10 && unit >= 1 && unit < 3600 {
		step = quarters[i]
	}
	var ticks []tick
	for i := 0; float64(i)*step*unit <= all*(1+1e-9); i++ {
		v := float64(i) * step
		ticks = append(ticks, tick{v * unit / all, trimmed(v, 6) + nbsp + name})
	}
	return ticks
}
