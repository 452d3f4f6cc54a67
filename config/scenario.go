package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lullgo/lull/sim"
)

// ReadScenario reads the scenario file at path. The error is [Mistakes], with everything that is
// wrong in the file, or an error of reading it.
func ReadScenario(path string) (sim.Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return sim.Scenario{}, err
	}
	return ParseScenario(path, data)
}

// ParseScenario reads a scenario file. It looks for the files that it names in the folder of name.
// A scenario without a name of its own is called by the stem of name. The scenario is valid. The
// error is [Mistakes], in which name stands for the file.
func ParseScenario(name string, data []byte) (sim.Scenario, error) {
	root, err := os.OpenRoot(folder(name))
	if err != nil {
		return parseScenario(name, data, nil)
	}
	defer root.Close()
	return parseScenario(name, data, root.FS())
}

func parseScenario(name string, data []byte, files fs.FS) (sim.Scenario, error) {
	r := newReader(name, files)
	n := r.document(data)
	if n == nil {
		return sim.Scenario{}, r.Mistakes.Err()
	}
	var s sim.Scenario
	r.basis = "horizon" // faults and ramps must lie before it
	r.decode(n, reflect.ValueOf(&s).Elem(), "", plain)
	if !has(r.places, "name") {
		s.Name = stem(name)
	}
	for i := range s.Services {
		r.names = append(r.names, s.Services[i].Name)
	}
	r.validated(s.Validate())
	if err := r.Mistakes.Err(); err != nil {
		return sim.Scenario{}, err
	}
	return s, nil
}

// FormatScenario writes s as a file: its fields that are not zero, in their order. [ParseScenario]
// reads the same from it; a scenario without a name gets that of the file. It fails if a value
// cannot be written, such as NaN.
func FormatScenario(s sim.Scenario) ([]byte, error) {
	w := writer{}
	return w.bytes(w.node(reflect.ValueOf(s), "", plain))
}

// folder is the folder of the files that the file called name may name.
func folder(name string) string { return filepath.Dir(name) }
