package preset

import (
	"fmt"
	"slices"
	"strings"
)

// All is every preset: lull itself, loops and single mechanisms first, then the
// clients by family. The order is stable. The slice is the caller's own.
func All() []Preset {
	return slices.Concat([]Preset{lulls()}, loops(), mechanisms(), aws(), grpc(), proxies(), libraries())
}

// Find is the preset with the given name, in any case. The error names the
// nearest and lists them all.
func Find(name string) (Preset, error) {
	all := All()
	names := make([]string, len(all))
	for i, p := range all {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names[i] = p.Name
	}
	guess := ""
	if near := nearest(name, names); near != "" {
		guess = fmt.Sprintf("did you mean %s? ", near)
	}
	return Preset{}, fmt.Errorf("no preset is called %q: %sthere are %s", name, guess, strings.Join(names, ", "))
}

// nearest is the first name that begins with what was typed, or the one that takes
// the fewest changes to type, or the first that holds it; none if nothing is like
// it.
func nearest(typed string, names []string) string {
	typed = strings.ToLower(typed)
	for _, n := range names {
		if len(typed) >= 2 && strings.HasPrefix(n, typed) {
			return n
		}
	}
	best, least := "", len(typed)/2+1
	for _, n := range names {
		if d := changes(typed, n); d < least {
			best, least = n, d
		}
	}
	if best != "" || len(typed) < 2 {
		return best
	}
	for _, n := range names {
		if strings.Contains(n, typed) {
			return n
		}
	}
	return ""
}

// changes is the number of letters to put in, take out or replace to turn a into
// b (Levenshtein).
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
