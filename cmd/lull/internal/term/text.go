package term

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/choice"
)

// Width is how wide text is.
const Width = 80

// Fill returns lines of at most Width columns, the first with start, the others as deep. Numbers keep their units.
func Fill(start, text string) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(strings.TrimLeft(start, "\n")))
	return strings.Join(filled(start, indent, unbroken(text)), "\n") + "\n"
}

// Sentences are texts for people. One that is longer than a line has line breaks, and is indented after them.
type Sentences []string

// List appends a sentence that lists names, and reports whether there are any: of none it appends nothing.
func (s *Sentences) List(intro string, names ...string) bool {
	if len(names) == 0 {
		return false
	}
	words := []string{strings.TrimSpace(intro)}
	for _, name := range names {
		words = append(words, name+",")
	}
	last := &words[len(words)-1]
	*last = strings.TrimSuffix(*last, ",") + "."
	*s = append(*s, strings.Join(filled("", "  ", words), "\n"))
	return true
}

// Ranked returns the texts of some of all, by a value, the least first.
func Ranked[F any](all []F, of func(F) (value float64, text string, ok bool)) []string {
	type ranked struct {
		value float64
		text  string
	}
	var some []ranked
	for _, f := range all {
		if value, text, ok := of(f); ok {
			some = append(some, ranked{value, text})
		}
	}
	slices.SortStableFunc(some, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	return choice.Each(some, func(r ranked) string { return r.text })
}

// filled puts words into lines. A word that is too long for any line has one to itself.
func filled(start, indent string, words []string) (lines []string) {
	line := start
	for i, word := range words {
		if i > 0 && utf8.RuneCountInString(line)+utf8.RuneCountInString(word) > Width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = indent
		}
		line += word + " "
	}
	return append(lines, strings.TrimRight(line, " "))
}

// unbroken returns the words of a text, units together with their numbers.
func unbroken(text string) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		last := len(words) - 1
		if last >= 0 && isUnit(word) && words[last][len(words[last])-1] >= '0' && words[last][len(words[last])-1] <= '9' {
			words[last] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

func isUnit(word string) bool {
	return slices.Contains([]string{"µs", "ms", "s", "min", "h", "%"}, strings.TrimRight(word, ".,;:)"))
}

// Pad appends blanks to text until it is width columns wide.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// Counted returns a number and what it counts: 1 field, 2 fields.
func Counted(n int, what string) string {
	return choice.Either(n == 1, "1 "+what, fmt.Sprintf("%d %ss", n, what))
}

// Printable escapes control characters, so that the text of a stranger cannot control the terminal.
func Printable(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Table prints rows, the first column to the left, the others to the right; in pieces, each with the first, if it is wider than most.
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

// Left prints rows with all columns to the left.
func Left(out io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// Bars are the heights of a bar, the lowest first.
type Bars []rune

// The bars of terminals that know Unicode, and of those that may not.
var (
	Blocks = Bars("▁▂▃▄▅▆▇█")
	ASCII  = Bars(" .:-=+*#")
)

// BarsFor returns the bars that the locale can show. Without any locale, as on Windows, it is taken to be a modern one.
func BarsFor(getenv func(string) string) Bars {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	modern := locale == "" || strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
	return choice.Either(modern, Blocks, ASCII)
}

func (b Bars) Highest() rune { return b[len(b)-1] }

// Of returns the bar of a share, 0 to 1.
func (b Bars) Of(share float64) string {
	i := int(share * float64(len(b)))
	return string(b[min(max(i, 0), len(b)-1)])
}

// Line draws values. Zero is the lowest bar, and nothing else is; what is above top has the highest.
func (b Bars) Line(values []float64, top float64) string {
	line := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if v > 0 && top > 0 {
			level = min(max(int(math.Round(v/top*float64(len(b)-1))), 1), len(b)-1)
		}
		if line[i] = b[level]; math.IsNaN(v) {
			line[i] = '?'
		}
	}
	return string(line)
}
