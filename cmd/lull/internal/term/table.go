package term

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table prints rows in columns, the first one to the left and the others to the right. A
// table that is wider than most is printed in pieces, each with the first column.
func Table(out io.Writer, rows [][]string, most int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for from := 1; from < len(widths); {
		to, width := from+1, widths[0]+widths[from]+4
		for to < len(widths) && width+widths[to]+2 <= most {
			width += widths[to] + 2
			to++
		}
		if from > 1 {
			fmt.Fprintln(out)
		}
		for _, row := range rows {
			line := Pad(row[0], widths[0])
			for i, cell := range row[from:to] {
				line += "  " + strings.Repeat(" ", widths[from+i]-utf8.RuneCountInString(cell)) + cell
			}
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
		from = to
	}
}
