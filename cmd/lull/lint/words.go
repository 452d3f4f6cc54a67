package lint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	short "github.com/lullgo/lull/internal/pretty"
)

func pretty(d time.Duration) string {
	return choice.Either(d == math.MaxInt64, "for ever", short.Duration(d))
}

// rough is the result of a division, for people: a duration with three digits.
func rough(d time.Duration) string { return pretty(d.Round(figure(d, 1000))) }

// down is d rounded down to two digits; up is rounded up. People would write such values.
func down(d time.Duration) time.Duration { return d - d%figure(d, 100) }

func up(d time.Duration) time.Duration {
	f := figure(d, 100)
	if r := d % f; r != 0 && d <= math.MaxInt64-f {
		return d - r + f
	}
	return d
}

// figure is the last digit of d, if it has one less than limit.
func figure(d, limit time.Duration) time.Duration {
	unit := time.Duration(1)
	for ; d >= limit && limit < math.MaxInt64/10; limit *= 10 {
		unit *= 10
	}
	return unit
}

// percent is a share as in a file: 0.125 is 12.5%.
func percent(share float64) string {
	if share > 1e12 {
		return "more than 10^14%"
	}
	return strconv.FormatFloat(math.Round(share*1e7)/1e5, 'f', -1, 64) + "%"
}

// roughly is the result of a division, for people: a share to a tenth of a percent.
func roughly(share float64) string { return percent(math.Round(share*1e3) / 1e3) }

// number is n with at most three decimals, or with three digits if it is small.
func number(n float64) string {
	if math.IsInf(n, 1) {
		return "more than 10^308"
	}
	if n != 0 && n < 0.1 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	if n >= 1e15 {
		return fmt.Sprintf("%.3g", n)
	}
	return strconv.FormatFloat(math.Round(n*1e3)/1e3, 'f', -1, 64)
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func isBlank(s string) bool { return s == "" }

func times(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

func few(names []string) string {
	if len(names) > shown {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:shown-1], ", "), len(names)-shown+1)
	}
	return list(names)
}

func verb(n int, one, several string) string {
	return choice.Either(n == 1, one, several)
}
