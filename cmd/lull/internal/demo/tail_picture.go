package demo

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// drawTail is draw for the scenario tail.
func drawTail(s snapshot, columns, rows int) []string {
	set := s.setting
	bars := max(1, min(columns-labelWidth-1, mostBars, int(set.Duration/tick)))
	slice := set.Duration / time.Duration(bars)

	lines := []string{
		tailHeading(s, columns),
		clip(fmt.Sprintf("p99:   of the last 3 s, log scale %v to %v; yellow: > %v, red: calls fail",
			tailMedian/2, max(set.Timeout, slowMedian), muchSlow), columns),
		clip(fmt.Sprintf("extra: requests beyond the first of each call; %c is one for every call", term.Blocks.Highest()), columns),
	}
	for _, l := range s.lanes {
		if rows > pictureRows(len(s.lanes))+len(s.lanes) {
			lines = append(lines, "")
		}
		p99, extra := tailBars(s, l, bars, slice)
		lines = append(lines, tailStatus(s, l, columns), label("p99")+p99+term.Reset, label("extra")+extra+term.Reset)
	}
	return append(lines, label("time")+term.Dim+axis(set, bars, slice, "slow")+term.Reset)
}

// tailHeading says where the run is, and what the backends are doing.
func tailHeading(s snapshot, columns int) string {
	set := s.setting
	text := fmt.Sprintf("lull demo  %.1f of %v s  ", min(s.now, set.Duration).Seconds(), set.Duration.Seconds())
	switch p := s.phase(); {
	case p == lastCalls:
		text += "waiting for the last calls"
	case set.Outage == 0:
		text += fmt.Sprintf("%v %% of the requests are slow", round(100*set.Tail, 2))
	case p == before:
		text += fmt.Sprintf("%v %% of the requests are slow; all will be in %.1f s", round(100*set.Tail, 2), (set.OutageAt - s.now).Seconds())
	case p == after:
		text += fmt.Sprintf("everything was slow until %.1f s ago", (s.now - set.outageEnd()).Seconds())
	default:
		return term.Inverse + clip(text+fmt.Sprintf("EVERYTHING TAKES %d TIMES AS LONG ", tailFactor), columns) + term.Reset
	}
	return term.Bold + clip(text, columns) + term.Reset
}

// tailStatus is the line above a client's bars: the last second.
func tailStatus(s snapshot, l laneSnapshot, columns int) string {
	r, known := l.recentBy(s.now)
	from := s.now - time.Second
	text := fmt.Sprintf("%-11s p50 %5s  p99 %5s ms  extra %+4.0f%%  failed %4d",
		l.name, recentCell(r.p50, known), recentCell(r.p99, known), 100*extraLoad(l.flow, from, s.now), total(l.bad))
	if held := sum(l.held, from, s.now); held > 0 {
		text += fmt.Sprintf("  held back %d/s", held)
	}
	text = clip(text, columns)
	name := min(len(l.name), len(text))
	return term.Bold + text[:name] + term.Reset + text[name:]
}

// tailBars draws the time that has passed: p99 and extra load.
func tailBars(s snapshot, l laneSnapshot, bars int, slice time.Duration) (p99, extra string) {
	for i := range bars {
		from := time.Duration(i) * slice
		to := from + slice
		if to > s.now {
			break
		}
		colour, height := term.Reset, " " // nothing known yet
		if r, known := l.recentBy(to); known {
			good, bad := rateIn(l.good, from, to), rateIn(l.bad, from, to)
			colour = tailColour(r.p99, ratio(bad, good+bad))
			height = term.Blocks.Of(logShare(r.p99, tailMedian/2, max(s.setting.Timeout, slowMedian)))
		}
		p99 += colour + height
		extra += colour + term.Blocks.Of(ratio(rateIn(l.extra, from, to), rateIn(l.begun, from, to)))
	}
	return p99, extra
}

// logShare is where d lies between two times, on a scale by factors.
func logShare(d, least, most time.Duration) float64 {
	return math.Log(float64(max(d, least))/float64(least)) / math.Log(float64(most)/float64(least))
}

// muchSlow is a p99 that is no longer fine.
const muchSlow = 10 * tailMedian

// tailColour says at a glance how the calls of a moment went.
func tailColour(p99 time.Duration, failed float64) string {
	switch {
	case failed > muchFails:
		return term.Red
	case p99 > muchSlow:
		return term.Yellow
	}
	return term.Green
}
