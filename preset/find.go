package preset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/choice"
)

// All is every preset: lull itself, loops and single mechanisms first, then the
// clients by family. The order is stable. The slice is the caller's own.
func All() []Preset {
	return slices.Concat([]Preset{lulls(), hedged()}, loops(), mechanisms(), aws(), grpc(), proxies(), libraries())
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
		if d := choice.Distance(typed, n); d < least {
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
