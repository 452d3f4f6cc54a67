package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

const (
	leastColumns = 80
	mostBars     = 160
	labelWidth   = 9 // of what stands to the left of the bars
)

// picture draws the run as it goes, on a screen of its own, and leaves its last
// state behind.
type picture struct {
	out  io.Writer
	size func() (columns, rows int)
	on   bool
}

// pictureRows is how many rows the picture of n clients takes.
func pictureRows(n int) int { return 3*n + 4 }

func (p *picture) show(s snapshot) {
	if !p.on {
		io.WriteString(p.out, term.EnterScreen)
		p.on = true
	}
	columns, rows := p.size()
	lines := draw(s, columns, rows)
	// A terminal that became too small shows the top; nothing scrolls.
	lines = lines[:min(len(lines), max(rows, 1))]
	io.WriteString(p.out, term.Home+strings.Join(lines, term.ClearRest+"\r\n")+term.ClearRest+term.ClearBelow)
}

func (p *picture) end(s snapshot) {
	p.restore()
	columns, _ := p.size()
	io.WriteString(p.out, strings.Join(draw(s, columns, 0), "\n")+"\n\n")
}

// restore gives the terminal back as it was.
func (p *picture) restore() {
	if p.on {
		io.WriteString(p.out, term.LeaveScreen)
		p.on = false
	}
}

// draw makes the lines of the picture, none wider than columns, with air between
// the clients if there are rows enough.
func draw(s snapshot, columns, rows int) []string {
	set := s.setting
	if set.Scenario == tail {
		return drawTail(s, columns, rows)
	}
	bars := max(1, min(columns-labelWidth-1, mostBars, int(set.Duration/tick)))
	slice := set.Duration / time.Duration(bars)
	full := float64(set.Attempts) * set.offered() // attempts a second when every call makes all it may

	lines := []string{
		heading(s, columns),
		clip(fmt.Sprintf("load: attempts/s at the backend, %c is %.0f, calls are %.0f, capacity is %d",
			term.Blocks.Highest(), full, set.offered(), set.Capacity), columns),
		clip("ok:   share of calls that succeeded, of those that ended then", columns),
	}
	for _, l := range s.lanes {
		if rows > pictureRows(len(s.lanes))+len(s.lanes) {
			lines = append(lines, "")
		}
		load, ok := barsOf(s, l, bars, slice, full)
		lines = append(lines, status(s, l, columns), label("load")+load+term.Reset, label("ok")+ok+term.Reset)
	}
	return append(lines, label("time")+term.Dim+axis(set, bars, slice, "down")+term.Reset)
}

func label(text string) string { return fmt.Sprintf("  %-*s", labelWidth-2, text) }

// clip cuts a line without escape sequences to size.
func clip(line string, columns int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(columns, 0))])
}

// heading says where the run is, and what the backends are doing.
func heading(s snapshot, columns int) string {
	set := s.setting
	text := fmt.Sprintf("lull demo  %.1f of %v s  ", min(s.now, set.Duration).Seconds(), set.Duration.Seconds())
	switch p := s.phase(); {
	case p == lastCalls:
		text += "waiting for the last calls"
	case set.Outage == 0:
		text += "no outage"
	case p == before:
		text += fmt.Sprintf("outage in %.1f s", (set.OutageAt - s.now).Seconds())
	case p == after:
		text += fmt.Sprintf("the outage ended %.1f s ago", (s.now - set.outageEnd()).Seconds())
	case set.Kind == errors503:
		return term.Inverse + clip(text+"OUTAGE: every backend answers 503 ", columns) + term.Reset
	default:
		return term.Inverse + clip(text+"OUTAGE: every backend is frozen ", columns) + term.Reset
	}
	return term.Bold + clip(text, columns) + term.Reset
}

// status is the line above a client's bars.
func status(s snapshot, l laneSnapshot, columns int) string {
	const last = time.Second
	good, bad := sum(l.good, s.now-last, s.now), sum(l.bad, s.now-last, s.now)
	seen := total(l.seen)
	text := clip(fmt.Sprintf("%-15s%6d attempts for %5d calls (%.2f)   queue %4d   ok now %s",
		l.name, seen, l.calls, ratio(float64(seen), float64(l.calls)), l.queue, percent(good, good+bad)), columns)
	name := min(len(l.name), len(text))
	return term.Bold + text[:name] + term.Reset + text[name:]
}

// barsOf draws the time that has passed: load and success.
func barsOf(s snapshot, l laneSnapshot, bars int, slice time.Duration, full float64) (load, ok string) {
	for i := range bars {
		from := time.Duration(i) * slice
		to := from + slice
		if to > s.now {
			break
		}
		good, bad := rateIn(l.good, from, to), rateIn(l.bad, from, to)
		colour, okBar := term.Reset, " " // nothing ended: nothing known
		if good+bad > 0 {
			share := good / (good + bad)
			colour = colourOf(share)
			okBar = term.Blocks.Of(share)
		}
		load += colour + term.Blocks.Of(rateIn(l.seen, from, to)/full)
		ok += colour + okBar
	}
	return load, ok
}

// axis marks the outage below the bars.
func axis(set setting, bars int, slice time.Duration, outage string) string {
	line := []rune(strings.Repeat("·", bars))
	if set.Outage > 0 {
		from, to := int(set.OutageAt/slice), min(int((set.outageEnd()-1)/slice), bars-1)
		for i := from; i <= to; i++ {
			line[i] = '▔'
		}
		if to-from >= len(outage) {
			copy(line[from:], []rune(outage))
		}
	}
	end := []rune(fmt.Sprintf(" %v s", set.Duration.Seconds()))
	copy(line[max(0, bars-len(end)):], end)
	copy(line, []rune("0 "))
	return string(line)
}

// rateIn is events per second between two times, counting a tick that is only
// partly inside by its part.
func rateIn(counts []int, from, to time.Duration) float64 {
	n := 0.0
	for i := int(from / tick); i < len(counts); i++ {
		begin, end := time.Duration(i)*tick, time.Duration(i+1)*tick
		if begin >= to {
			break
		}
		n += float64(counts[i]) * float64(min(end, to)-max(begin, from)) / float64(tick)
	}
	return ratio(n, (to - from).Seconds())
}

// colourOf says at a glance how the calls of a moment went.
func colourOf(share float64) string {
	switch {
	case share >= recoveryShare:
		return term.Green
	case share >= 0.5:
		return term.Yellow
	}
	return term.Red
}
