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

// progress says on standard error how far a simulation has come: one line that
// is written over on a terminal, a line every ten seconds elsewhere.
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

// show prints a line if it is time for one.
func (p *progress) show(h howFar) {
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
	line := p.line(h, now.Sub(p.start))
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s%s", line, clearRest)
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, line)
}

// line is how far it has come after some time.
func (p *progress) line(h howFar, took time.Duration) string {
	text := fmt.Sprintf("simulating: %4.1f %%, %d of %d runs, %s events/s", 100*h.share, h.done, h.runs,
		abbreviated(ratio(float64(h.events), took.Seconds())))
	if h.share > 0.01 && h.share < 1 {
		left := time.Duration((1 - h.share) / h.share * float64(took))
		text += fmt.Sprintf(", %s left", inWords(left.Round(time.Second)))
	}
	return text
}

// end takes the line away.
func (p *progress) end() {
	if p.shown {
		fmt.Fprintf(p.out, "\r%s", clearRest)
	}
}
