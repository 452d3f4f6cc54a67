// Package scenario reads and writes the scenario files of the simulator ([sim.Scenario]), and has the scenarios that come
// with lull. Its files follow the rules of package config: nothing is ignored, and all mistakes are reported
// together, with their places.
package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/sim"
)

// Read reads the scenario file at path. The error is config.Mistakes, with everything that is
// wrong in the file, or an error of reading it.
func Read(path string) (sim.Scenario, error) {
	data, err := codec.ReadFile(path)
	if err != nil {
		return sim.Scenario{}, err
	}
	return Parse(path, data)
}

// Parse reads a scenario file. It looks for the files that it names in the folder of name.
// A scenario without a name of its own is called by the stem of name. The scenario is valid. The
// section "learned" is checked and left out ([ParseLearned] returns it). The error is config.Mistakes, in which name stands for the file.
func Parse(name string, data []byte) (sim.Scenario, error) {
	root, err := os.OpenRoot(folder(name))
	if err != nil {
		return parse(name, data, nil)
	}
	defer root.Close()
	return parse(name, data, root.FS())
}

func parse(name string, data []byte, files fs.FS) (sim.Scenario, error) {
	s, _, err := parseLearned(name, data, files)
	return s, err
}

// Format writes s as a file: its fields that are not zero, in their order. [Parse]
// reads the same from it; a scenario without a name gets that of the file. It fails if a value
// cannot be written, such as NaN.
func Format(s sim.Scenario) ([]byte, error) {
	w := codec.Writer{}
	n := w.Node(reflect.ValueOf(s), "", codec.Plain)
	if w.Err != nil {
		return nil, fmt.Errorf("scenario: %w", w.Err)
	}
	return syntax.YAML(80, n)
}

// folder is the folder of the files that the file called name may name.
func folder(name string) string { return filepath.Dir(name) }

// Set changes one field of s, given as "path=value". The path is as in messages and files:
// "services.0.queue.limit". An element of a list is given by its number, from 0, or by its name:
// "services.api.queue.limit". The value is as in a file. A value in braces, such as
// "services.api.time={kind: exponential, mean: 20ms}", sets several fields and replaces all that
// was there.
//
// The result is not validated, since it may take several assignments until it is valid. Set copies
// what s shares with other scenarios before it changes it. The error is config.Mistakes; s is then
// unchanged.
func Set(s *sim.Scenario, assignment string) error {
	return codec.Set(syntax.ParseOwn, reflect.ValueOf(s).Elem(), assignment, "services.0.queue.limit=500")
}
