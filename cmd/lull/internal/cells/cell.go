// Package cells divides a run into cells that can run anywhere, in any order, and joins their results again.
//
// A [Cell] is one simulation as data: a scenario, a policy and a seed. Its result depends on nothing
// else, so it does not matter where and when it runs. Its key is a digest of all of it and of the build
// of lull. The key alone identifies a result. So a part of a run needs no number of its own, the
// results of an interrupted part are useful, and a cell that two runs share runs once.
//
// A [Where] is where cells run: here, on another machine that was given a part (--cells, --merge),
// or by workers (--workers URL).
package cells

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

// A Cell is one simulation, and everything that its result depends on.
type Cell struct {
	Wanted    Wanted
	Scenario  sim.Scenario
	Contender Contender
	Named     []Contender `json:",omitempty"` // policies that the scenario names
	Seed      uint64
	Relief    time.Duration `json:",omitempty"` // of a map
}

// Wanted is what a cell gives.
type Wanted string

const (
	Run     Wanted = "run"     // a flight, with its series
	Totals  Wanted = "totals"  // a flight without its series
	Figures Wanted = "figures" // what the battery judges a flight by
	Map     Wanted = "map"     // a map of metastability
)

// A Contender is a sim.Contender as data.
type Contender struct {
	Name   string
	Preset string `json:",omitempty"` // whose options and verdicts it has; empty: it has none
	Policy lull.Policy
	Holds  bool `json:",omitempty"`
}

// ContenderOf returns c as data. preset is the name of the preset that it was made of, if any.
func ContenderOf(c sim.Contender, preset string) Contender {
	return Contender{Name: c.Name, Preset: preset, Policy: c.Policy, Holds: c.Holds}
}

func (c Contender) contender() (sim.Contender, error) {
	of := sim.Contender{Name: c.Name, Policy: c.Policy, Holds: c.Holds}
	if c.Preset != "" {
		p, err := rivals.Find(c.Preset)
		if err != nil {
			return of, err
		}
		of.Options, of.Verdict = p.Options(), p.Reads.Verdict
	}
	return of, nil
}

// A Result is what a cell gives: one of them is set.
type Result struct {
	Run     *sim.Result      `json:"run,omitempty"`
	Figures *battery.Figures `json:"figures,omitempty"`
	Map     *sim.Stability   `json:"map,omitempty"`
}

// Key is a digest of the cell and of the build of lull.
func (c *Cell) Key() (string, error) {
	named := *c
	named.Scenario.Name, named.Scenario.Title = "", ""
	text, err := json.Marshal(named)
	if err != nil {
		return "", fmt.Errorf("%s with %s: %w", c.Scenario.Name, c.Contender.Name, err)
	}
	sum := sha256.Sum256(append([]byte(Build()+"\n"), text...))
	return hex.EncodeToString(sum[:16]), nil
}

// Fly runs the cell. If ctx ends, it returns what it has with the context's error.
func (c *Cell) Fly(ctx context.Context, progress func(sim.Progress)) (Result, error) {
	of, err := c.Contender.contender()
	if err != nil {
		return Result{}, err
	}
	var named []sim.Contender
	for _, n := range c.Named {
		other, err := n.contender()
		if err != nil {
			return Result{}, err
		}
		named = append(named, other)
	}
	if c.Wanted == Map {
		m, err := sim.FindStability(ctx, c.Scenario, of, sim.StabilityOptions{Seed: c.Seed, Named: named, Relief: c.Relief})
		return Result{Map: &m}, err
	}
	r, err := sim.Run(ctx, c.Scenario, of, sim.Options{Seed: c.Seed, Named: named, Progress: progress})
	switch c.Wanted {
	case Run:
	case Totals:
		r.Series = sim.Series{}
	case Figures:
		f := battery.FiguresOf(&r)
		return Result{Figures: &f}, err
	default:
		return Result{}, fmt.Errorf("a cell that wants %q: want run, totals, figures or map", c.Wanted)
	}
	return Result{Run: &r}, err
}

// Build names the build of this program: the version that the Go tool gave it, or a digest of the program where it
// has none or its source was changed. Two builds of the same name give the same results.
var Build = sync.OnceValue(func() string {
	if v := cli.ModuleVersion(); v != "" && !strings.Contains(v, "+dirty") {
		return v
	}
	sum := sha256.New()
	self, err := os.Executable()
	if err == nil {
		var program *os.File
		if program, err = os.Open(self); err == nil {
			defer program.Close()
			_, err = io.Copy(sum, program)
		}
	}
	if err != nil {
		return "unknown"
	}
	return "program " + hex.EncodeToString(sum.Sum(nil)[:8])
})
