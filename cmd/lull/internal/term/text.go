package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Width is how wide text is.
const Width = 80

// Fill returns words in lines of at most Width columns: the first line begins with start,
// the others are indented as deep. Numbers keep their units.
func Fill(start, text string) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(strings.TrimLeft(start, "\n")))
	return strings.Join(filled(start, indent, unbroken(text)), "\n") + "\n"
}

// List returns a sentence that lists names, in lines of at most Width columns.
func List(intro string, names []string) []string {
	words := []string{strings.TrimSpace(intro)}
	for i, name := range names {
		if i < len(names)-1 {
			words = append(words, name+",")
		} else {
			words = append(words, name+".")
		}
	}
	return filled("", "  ", words)
}

// Ranked returns a sentence that lists some clients, by a value, the least first; nil if there are none.
func Ranked[F any](all []F, intro string, of func(F) (value float64, text string, ok bool)) []string {
	type entry struct {
		value float64
		text  string
	}
	var entries []entry
	for _, f := range all {
		if value, text, ok := of(f); ok {
			entries = append(entries, entry{value, text})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.text
	}
	return List(intro, texts)
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
	switch strings.TrimRight(word, ".,;:)") {
	case "µs", "ms", "s", "min", "h", "%":
		return true
	}
	return false
}

// Pad appends blanks to text until it is width columns wide.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// Counted returns a number and what it counts: 1 field, 2 fields.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Printable escapes control characters, so that the text of a stranger cannot control the
// terminal.
func Printable(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
