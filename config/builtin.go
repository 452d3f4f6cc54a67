package config

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/sim"
)

//go:embed scenarios
var library embed.FS

// BuiltIn is every scenario that comes with lull, from the simplest to what needs
// those before it to be understood. They are fresh copies, to be changed at will.
func BuiltIn() []sim.Scenario {
	files, err := fs.Sub(library, "scenarios")
	if err != nil {
		panic(err) // not with a constant
	}
	names, err := fs.Glob(files, "*.yaml") // sorted, which is what their numbers are for
	if err != nil {
		panic(err)
	}
	var all []sim.Scenario
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		s, err := parseScenario(name, data, files)
		if err != nil {
			panic(fmt.Sprintf("config: a built-in scenario is wrong:\n%v", err)) // the tests read them all
		}
		all = append(all, s)
	}
	return all
}

// FindBuiltIn is the built-in scenario of that name. The error names the nearest.
func FindBuiltIn(name string) (sim.Scenario, error) {
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
