// Package choice is for values that have one of a few names: it writes and reads them as text, and
// finds the name that was probably meant.
package choice

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lullgo/lull/internal/problem"
)

// Each returns what of returns for each of all, such as their names.
func Each[T, R any](all []T, of func(T) R) []R {
	results := make([]R, len(all))
	for i, each := range all {
		results[i] = of(each)
	}
	return results
}

// Either returns one if ok, and other if not.
func Either[T any](ok bool, one, other T) T {
	if ok {
		return one
	}
	return other
}

// List returns the names as a choice in words: "a, b or c".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Name returns the name of v, and what and the number of one that has none: "kind(9)". Names are
// in the order of the values.
func Name[T ~uint8](what string, names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return what + "(" + strconv.Itoa(int(v)) + ")"
}

// Marshal returns the name of v; names are in the order of the values. The error names the field.
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
		// The lengths must be equal, because folding equates some letters with ASCII ones.
		if len(name) == len(text) && strings.EqualFold(name, string(text)) {
			*v = T(i)
			return nil
		}
	}
	return problem.Problem{Field: field, Value: strconv.Quote(string(text)), Allowed: List(names)}
}

// Limits of Nearest: it finds nothing for a longer name, or among more names.
const (
	longestName = 64
	mostNames   = 1000
)

// Nearest returns the name that was probably meant by wrong, whatever its case and its separators.
// That is the one with the fewest changed letters, if these are at most a third; otherwise the
// first that begins with wrong; otherwise the only one with the word wrong in it. It is empty if
// there is none.
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

// distance is the number of letters to insert, remove, change, or swap with their neighbour in
// order to make b of a (optimal string alignment).
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
