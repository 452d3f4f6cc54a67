package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The texts of figures have about three digits and a unit. page.js has the same functions
// under the same names.

const nbsp = "\u00a0"

// number is a rate or a count: 0.25, 4,321, 12.3 k, 1.2 M.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a < 9.995:
		return trimmed(v, 2)
	case a < 99.95:
		return trimmed(v, 1)
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

// percent is a share: 12.3 %, and 99.98 % near all. Less than all is never 100 %, and more
// than nothing is never 0.
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

// whole is a count in full: 12,345,678.
func whole(v float64) string { return grouped(v) }

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

// upward makes halves round away from zero, as browsers do. Go alone rounds them to the
// even digit.
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
