package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	progressOften  = 100 * time.Millisecond // on a terminal
	progressSeldom = 10 * time.Second       // elsewhere
)

// progress says on standard error how far something has come: one line that is
// written over on a terminal, a line every ten seconds elsewhere.
type progress struct {
	out      io.Writer // nil: says nothing
	terminal bool
	now      func() time.Time
	start    time.Time
	last     time.Time
	shown    bool
}

func newProgress(env surroundings, quiet bool, now func() time.Time) *progress {
	p := &progress{out: env.stderr, now: now, start: now()}
	if quiet {
		p.out = nil
	}
	file, ok := env.stderr.(*os.File)
	p.terminal = ok && env.getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())) && understandsEscapes(file)
	p.last = p.start
	return p
}

// A stage is how far it has come; it is a line of text after some time.
type stage interface {
	line(took time.Duration) string
}

// show prints a line if it is time for one.
func (p *progress) show(h stage) {
	if p.out == nil {
		return
	}
	often := progressSeldom
	if p.terminal {
		often = progressOften
	}
	now := p.now()
	if now.Sub(p.last) < often {
		return
	}
	p.last = now
	line := h.line(now.Sub(p.start))
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s%s", line, clearRest)
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, line)
}

// end takes the line away.
func (p *progress) end() {
	if p.shown {
		fmt.Fprintf(p.out, "\r%s", clearRest)
	}
}
