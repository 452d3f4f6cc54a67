package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plain prints a line a second, for whatever is not a terminal. No escape codes.
type plain struct {
	out  io.Writer
	next time.Duration
}

// show prints the second that has just passed.
func (p *plain) show(s snapshot) {
	if p.next == 0 {
		p.head(s)
		p.next = time.Second
	}
	for ; p.next <= s.now && p.next <= s.setting.Duration; p.next += time.Second {
		p.line(s, p.next-time.Second, p.next)
	}
}

func (p *plain) head(s snapshot) {
	if s.setting.Scenario == tail {
		fmt.Fprint(p.out, tailPlainHead(s))
		return
	}
	fmt.Fprintf(p.out, "Each second: calls that succeeded, of those that ended; attempts a second at the backend.\n")
	fmt.Fprintf(p.out, "%-7s", "")
	for _, l := range s.lanes {
		fmt.Fprintf(p.out, " %11s", short(l.name))
	}
	fmt.Fprintln(p.out)
}

// line prints what happened from one time to another.
func (p *plain) line(s snapshot, from, to time.Duration) {
	var b strings.Builder
	mark := " "
	if s.setting.Outage > 0 && from < s.setting.outageEnd() && to > s.setting.OutageAt {
		mark = "!"
	}
	fmt.Fprintf(&b, "%4d s%s", int(to.Seconds()), mark)
	if s.setting.Scenario == tail {
		fmt.Fprintln(p.out, b.String()+tailPlainLine(s, from, to))
		return
	}
	for _, l := range s.lanes {
		good, bad := sum(l.good, from, to), sum(l.bad, from, to)
		share := "-"
		if good+bad > 0 {
			share = percent(good, good+bad)
		}
		fmt.Fprintf(&b, " %5s %5.0f", share, ratio(float64(sum(l.seen, from, to)), (to-from).Seconds()))
	}
	fmt.Fprintln(p.out, b.String())
}

// end prints what is left, of whole seconds.
func (p *plain) end(s snapshot) {
	p.show(s)
	what := "the backends were down"
	if s.setting.Scenario == tail {
		what = "everything was slow"
	}
	fmt.Fprintf(p.out, "! %s\n\n", what)
}

// short is a name that fits a narrow column.
func short(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, " interval"), " jitter")
}

// percent never rounds up to 100 or down to 0 what is not all or nothing.
func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	n := (100*part + whole/2) / whole
	switch {
	case part == whole:
		n = 100
	case part > 0:
		n = min(max(n, 1), 99)
	}
	return fmt.Sprintf("%d%%", n)
}
