package simulate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// inWords returns a duration with two or three digits and a unit.
func inWords(d time.Duration) string {
	s := d.Seconds()
	switch {
	case d == 0:
		return "0 s"
	case d < 0:
		return "-" + inWords(-d)
	case d < time.Millisecond:
		return trimmed(s*1e6, 3) + " µs"
	case d < time.Second:
		return trimmed(s*1e3, 3) + " ms"
	case s < 600:
		return trimmed(s, 3) + " s"
	case s < 3*3600:
		return trimmed(s/60, 3) + " min"
	}
	return trimmed(s/3600, 3) + " h"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// trimmed returns v with that many digits, but no fewer than its whole part has, and without zeros at the end.
func trimmed(v float64, digits int) string {
	whole := 1
	if a := math.Abs(v); a >= 10 {
		whole = int(math.Log10(a)) + 1
	}
	text := strconv.FormatFloat(v, 'f', max(0, digits-whole), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// grouped returns a number with commas between its thousands.
func grouped(v float64) string {
	if v != math.Trunc(v) || math.Abs(v) >= 1e15 {
		return trimmed(v, 6)
	}
	digits := strconv.FormatInt(int64(math.Abs(v)), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}

// abbreviated returns a number with at most three digits: 950, 12.3k, 4.1M.
func abbreviated(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= unit.size*0.9995 {
			return trimmed(v/unit.size, 3) + unit.name
		}
	}
	return trimmed(v, 3)
}

// percentOf returns a share as a percentage. It reads 0 or 100 only if the share is exactly nothing or all.
func percentOf(share float64) string {
	switch {
	case math.IsNaN(share):
		return "-"
	case share == 0 || share == 1:
		return fmt.Sprintf("%.0f%%", 100*share)
	case share >= 0.9995 && share < 1:
		return fmt.Sprintf("%.2f%%", math.Min(100*share, 99.99))
	case share > 0 && share < 0.0005:
		return fmt.Sprintf("%.2f%%", math.Max(100*share, 0.01))
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}
