// Package term writes text for people: on terminals and off them. It knows escape
// sequences, bars and tables, and how lines are filled.
package term

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lullgo/lull/internal/choice"
)

const (
	EnterScreen = "\x1b[?1049h\x1b[?25l" // a screen of our own, without a cursor
	LeaveScreen = "\x1b[?25h\x1b[?1049l"
	Home        = "\x1b[H"
	ClearRest   = "\x1b[K"
	ClearBelow  = "\x1b[J"
	Reset       = "\x1b[0m"
	Bold        = "\x1b[1m"
	Dim         = "\x1b[2m"
	Red         = "\x1b[31m"
	Green       = "\x1b[32m"
	Yellow      = "\x1b[33m"
	Inverse     = "\x1b[7m"
)

// Terminal returns the file that out is, and reports whether it is a terminal that obeys escape sequences.
func Terminal(out io.Writer, getenv func(string) string) (*os.File, bool) {
	file, ok := out.(*os.File)
	return file, ok && getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())) && understandsEscapes(file)
}

// A Style marks words by colour. The zero Style marks nothing: it is that of files and pipes.
type Style struct{ colours bool }

// StyleOf has colours if out is a terminal and the user has not set NO_COLOR (https://no-color.org).
func StyleOf(out io.Writer, getenv func(string) string) Style {
	_, ok := Terminal(out, getenv)
	return Style{ok && getenv("NO_COLOR") == ""}
}

func (s Style) Colours() bool { return s.colours }

// In returns text in the colours of escape sequences, such as Bold+Red.
func (s Style) In(escapes, text string) string {
	return choice.Either(!s.colours || text == "", text, escapes+text+Reset)
}

// Mark returns text with the words in colour that the first group of re matches. colours has the escape sequences of each.
func (s Style) Mark(text string, re *regexp.Regexp, colours map[string]string) string {
	if !s.colours {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[end:at[2]] + s.In(colours[text[at[2]:at[3]]], text[at[2]:at[3]]))
		end = at[3]
	}
	return b.String() + text[end:]
}

// Size returns how many columns and rows a terminal has, zero if that is not known.
func Size(file *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

const (
	progressOften  = 100 * time.Millisecond // on a terminal
	progressSeldom = 10 * time.Second       // elsewhere
)

// Progress shows how far something is: a line that is written over on a terminal, a line every ten seconds elsewhere.
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

// Show prints a line if it is time for one. The argument of line is the time since the beginning.
func (p *Progress) Show(line func(took time.Duration) string) {
	if p.out == nil {
		return
	}
	often := choice.Either(p.terminal, progressOften, progressSeldom)
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
