package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The texts of figures have about three digits and a unit. page.js has the same functions under the same names.

const nbsp = "\u00a0"

// number is a rate or a count: 0.25, 4,321, 12.3 k, 1.2 M.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a < 99.95:
		return three(v)
	case a < 9999.5:
		return grouped(v)
	case a < 999950:
		return trimmed(v/1e3, 1) + nbsp + "k"
	case a < 999.95e6:
		return trimmed(v/1e6, 1) + nbsp + "M"
	default:
		return trimmed(v/1e9, 1) + nbsp + "G"
	}
}

// seconds is a duration: 250 µs, 12.5 ms, 1.23 s, 432 s, 20 min 5 s, 3 h 20 min.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a == 0:
		return "0" + nbsp + "s"
	case a < 0.9995e-3:
		return three(v*1e6) + nbsp + "µs"
	case a < 0.9995:
		return three(v*1e3) + nbsp + "ms"
	case a < 999.5:
		return three(v) + nbsp + "s"
	case a < 7200:
		return pair(v, 60, "min", "s")
	default:
		return pair(v/60, 60, "h", "min")
	}
}

// percent is a share: 12.3 %, and 99.98 % near all. Less than all is never 100 %, and more than nothing is never 0.
func percent(v float64) string {
	p := v * 100
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 1 && p > 99.985:
		return ">" + nbsp + "99.98" + nbsp + "%"
	case v > 0 && p < 0.005:
		return "<" + nbsp + "0.01" + nbsp + "%"
	case p >= 99 || p < 1:
		return trimmed(p, 2) + nbsp + "%"
	default:
		return trimmed(p, 1) + nbsp + "%"
	}
}

func span(d time.Duration) string { return seconds(d.Seconds()) }

func three(v float64) string {
	switch a := math.Abs(v); {
	case a < 9.995:
		return trimmed(v, 2)
	case a < 99.95:
		return trimmed(v, 1)
	default:
		return trimmed(v, 0)
	}
}

func pair(v, per float64, large, small string) string {
	n := math.Floor(v + 0.5)
	text := fmt.Sprintf("%.0f%s%s", math.Floor(n/per), nbsp, large)
	if rest := math.Mod(n, per); rest != 0 {
		text += fmt.Sprintf("%s%.0f%s%s", nbsp, rest, nbsp, small)
	}
	return text
}

// upward makes halves round away from zero, as browsers do. Go alone rounds them to the even digit.
func upward(v float64) float64 { return v * (1 + 1e-12) }

func trimmed(v float64, decimals int) string {
	s := strconv.FormatFloat(upward(v), 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// grouped is a count in full: 12,345,678.
func grouped(v float64) string {
	s := strconv.FormatFloat(math.Abs(upward(v)), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 && s != "0" {
		return "-" + s
	}
	return s
}

// A scale is a vertical axis from Lo at the bottom to Hi at the top: decimal logarithms if it is logarithmic.
type scale struct {
	Lo, Hi float64
	Ticks  []tick
}

// A tick is a labelled place on an axis. At is its share of the axis, from the left or from the top.
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

// linear returns an axis from zero to at least high, in at most six round steps; of a count, in whole ones.
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
