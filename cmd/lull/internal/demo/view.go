package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// A view shows a run while it lasts: it gets a snapshot ten times a second, and the last one at the end.
type view interface {
	show(snapshot)
	end(snapshot)
}

// newView returns a picture if progress is a terminal that can show one. Files, NO_COLOR and small terminals get plain lines.
func newView(s setting, progress io.Writer, getenv func(string) string) view {
	file, _ := term.Terminal(progress, getenv)
	if !term.StyleOf(progress, getenv).Colours() {
		return &plain{out: progress}
	}
	if columns, rows := term.Size(file); columns < leastColumns || rows < pictureRows(len(s.Clients)) {
		return &plain{out: progress}
	}
	return &picture{out: file, size: func() (int, int) { return term.Size(file) }}
}

type plain struct {
	out  io.Writer
	next time.Duration
}

func (p *plain) show(s snapshot) {
	set := s.setting
	if p.next == 0 {
		fmt.Fprint(p.out, set.Scenario.plainHead(s))
		p.next = time.Second
	}
	for ; p.next <= s.now && p.next <= set.Duration; p.next += time.Second {
		from, mark := p.next-time.Second, " "
		if set.Outage > 0 && from < set.outageEnd() && p.next > set.OutageAt {
			mark = "!"
		}
		fmt.Fprintf(p.out, "%4d s%s%s\n", int(p.next.Seconds()), mark, set.Scenario.plainLine(s, from, p.next))
	}
}

func (p *plain) end(s snapshot) {
	p.show(s)
	fmt.Fprintf(p.out, "! %s\n\n", s.setting.Scenario.words().note)
}

const (
	leastColumns = 80
	mostBars     = 160
	labelWidth   = 9 // of what stands to the left of the bars
)

// picture draws the run on a screen of its own, and leaves its last state behind.
type picture struct {
	out  io.Writer
	size func() (columns, rows int)
	on   bool
}

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
	if p.on {
		io.WriteString(p.out, term.LeaveScreen)
		p.on = false
	}
	columns, _ := p.size()
	io.WriteString(p.out, strings.Join(draw(s, columns, 0), "\n")+"\n\n")
}

// draw returns the lines of the picture, none wider than columns. There are empty lines between clients if rows allow it.
func draw(s snapshot, columns, rows int) []string {
	set := s.setting
	of, words := set.Scenario, set.Scenario.words()
	bars := max(1, min(columns-labelWidth-1, mostBars, int(set.Duration/tick)))
	slice := set.Duration / time.Duration(bars)

	heading := truncate(fmt.Sprintf("lull demo  %.1f of %v s  %s", min(s.now, set.Duration).Seconds(), set.Duration.Seconds(), s.heading()), columns)
	if s.phase() == during {
		heading = term.Inverse + heading + term.Reset
	} else {
		heading = term.Bold + heading + term.Reset
	}
	legend := of.legend(s)
	lines := []string{heading, truncate(legend[0], columns), truncate(legend[1], columns)}
	for _, l := range s.lanes {
		if rows > pictureRows(len(s.lanes))+len(s.lanes) {
			lines = append(lines, "")
		}
		status := truncate(of.status(s, l), columns)
		name := min(len(l.name), len(status))
		lines = append(lines, term.Bold+status[:name]+term.Reset+status[name:])
		drawn := [2]string{label(words.bars[0]), label(words.bars[1])}
		for i := range bars {
			from := time.Duration(i) * slice
			if from+slice > s.now {
				break
			}
			colour, bar := of.bars(s, l, from, from+slice)
			drawn[0] += colour + bar[0]
			drawn[1] += colour + bar[1]
		}
		lines = append(lines, drawn[0]+term.Reset, drawn[1]+term.Reset)
	}
	return append(lines, label("time")+term.Dim+axis(set, bars, slice, words.outage)+term.Reset)
}

func label(text string) string { return fmt.Sprintf("  %-*s", labelWidth-2, text) }

func truncate(line string, columns int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(columns, 0))])
}

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

// rateIn returns events per second between two times. A tick that is only partly inside counts in proportion.
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
