package term

import (
	"math"
	"strings"
)

// Bars are the heights of a bar, the lowest first.
type Bars []rune

// The bars of terminals that know Unicode, and of those that may not.
var (
	Blocks = Bars("▁▂▃▄▅▆▇█")
	ASCII  = Bars(" .:-=+*#")
)

// BarsFor returns the bars that the locale can show. Without any locale, as on Windows,
// it is taken to be a modern one.
func BarsFor(getenv func(string) string) Bars {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			if strings.Contains(v, "utf-8") || strings.Contains(v, "utf8") {
				return Blocks
			}
			return ASCII
		}
	}
	return Blocks
}

func (b Bars) Highest() rune { return b[len(b)-1] }

// Of returns the bar of a share, 0 to 1.
func (b Bars) Of(share float64) string {
	i := int(share * float64(len(b)))
	return string(b[min(max(i, 0), len(b)-1)])
}

// Line draws values. Zero is the lowest bar, and nothing else is; what is above top has
// the highest.
func (b Bars) Line(values []float64, top float64) string {
	line := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if v > 0 && top > 0 {
			level = min(max(int(math.Round(v/top*float64(len(b)-1))), 1), len(b)-1)
		}
		line[i] = b[level]
	}
	return string(line)
}
