package demo

import (
	"io"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// newView draws a picture where one can be seen, and prints plain lines
// elsewhere: into a file or a pipe, with NO_COLOR set, on a dumb or a tiny
// terminal. The lines go to progress, the picture to the terminal.
func newView(s setting, progress io.Writer, getenv func(string) string) view {
	file, ok := term.Terminal(progress, getenv)
	if !ok || getenv("NO_COLOR") != "" {
		return &plain{out: progress}
	}
	if columns, rows := term.Size(file); columns < leastColumns || rows < pictureRows(len(s.Clients)) {
		return &plain{out: progress}
	}
	return &picture{out: file, size: func() (int, int) { return term.Size(file) }}
}
