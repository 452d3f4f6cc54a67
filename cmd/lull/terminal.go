package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// newView draws a picture where one can be seen, and prints plain lines
// elsewhere: into a file or a pipe, with NO_COLOR set, on a dumb or a tiny
// terminal. The lines go to progress, the picture to the terminal.
func newView(s setting, progress io.Writer, getenv func(string) string) view {
	file, ok := progress.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return &plain{out: progress}
	}
	size := func() (int, int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}
	columns, rows := size()
	if columns < leastColumns || rows < pictureRows(len(s.Clients)) || !understandsEscapes(file) {
		return &plain{out: progress}
	}
	return &picture{out: file, size: size}
}
