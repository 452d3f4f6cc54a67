package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// recovered returns a summary of runs that recovered after so many seconds. After a negative number a run did not recover.
func recovered(name string, success float64, after ...float64) sim.Summary {
	m := sim.Summary{Contender: sim.Contender{Name: name}, Success: sim.Estimate{Mean: success, Half: 0.01}}
	for _, s := range after {
		r := sim.Result{Seed: uint64(len(m.Results) + 1), Recovery: sim.Recovery{Measured: true}}
		if s >= 0 {
			r.Recovery.Recovered, r.Recovery.Time = true, seconds(s)
			m.Recovery.Mean += s
			m.Recovered++
		}
		m.Results = append(m.Results, r)
	}
	m.Recovery.Mean /= float64(max(m.Recovered, 1))
	return m
}

func TestBestFiguresAreMarked(t *testing.T) {
	all := []sim.Summary{
		recovered("quick", 0.9, 8, 10),
		recovered("lucky", 0.885, 2, -1), // not the quickest: one seed did not recover
		recovered("stuck", 0.4, -1, -1),
		{},
	}
	columns := []column{backColumn, successColumn, perCallColumn}
	table := pageTable(columns, all)
	markBest(table, columns, all)
	var got []string
	for _, row := range table.Rows {
		for _, c := range row.Cells {
			text := c.Text
			if c.Best {
				text += "*"
			}
			got = append(got, text)
		}
	}
	// The intervals of the first two shares touch.
	want := "9 s*, 90.0% ±1.0*, 0.00 ±0.00; 1/2 2 s, 88.5% ±1.0*, 0.00 ±0.00; never, 40.0% ±1.0, 0.00 ±0.00; -, -, -"
	check.Equal(t, strings.Join(got, ", "), strings.ReplaceAll(want, "; ", ", "), "strings.Join(got, \", \")")
	alike := []sim.Summary{recovered("a", 1, 5), recovered("b", 1, 5)}
	table = pageTable(columns, alike)
	markBest(table, columns, alike)
	if slices.ContainsFunc(table.Rows, func(r report.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c report.Cell) bool { return c.Best })
	}) {
		t.Errorf("all are alike, and one is the best: %+v", table.Rows)
	}
	if runs := seedTable(columns, all).Rows; len(runs) != 6 || runs[3].Cells[0].Text != "2" || runs[3].Cells[1].Text != "never" {
		t.Errorf("of each seed: %+v", runs)
	}
}

func TestCellsOfASweep(t *testing.T) {
	quiet := sim.Summary{Success: sim.Estimate{Mean: 1}, Results: []sim.Result{{}}}
	for want, m := range map[string]sim.Summary{
		"1 s/99.9%/level-0":      recovered("", 0.999, 1, 1),
		"100 s/90.0%/level-4":    recovered("", 0.9, 100),
		"–/100%/blank":           quiet,
		"1/2 · 20 s/50.0%/mixed": recovered("", 0.5, 20, -1),
		"✗ never/0%/never":       recovered("", 0, -1),
		"?//blank":               {},
		"10 s/90.0%/level-2":     recovered("", 0.9, 10),
	} {
		c := sweepCell(m, 1, 100)
		check.Equal(t, c.Text+"/"+c.More+"/"+c.Class, want, "c.Text + \"/\" + c.More + \"/\" + c.Class")
	}
}

func TestWindows(t *testing.T) {
	second := time.Second
	s := sim.Scenario{
		Horizon: 100 * second,
		Services: []sim.Service{
			{Name: "db", Hosts: 10, Faults: []sim.Fault{
				{Kind: sim.Stall, At: 20 * second, For: 5 * second},
				{Kind: sim.SlowDown, At: 90 * second, For: 60 * second, Hosts: 1},
				{Kind: sim.Crash, At: 500 * second, For: second},
			}},
			{Name: "web", Faults: []sim.Fault{
				{Kind: sim.Errors, At: 10 * second, For: 2 * second, Every: 30 * second, Share: 0.25},
			}},
		},
		Fleets: []sim.Fleet{
			{Name: "apps", Arrivals: sim.Arrivals{Rate: 10, Ramp: []sim.RampPoint{{At: 0, Factor: 0.5}, {At: 50 * second, Factor: 0.5}, {At: 60 * second, Factor: 2}, {At: 70 * second, Factor: 0.5}}}},
			{Name: "slow", Arrivals: sim.Arrivals{Rate: 10, Ramp: []sim.RampPoint{{At: 0, Factor: 1}, {At: 100 * second, Factor: 3}}}}, // no surge: the load stays high
			{Name: "herd", Processes: 1000, Arrivals: sim.Arrivals{Kind: sim.AtOnce, At: 5 * second, Each: 3}},
		},
	}
	var got []string
	for _, w := range pageWindows(s) {
		got = append(got, fmt.Sprintf("%v to %v; %s; %s; %s", w.From, w.To, w.Kind, w.Mark, w.What))
	}
	want := []string{
		"5s to 5s; surge; at once; herd: 3,000 calls begin together",
		"10s to 12s; fault; web: errors; web: 25 % of attempts fail, every 30 s",
		"20s to 25s; fault; db: stall; db: workers stand still, attempts wait",
		"40s to 42s; fault; ; ",
		"50s to 1m10s; surge; load × 4; apps: up to 4 times as many calls",
		"1m10s to 1m12s; fault; ; ",
		"1m30s to 1m40s; fault; db: slow-down; db: on 1 of 10 hosts, work goes on at 10 % of its speed",
	}
	check.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "strings.Join(got, \"\\n\")")
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 25e6: "25000000", 0.1 + 0.2: "0.3", 1.0 / 3: "0.333333333", 123456.7890123: "123456.789", 1e-7: "1e-07", -2.5: "-2.5",
		math.Inf(1): "null", math.NaN(): "null", 1e20: "1e+20",
	} {
		text, err := json.Marshal(figure(v))
		if err != nil || string(text) != want {
			t.Errorf("%v is %s (%v), want %s", v, text, err, want)
		}
	}
}

func TestPoliciesAsJSON(t *testing.T) {
	p := lull.Policy{
		Attempts: 4, AttemptTimeout: 1500 * time.Millisecond, Deadline: lull.NoTimeout,
		Backoff: backoff.Schedule{Kind: backoff.Linear, Base: time.Second, FastFirst: true},
	}
	const want = `{"attempts":4,"attempt_timeout_s":1.5,"deadline_s":-1,"backoff":{"kind":"linear","base_s":1,"fast_first":true}}`
	check.Equal(t, string(plainData(p)), want, "data")
	check.Equal(t, string(plainData(lull.Policy{})), "{}", "the zero Policy")
}

func TestScenariosAsJSON(t *testing.T) {
	var out bytes.Buffer
	must.Succeed(json.Indent(&out, plainData(fixedScenario()), "", "  "))
	golden.File(t, "testdata/fixed-scenario.json", out.String()+"\n")
}

func TestCommandCanBeRepeated(t *testing.T) {
	f := Command{
		Scenario: "my file.yaml", Policy: cli.Texts{"none,lull", "x.yaml"}, Set: cli.Texts{"services.0.time={kind: fixed, mean: 1s}"},
		Sweep: cli.Texts{"clients=1,2"}, Seed: "1", Seeds: "3", Report: "o'brien.html", Clients: "25M", Horizon: "10s", Flags: cells.Flags{Workers: "2"}, JSON: true,
	}
	const want = `lull simulate 'my file.yaml' --policy none,lull --policy x.yaml --clients 25M --horizon 10s --set 'services.0.time={kind: fixed, mean: 1s}' --sweep clients=1,2 --seed 1 --seeds 3 --report 'o'\''brien.html'`
	check.Equal(t, f.command(), want, "f.command()")
}

// What became of messages stands beside the totals, and without topics nothing does.
func TestTopicsAsJSON(t *testing.T) {
	r := sim.Result{Topics: []sim.TopicResult{{
		Name: "orders", Sent: 5, Handled: 3, Dead: 1, Left: 1, Reasons: map[string]int64{"crashed": 1}, Attempts: 9, Disturbed: 4,
		Deferred: 2, Lapsed: 1, Caught: true, CaughtUp: 1500 * time.Millisecond,
	}, {Name: "mail"}}}
	text := plainData(r.Topics)
	const want = `[{"name":"orders","sent":5,"handled":3,"dead":1,"left":1,"reasons":{"crashed":1},"attempts":9,"attempts_during_faults":4,"deferred":2,"lapsed":1,"caught_up_s":1.5},` +
		`{"name":"mail","sent":0,"handled":0,"dead":0,"left":0,"reasons":null,"attempts":0,"attempts_during_faults":0,"deferred":0,"lapsed":0,"caught_up_s":null}]`
	check.Equal(t, string(text), want, "text")
	if text := plainData(runOf(sim.Result{})); bytes.Contains(text, []byte("topics")) {
		t.Errorf("topics without any: %s", text)
	}
}
