// Package choice is for values that are one of a few names: writing them as text,
// reading them, and guessing which was meant.
package choice

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lullgo/lull/internal/problem"
)

// List is the names in a sentence: "a, b or c".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Marshal is the name of v, whose names are by value. The error names the field.
func Marshal[T ~uint8](field string, names []string, v T) ([]byte, error) {
	if int(v) >= len(names) {
		return nil, problem.Problem{Field: field, Value: v, Allowed: List(names)}
	}
	return []byte(names[v]), nil
}

// Unmarshal sets v to the value whose name text is, in any case. The error names
// the field, the text and what is allowed, and leaves v alone.
func Unmarshal[T ~uint8](field string, names []string, v *T, text []byte) error {
	for i, name := range names {
		// Of equal length: folding takes some letters that are not ASCII for ones
		// that are.
		if len(name) == len(text) && strings.EqualFold(name, string(text)) {
			*v = T(i)
			return nil
		}
	}
	return problem.Problem{Field: field, Value: strconv.Quote(string(text)), Allowed: List(names)}
}

// What Nearest looks at: a longer name, or one of more names, is not looked for.
const (
	longestName = 64
	mostNames   = 1000
)

// Nearest is the name that was probably meant by wrong, whatever its case and its separators:
// the one with the fewest letters changed, if those are at most a third; else the first that
// begins with wrong; else the only one that has wrong among its words. Empty: none of them.
func Nearest(wrong string, names []string) string {
	if len(wrong) > longestName || len(names) > mostNames {
		return ""
	}
	best, least := "", 1+max(len(wrong)/3, 1)
	for _, name := range names {
		if d := distance(plain(wrong), plain(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(wrong) < 2 {
		return best
	}
	word := strings.ToLower(wrong)
	var with []string
	for _, name := range names {
		if strings.HasPrefix(strings.ToLower(name), word) {
			return name
		}
		if slices.Contains(strings.FieldsFunc(strings.ToLower(name), separates), word) {
			with = append(with, name)
		}
	}
	if len(with) == 1 {
		return with[0]
	}
	return ""
}

// plain is name in lower case, without separators.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if separates(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

func separates(c rune) bool { return c == '_' || c == '-' || c == ' ' }

// distance is how many letters must be put in, left out, changed, or swapped with
// their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, above, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			change := above[j-1]
			if s[i-1] != t[j-1] {
				change++
			}
			row[j] = min(above[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(t)]
}
