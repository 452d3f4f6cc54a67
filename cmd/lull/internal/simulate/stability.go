package simulate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

var mapContenders = []string{"none", "full-jitter", lullName}

// A stabilityMap is --map: for each policy and size of the fleet, at which loads and outages it comes back.
type stabilityMap struct {
	simulation
	sizes []int             // of the fleet
	of    [][]sim.Stability // by policy and size
}

const relief = 2 * time.Minute

func mapOf(ctx context.Context, s simulation, p *term.Progress) (stabilityMap, error) {
	m := stabilityMap{simulation: s, sizes: fleetSizes(s.scenario)}
	var all []cells.Cell
	for _, c := range s.contenders {
		m.of = append(m.of, make([]sim.Stability, len(m.sizes)))
		for _, size := range m.sizes {
			all = append(all, cells.Cell{
				Wanted: cells.Map, Scenario: s.scenario.WithProcesses(size), Contender: c.data(), Named: s.named, Seed: s.seed, Relief: relief,
			})
		}
	}
	fly, at := cells.OfPart(s.where, all)
	done := 0
	return m, s.where.Fly(ctx, fly, cells.Watcher{Done: func(i int, r cells.Result) {
		m.of[at[i]/len(m.sizes)][at[i]%len(m.sizes)] = *r.Map
		done++
		p.Show(func(time.Duration) string { return fmt.Sprintf("mapping: %d of %d maps done", done, len(fly)) })
	}})
}

// fleetSizes are those that have a map: the scenario's own, a hundredth of it and a hundred times as many.
func fleetSizes(s sim.Scenario) []int {
	n := 0
	for _, f := range s.Fleets {
		n += max(f.Processes, 1)
	}
	least := len(s.Fleets)
	sizes := []int{max(n/100, least), n, n}
	if n < 100_000 {
		sizes[2] = min(100*n, 100_000)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// The three states of a place in a map.
const (
	comesBack = iota
	onlyHelped
	neverBack
)

func state(m sim.Stability, load, outage int) int {
	switch {
	case load < m.Back[outage]:
		return comesBack
	case load < m.Helped[outage]:
		return onlyHelped
	}
	return neverBack
}

var marks = [...]string{comesBack: ".", onlyHelped: "+", neverBack: "#"}

const theoryMark = "no retries, by theory"

func (m stabilityMap) print(f Command, env cli.Env) error {
	if f.JSON {
		return m.printJSON(env.Stdout)
	}
	return m.printText(env.Stdout)
}

func (m stabilityMap) printText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, scenarioText(m.scenario))
	fmt.Fprint(out, entry("seed", fmt.Sprint(m.seed)))
	first := m.of[0][0]
	for p, c := range m.contenders {
		fmt.Fprintf(out, "\n%s\n", c.Name)
		m.block(out, marks[neverBack], m.of[p]...)
	}
	if first.Theory != nil {
		fmt.Fprintf(out, "\n%s\n", theoryMark)
		theory := first
		theory.Back, theory.Helped = first.Theory, first.Theory
		m.block(out, "-", theory)
	}
	fmt.Fprintf(out, "\nWhat the maps show\n")
	fmt.Fprint(out, term.Fill("  rows     ", m.rows()))
	fmt.Fprint(out, term.Fill("  columns  ", fmt.Sprintf("load, from %s to %s calls a second%s", loadInWords(first.Loads[0]), loadInWords(first.Loads[len(first.Loads)-1]), m.capacity())))
	for s, meaning := range m.meanings() {
		fmt.Fprint(out, term.Fill("  "+marks[s]+"        ", meaning))
	}
	if first.Theory != nil {
		fmt.Fprint(out, term.Fill("  -        ", "it takes longer without retries, by theory: the time to work off what waits, at the capacity that is left"))
	}
	fmt.Fprint(out, term.Fill("  ", fmt.Sprintf("The boundaries were found by bisection, in %d runs; it is assumed that no load is easier than a lower one.", m.runs())))
	return out.Flush()
}

func (m stabilityMap) meanings() [3]string {
	return [...]string{
		comesBack:  "calls succeed again as before, within " + inWords(m.of[0][0].Watch) + " of the end of the outage",
		onlyHelped: "only with help: if then all callers stay away for " + inWords(relief),
		neverBack:  "not even so; or it cannot bear that load in peace",
	}
}

func (m stabilityMap) rows() string {
	faults := 0
	for i := range m.scenario.Services {
		faults += len(m.scenario.Services[i].Faults)
	}
	if faults < 2 {
		return "length of the outage"
	}
	return "length of the outage, from the beginning of the first fault to the end of the last: all are stretched alike"
}

func (m stabilityMap) capacity() string {
	if n := m.scenario.Capacity(); n > 0 {
		return fmt.Sprintf("; the service can do %s", grouped(n))
	}
	return ""
}

func (m stabilityMap) runs() (n int) {
	for _, row := range m.of {
		for _, s := range row {
			n += s.Runs
		}
	}
	return n
}

func loadInWords(l float64) string { return trimmed(l, 3) }

// block prints maps of one policy beside one another, with a mark for where it never comes back.
func (m stabilityMap) block(out io.Writer, never string, maps ...sim.Stability) {
	heads := []string{""}
	for i := range maps {
		head := "any fleet"
		if len(maps) > 1 || len(m.sizes) == 1 {
			head = each(m.sizes[i], "1 process", "processes")
		}
		heads = append(heads, head)
	}
	width := max(len(maps[0].Loads), 15)
	line := func(cells []string) {
		text := fmt.Sprintf("%8s", cells[0])
		for _, c := range cells[1:] {
			text += "  " + term.Pad(c, width)
		}
		fmt.Fprintln(out, strings.TrimRight(text, " "))
	}
	line(heads)
	for d, outage := range maps[0].Outages {
		cells := []string{inWords(outage)}
		for _, s := range maps {
			var row strings.Builder
			for l := range s.Loads {
				mark := never
				if at := state(s, l, d); at != neverBack {
					mark = marks[at]
				}
				row.WriteString(mark)
			}
			cells = append(cells, row.String())
		}
		line(cells)
	}
}

type jsonStability struct {
	Schema   int        `json:"schema"` // 1
	Scenario any        `json:"scenario"`
	Seed     uint64     `json:"seed"`
	Capacity figure     `json:"capacity,omitempty"`
	Loads    []figure   `json:"loads"` // calls a second
	Outages  []figure   `json:"outages_s"`
	Theory   []int      `json:"theory"` // null if there is none
	Maps     []jsonZone `json:"maps"`
}

// jsonZone is the map of a policy and a fleet: for each outage, at how many loads it comes back by itself, and with help.
type jsonZone struct {
	Policy    string `json:"policy"`
	Processes int    `json:"processes"`
	Back      []int  `json:"back"`
	Helped    []int  `json:"helped"`
	Runs      int    `json:"runs"`
}

func (m stabilityMap) printJSON(w io.Writer) error {
	first := m.of[0][0]
	v := jsonStability{Schema: 1, Scenario: plainData(m.scenario), Seed: m.seed, Capacity: figure(m.scenario.Capacity()), Loads: figuresOf(first.Loads), Theory: first.Theory}
	v.Outages = choice.Each(first.Outages, func(d time.Duration) figure { return figure(d.Seconds()) })
	for p, c := range m.contenders {
		for n, s := range m.of[p] {
			v.Maps = append(v.Maps, jsonZone{c.Name, m.sizes[n], s.Back, s.Helped, s.Runs})
		}
	}
	return json.NewEncoder(w).Encode(v)
}
