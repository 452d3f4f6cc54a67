package term

import (
	"fmt"
	"io"
	"time"
)

const (
	progressOften  = 100 * time.Millisecond // on a terminal
	progressSeldom = 10 * time.Second       // elsewhere
)

// Progress shows how far something has come: one line that is written over on a
// terminal, a line every ten seconds elsewhere.
type Progress struct {
	out         io.Writer // nil: shows nothing
	terminal    bool
	start, last time.Time
	shown       bool
}

// NewProgress returns a Progress that begins now.
func NewProgress(out io.Writer, getenv func(string) string, quiet bool) *Progress {
	p := &Progress{out: out, start: time.Now(), last: time.Now()}
	_, p.terminal = Terminal(out, getenv)
	if quiet {
		p.out = nil
	}
	return p
}

// Show prints a line if it is time for one. The argument of line is the time since the
// beginning.
func (p *Progress) Show(line func(took time.Duration) string) {
	if p.out == nil {
		return
	}
	often := progressSeldom
	if p.terminal {
		often = progressOften
	}
	now := time.Now()
	if now.Sub(p.last) < often {
		return
	}
	p.last = now
	text := line(now.Sub(p.start))
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s%s", text, ClearRest)
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, text)
}

// End removes the line from a terminal.
func (p *Progress) End() {
	if p.shown {
		fmt.Fprintf(p.out, "\r%s", ClearRest)
	}
}
