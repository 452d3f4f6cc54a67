package demo

import (
	"fmt"
	"strings"
	"time"
)

// tailPlainHead is what stands above the lines of plain in the scenario tail.
func tailPlainHead(s snapshot) string {
	var b strings.Builder
	b.WriteString("Each second. p50, p99: ms within which half of the calls succeeded, and 99 % of\n" +
		"those of the last 3 s; never: fewer did. extra: requests beyond one for a call.\n" +
		"fail: calls that failed.\n")
	fmt.Fprintf(&b, "%7s", "")
	for _, l := range s.lanes {
		fmt.Fprintf(&b, "  %21s", l.name)
	}
	fmt.Fprintf(&b, "\n%7s", "")
	for range s.lanes {
		b.WriteString("    p50   p99 extra fail")
	}
	return b.String() + "\n"
}

// tailPlainLine is what happened from one time to another.
func tailPlainLine(s snapshot, from, to time.Duration) string {
	var b strings.Builder
	for _, l := range s.lanes {
		r, known := l.recentBy(to)
		fmt.Fprintf(&b, "  %5s %5s %+4.0f%% %4d", recentCell(r.p50, known), recentCell(r.p99, known),
			100*extraLoad(l.flow, from, to), sum(l.bad, from, to))
	}
	return b.String()
}

// recentCell is a recent time in milliseconds.
func recentCell(d time.Duration, known bool) string {
	switch {
	case !known:
		return "-"
	case d == never:
		return "never"
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
}
