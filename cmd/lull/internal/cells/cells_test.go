package cells

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// again returns v as it comes out of JSON.
func again[T any](t *testing.T, v T) (out T) {
	t.Helper()
	text := must.Have(json.Marshal(v))
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// A cell that is sent to another machine is the same there: every scenario that is built in, every world, and every
// preset.
func TestCellsSurviveJSON(t *testing.T) {
	same := func(c Cell) {
		t.Helper()
		if got := again(t, c); !reflect.DeepEqual(got, c) {
			t.Errorf("%s with %s is another:\n%+v\n%+v", c.Scenario.Name, c.Contender.Name, got, c)
		}
	}
	scenarios := scenario.BuiltIn()
	for _, w := range battery.Worlds(battery.Quick) {
		scenarios = append(append(scenarios, w.Scenario), w.Peace...)
	}
	for _, s := range scenarios {
		same(Cell{Wanted: Run, Scenario: s})
	}
	for _, p := range rivals.All() {
		same(Cell{Wanted: Figures, Contender: ContenderOf(sim.Contender{Name: p.Name, Policy: p.Policy, Holds: p.Holds}, p.Name), Named: []Contender{{Name: "other"}}, Seed: 1<<64 - 1, Relief: time.Minute})
	}
}

// stalled is a small cell.
func stalled(seed uint64) Cell {
	return Cell{
		Wanted: Run, Seed: seed, Contender: Contender{Name: "lull"},
		Scenario: sim.Scenario{
			Name: "stalled", Horizon: 30 * time.Second,
			Services: []sim.Service{{
				Name: "api", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: sim.Distribution{Mean: 100 * time.Millisecond},
				Faults: []sim.Fault{{Kind: sim.Stall, At: 10 * time.Second, For: 2 * time.Second}},
			}},
			Fleets: []sim.Fleet{
				{Name: "a", Calls: "api", Processes: 3, Arrivals: sim.Arrivals{Rate: 40}, AttemptTimeout: time.Second},
				{Name: "b", Calls: "api", Arrivals: sim.Arrivals{Rate: 4}, AttemptTimeout: time.Second},
			},
		},
	}
}

// A result is the same after it was written and read: nothing in it is lost, no figure is rounded.
func TestResultsSurviveJSON(t *testing.T) {
	for _, wanted := range []Wanted{Run, Totals, Figures, Map} {
		c := stalled(7)
		c.Wanted = wanted
		r := must.Have(c.Fly(t.Context(), nil))
		if got := again(t, r); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: read again it is another:\n%+v\n%+v", wanted, got, r)
		}
	}
}

// The key of a cell depends on all that its result depends on, and on nothing else.
func TestKey(t *testing.T) {
	base := stalled(1)
	key := func(change func(*Cell)) string {
		c := again(t, base)
		change(&c)
		return must.Have(c.Key())
	}
	same := key(func(*Cell) {})
	check.Equal(t, key(func(c *Cell) { c.Scenario.Name, c.Scenario.Title = "x", "y" }), same, "the key under another name")
	for what, change := range map[string]func(*Cell){
		"seed":      func(c *Cell) { c.Seed++ },
		"wanted":    func(c *Cell) { c.Wanted = Figures },
		"scenario":  func(c *Cell) { c.Scenario.Services[0].Faults[0].For++ },
		"policy":    func(c *Cell) { c.Contender.Policy.Attempts++ },
		"preset":    func(c *Cell) { c.Contender.Preset = "grpc" },
		"contender": func(c *Cell) { c.Contender.Name = "other" },
		"named":     func(c *Cell) { c.Named = append(c.Named, Contender{Name: "x"}) },
	} {
		if key(change) == same {
			t.Errorf("it does not depend on the %s", what)
		}
	}
}

// read reads flags.
func read(t *testing.T, f Flags, out *bytes.Buffer) *Where {
	t.Helper()
	var l problem.List
	w, err := f.Read(&l)
	w.Env = cli.Env{Stdout: out}
	if err != nil || l.Err() != nil {
		t.Fatal(err, l.Err())
	}
	return w
}

// Parts that other runners have printed, in any order and one of them twice, take the place of the flights. What is
// missing is an error, or is flown if it is for a part.
func TestParts(t *testing.T) {
	all := []Cell{stalled(1), stalled(2), stalled(3), stalled(4), stalled(5)}
	want := make([]Result, len(all))
	must.Succeed(read(t, Flags{}, nil).Fly(t.Context(), all, Watcher{Done: func(i int, r Result) { want[i] = r }}))
	folder := t.TempDir()
	for part, text := range map[string]cli.Text{"part-a": "0/2", "part-b": "1/2"} {
		var out bytes.Buffer
		w := read(t, Flags{Cells: text}, &out)
		mine, _ := OfPart(w, all)
		must.Succeed(w.Fly(t.Context(), mine, Watcher{Done: func(int, Result) {}}))
		must.Succeed(os.WriteFile(filepath.Join(folder, part), append(out.Bytes(), `{"build":"cut sho`...), 0o666))
	}
	got := make([]Result, len(all))
	merge := Flags{Merge: cli.Texts{cli.Text(folder + "/part-*," + folder + "/part-a")}}
	must.Succeed(read(t, merge, nil).Fly(t.Context(), all, Watcher{Done: func(i int, r Result) { got[i] = r }}))
	if !reflect.DeepEqual(got, want) {
		t.Error("the results of the parts are others than those of one run")
	}

	one := Flags{Merge: cli.Texts{cli.Text(folder + "/part-b")}}
	err := read(t, one, nil).Fly(t.Context(), all, Watcher{Done: func(int, Result) {}})
	if err == nil || !strings.Contains(err.Error(), "of 5 cells, 3 are in none of the files") {
		t.Errorf("with one of two parts: %v", err)
	}
	var out bytes.Buffer
	one.Cells = "0/1"
	if err := read(t, one, &out).Fly(t.Context(), all, Watcher{Done: func(int, Result) {}}); err != nil || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("a part that others have begun has %d lines, %v", strings.Count(out.String(), "\n"), err)
	}
}

// The error of one cell is that of all.
func TestACellThatCannotBeFlown(t *testing.T) {
	unknown := stalled(1)
	unknown.Wanted = "x"
	err := read(t, Flags{}, nil).Fly(t.Context(), []Cell{stalled(2), unknown}, Watcher{Done: func(int, Result) {}})
	if err == nil || !strings.Contains(err.Error(), `a cell that wants "x"`) {
		t.Error(err)
	}
}

// What is interrupted is no result: a part has only whole cells.
func TestInterruptedCellsAreInNoPart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	long := stalled(1)
	long.Scenario.Horizon = 1000 * time.Hour
	var out bytes.Buffer
	w := read(t, Flags{Cells: "0/1", Workers: "1"}, &out)
	err := w.Fly(ctx, []Cell{stalled(2), long, stalled(3)}, Watcher{Done: func(int, Result) {}, Progress: func(i int, _ sim.Progress) {
		if i == 1 {
			cancel()
		}
	}})
	if err == nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v, and %d lines", err, strings.Count(out.String(), "\n"))
	}
}

func TestLinesThatAreNone(t *testing.T) {
	whole := func(build, cell, result string) string {
		return `{"build":` + strconv.Quote(build) + `,"cell":"` + cell + `","result":` + result + "}\n"
	}
	good := whole(Build(), "a", `{"run":null}`)
	for _, c := range []struct{ text, want string }{
		{good + "x\n", "f:2: no line of a part"},
		{good + "\n", "f:2: no line of a part"},
		{good + "{}\n", "f:2: no line of a part"},
		{whole("v9", "a", "{}"), "f:1: made by another build of lull, v9: this is " + Build()},
		{good + good + whole(Build(), "a", `{}`), "f:3: another result than before for the same cell, a"},
	} {
		if err := (results{}).read("f", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{"", good, good + good, good + good[:20]} {
		r := results{}
		if err := r.read("f", strings.NewReader(text)); err != nil || len(r) > 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A result of another kind, which only a forged part has, is an error.
func TestResultOfAnotherKind(t *testing.T) {
	c := stalled(1)
	key := must.Have(c.Key())
	for _, text := range []string{`{}`, `null`, `[]`, `{"figures":{}}`, `{"run":{},"map":{}}`, `{"run":{"End":"x"}}`} {
		w := &Where{n: 1, known: results{key: json.RawMessage(text)}}
		if err := w.Fly(t.Context(), []Cell{c}, Watcher{Done: func(int, Result) { t.Errorf("%s is taken", text) }}); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"build":"b","cell":"a","result":{}}` + "\n"))
	f.Add([]byte("x\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := results{}
		if err := r.read("f", bytes.NewReader(text)); err == nil {
			for cell, result := range r {
				if cell == "" || !json.Valid(result) {
					t.Errorf("cell %q has the result %q", cell, result)
				}
			}
		}
	})
}
