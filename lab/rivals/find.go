package rivals

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/choice"
)

// All is every preset: lull itself, loops and single mechanisms first, then the
// clients by family, and consumers of queues. The order is stable. The slice is the caller's own.
func All() []Preset {
	return slices.Concat(loops(), mechanisms(), aws(), grpc(), proxies(), libraries(), messages())
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
	if near := choice.Nearest(name, names); near != "" {
		guess = fmt.Sprintf("did you mean %s? ", near)
	}
	return Preset{}, fmt.Errorf("no preset is called %q: %sthere are %s", name, guess, strings.Join(names, ", "))
}
