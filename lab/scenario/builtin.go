package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/sim"
)

//go:embed scenarios
var library embed.FS

// BuiltIn returns every scenario that comes with lull. The simplest come first; a later one may
// need those before it to be understood. They are fresh copies, which the caller may change.
func BuiltIn() []sim.Scenario {
	files, _ := fs.Sub(library, "scenarios") // which cannot fail, nor can the pattern
	names, _ := fs.Glob(files, "*.yaml")     // sorted by the numbers they begin with
	var all []sim.Scenario
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		var s sim.Scenario
		if err == nil {
			s, err = parse(name, data, files)
		}
		if err != nil {
			panic(fmt.Sprintf("scenario: a built-in scenario is wrong:\n%v", err)) // the tests read them all
		}
		all = append(all, s)
	}
	return all
}

// Find returns the built-in scenario of that name. The error names the nearest.
func Find(name string) (sim.Scenario, error) {
	var names []string
	for _, s := range BuiltIn() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	err := fmt.Errorf("no built-in scenario is called %s: want %s", tree.Quote(name), choice.List(names))
	if near := choice.Nearest(strings.TrimSpace(name), names); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return sim.Scenario{}, err
}
