package demo

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// slowP99 is the p99 from which on bars are yellow.
const slowP99 = 10 * tailMedian

func (tailScenario) heading(s setting, p phase, seconds float64) string {
	slow := fmt.Sprintf("%v %% of the requests are slow", round(100*s.Tail, 2))
	switch p {
	case before:
		return fmt.Sprintf("%s; all will be in %.1f s", slow, seconds)
	case during:
		return fmt.Sprintf("EVERYTHING TAKES %d TIMES AS LONG ", tailFactor)
	case after:
		return fmt.Sprintf("everything was slow until %.1f s ago", seconds)
	}
	return slow
}

func (tailScenario) legend(s snapshot) [2]string {
	return [2]string{
		fmt.Sprintf("p99:   of the last 3 s, log scale %v to %v; yellow: > %v, red: calls fail",
			tailMedian/2, max(s.setting.Timeout, slowMedian), slowP99),
		fmt.Sprintf("extra: requests beyond the first of each call; %c is one for every call", term.Blocks.Highest()),
	}
}

func (tailScenario) status(s snapshot, l laneSnapshot) string {
	r, known := l.recentBy(s.now)
	from := s.now - time.Second
	text := fmt.Sprintf("%-11s p50 %5s  p99 %5s ms  extra %+4.0f%%  failed %4d",
		l.name, recentCell(r.p50, known), recentCell(r.p99, known), 100*extraLoad(l.counts, from, s.now), total(l.counts[bad]))
	if n := sum(l.counts[held], from, s.now); n > 0 {
		text += fmt.Sprintf("  held back %d/s", n)
	}
	return text
}

func (tailScenario) bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string) {
	colour, p99 := term.Reset, " " // nothing known yet
	if r, known := l.recentBy(to); known {
		good, failed := rateIn(l.counts[succeeded], from, to), rateIn(l.counts[bad], from, to)
		switch {
		case ratio(failed, good+failed) > muchFails:
			colour = term.Red
		case r.p99 > slowP99:
			colour = term.Yellow
		default:
			colour = term.Green
		}
		p99 = term.Blocks.Of(logShare(r.p99, tailMedian/2, max(s.setting.Timeout, slowMedian)))
	}
	return colour, [2]string{p99, term.Blocks.Of(ratio(rateIn(l.counts[extra], from, to), rateIn(l.counts[begun], from, to)))}
}

// logShare returns where d lies between two times, on a logarithmic scale.
func logShare(d, least, most time.Duration) float64 {
	return math.Log(float64(max(d, least))/float64(least)) / math.Log(float64(most)/float64(least))
}

func (tailScenario) plainHead(s snapshot) string {
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

func (tailScenario) plainLine(s snapshot, from, to time.Duration) (line string) {
	for _, l := range s.lanes {
		r, known := l.recentBy(to)
		line += fmt.Sprintf("  %5s %5s %+4.0f%% %4d", recentCell(r.p50, known), recentCell(r.p99, known),
			100*extraLoad(l.counts, from, to), sum(l.counts[bad], from, to))
	}
	return line
}

func recentCell(d time.Duration, known bool) string {
	switch {
	case !known:
		return "-"
	case d == never:
		return "never"
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
}
