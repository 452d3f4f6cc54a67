package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lullgo/lull/sim"
)

// ReadScenario reads the scenario file at path. What is wrong with it is reported
// all at once, as [Mistakes]; other errors are those of reading a file.
func ReadScenario(path string) (sim.Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return sim.Scenario{}, err
	}
	return ParseScenario(path, data)
}

// ParseScenario reads a scenario file. Files that it names are looked for in the
// folder of name, and a scenario without a name of its own is called by the stem
// of name. The scenario is valid. The error is [Mistakes], in which name stands
// for the file.
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

// FormatScenario is s as a file: what is not zero, in the order of the fields.
// [ParseScenario] makes the same of it, but for a scenario without a name, which
// gets that of the file. It fails if there is a value that cannot
// be written, as NaN cannot.
func FormatScenario(s sim.Scenario) ([]byte, error) {
	w := writer{}
	return w.bytes(w.node(reflect.ValueOf(s), "", plain))
}

// folder is where the files are that the file called name speaks of.
func folder(name string) string { return filepath.Dir(name) }
