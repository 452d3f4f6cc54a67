// Package term writes text for people: on terminals and off them. It knows escape
// sequences, bars and tables, and how lines are filled.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Escape sequences.
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

// Terminal returns the file that out is, and reports whether it is a terminal that obeys
// escape sequences.
func Terminal(out io.Writer, getenv func(string) string) (*os.File, bool) {
	file, ok := out.(*os.File)
	return file, ok && getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())) && understandsEscapes(file)
}

// Size returns how many columns and rows a terminal has, zero if that is not known.
func Size(file *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}
