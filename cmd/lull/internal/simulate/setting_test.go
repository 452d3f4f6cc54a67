package simulate

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func TestBadSimulateFlagsSayWhatIsAllowed(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel() // a run that should not have begun ends at once
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"metastable-stal"}, []string{"SCENARIO", "did you mean metastable-stall", ".yaml"}},
		{[]string{"none.yaml"}, []string{"none.yaml", "no such file"}},
		{[]string{"--policy", "grpx"}, []string{"--policy", "grpc", ".yaml"}},
		{[]string{"--policy", "./none.yml"}, []string{"none.yml", "no such file"}},
		{[]string{"--policy", "lull,none,lull"}, []string{"--policy", `"lull" twice`}},
		{[]string{"--policy"}, []string{"--policy", "missing"}},
		{[]string{"--policy="}, []string{"--policy", `""`}},
		{[]string{"--seed", "-1"}, []string{"--seed", `"-1"`}},
		{[]string{"--seeds", "0"}, []string{"--seeds", "from 1 to 1000"}},
		{[]string{"--workers", "0"}, []string{"--workers", "from 1"}},
		{[]string{"--clients", "1.5"}, []string{"--clients", `"1.5"`, "25M"}},
		{[]string{"--clients", "0"}, []string{"--clients", `"0"`, "25M"}},
		{[]string{"--horizon", "10"}, []string{"--horizon", `"10"`, "a duration"}},
		{[]string{"--set", "horizon"}, []string{"--set horizon", "PATH=VALUE"}},
		{[]string{"--set", "fleets.0.arrivals.rat=1"}, []string{"--set fleets.0.arrivals.rat=1", "rate"}},
		{[]string{"--set", "services.0.workers=many"}, []string{"services.0.workers", "many"}},
		{[]string{"--set", "services.0.workers=-1"}, []string{"services.0.workers is -1"}},
		{[]string{"--set", "policy.attempts=-1"}, []string{"policy lull.Attempts is -1"}},
		{[]string{"--set", "policy.atempts=1"}, []string{"atempts", "attempts"}},
		{[]string{"--set", "policy.attempts=2", "--policy=none"}, []string{"presets stay"}},
		{[]string{"--set", "clients=x"}, []string{"--set clients=x", "25M"}},
		{[]string{"--sweep", "clients"}, []string{"--sweep", `"clients"`, "a,b,c"}},
		{[]string{"--sweep", "clients=1,,2"}, []string{"--sweep", "a,b,c"}},
		{[]string{"--sweep", "clients=1,1"}, []string{"--sweep", "a,b,c"}},
		{[]string{"--sweep", "clients=1..5/0"}, []string{"--sweep", "from..to/step"}},
		{[]string{"--sweep", "clients=5..1/1"}, []string{"--sweep", "from..to/step"}},
		{[]string{"--sweep", "clients=1..5s/1"}, []string{"--sweep", "from..to/step"}},
		{[]string{"--sweep", "clients=1..1000/1", "--sweep=horizon=1s,2s,3s"}, []string{"--sweep", "3000 combinations", "2500"}},
		{[]string{"--sweep", "clients=1,2", "--sweep=clients=1,2"}, []string{"--sweep", "clients twice"}},
		{[]string{"--sweep", "a=1,2", "--sweep=b=1", "--sweep=c=1"}, []string{"--sweep", "given 3 times"}},
		{[]string{"--sweep", "fleets.0.x=1,2"}, []string{"--sweep fleets.0.x=1", "--sweep fleets.0.x=2", "arrivals"}},
		{[]string{"--json", "--csv"}, []string{"--json with --csv", "one of them"}},
		{[]string{"--report", "/no/such/place.html"}, []string{"--report", "/no/such/place.html", "can be written"}},
		{[]string{"--report", "--json"}, []string{"--report", `"--json"`, "a file"}},
		{[]string{"--horizon", "9000h"}, []string{"events", " h", "--horizon", "--force"}},
		{[]string{"--polcy", "lull"}, []string{"--polcy", "--policy"}},
	} {
		code, stdout, stderr := lullProgram(over, c.args...)
		if code != cli.Misused || stdout != "" {
			t.Errorf("%v: exit code %d, stdout %.200q; want %d and nothing", c.args, code, stdout, cli.Misused)
		}
		for _, part := range c.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("%v: message lacks %q:\n%s", c.args, part, stderr)
			}
		}
	}
}

func TestAllBadSimulateFlagsAreReportedAtOnce(t *testing.T) {
	_, _, stderr := lullProgram(t.Context(), "--policy=x,lull,y.yaml", "--seed=x", "--seeds=x", "--clients=x", "--horizon=x",
		"--workers=x", "--set=x=1", "--sweep=x", "--json", "--csv", "none.yaml")
	if n := strings.Count(stderr, "\n"); n != 10 { // --set needs a scenario
		t.Errorf("%d lines for 10 mistakes:\n%s", n, stderr)
	}
	_, _, stderr = lullProgram(t.Context(), "--seed=x", "--set=x=1", "--set=y", "--clients=x")
	check.Equal(t, strings.Count(stderr, "\n"), 4, "lines for 4 mistakes:\n%s", stderr)
}

func TestProcesses(t *testing.T) {
	for v, want := range map[string]int{
		"1": 1, "500": 500, "100k": 100_000, "25M": 25_000_000, "0.1k": 100, "1.5K": 1500, "2G": 2_000_000_000, "1e6": 1_000_000,
		"0": 0, "": 0, "k": 0, "-1": 0, "1.5": 0, "NaN": 0, "Inf": 0, "1001G": 0, "5x": 0, "1e300": 0,
	} {
		got, err := processes(v)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("processes(%q) = %d, %v; want %d", v, got, err, want)
		}
	}
}

func TestValuesOfASweep(t *testing.T) {
	for list, want := range map[string]string{
		"1,2,3":              "1 2 3",
		"a, b":               "a b",
		"1s..10s/3s":         "1s 4s 7s 10s",
		"1s..10s/4s":         "1s 5s 9s",
		"500ms..1.5s/500ms":  "500ms 1s 1.5s",
		"0.1..0.5/0.1":       "0.1 0.2 0.3 0.4 0.5",
		"5..5/1":             "5",
		"200..800/300":       "200 500 800",
		"1..10":              "",
		"1..10/0":            "",
		"1..10/-1":           "",
		"10..1/1":            "",
		"1..1e9/1":           "",
		"NaN..1/1":           "",
		"1..Inf/1":           "",
		"1..5/NaN":           "",
		"":                   "",
		"1,":                 "",
		"2,2":                "",
		"1s..5/1":            "",
		"0s..9999999h/2540h": "",
	} {
		got, err := valuesOf(list)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("valuesOf(%q) = %q, %v; want %q", list, got, err, want)
		}
	}
}

func TestCellsGoRowByRow(t *testing.T) {
	var got []string
	for _, cell := range cellsOf([]sweepAxis{{"a", []string{"1", "2"}}, {"b", []string{"x", "y"}}}) {
		got = append(got, cell[0].assignment+" "+cell[1].assignment)
	}
	check.Slices(t, got, []string{"a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"}, "cells")
	o := outcome{simulation: simulation{axes: []sweepAxis{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}}}}
	for i, want := range []string{"1 x", "1 y", "1 z", "2 x", "2 y", "2 z"} {
		check.Equal(t, strings.Join(o.valuesAt(i), " "), want, "values of cell %d", i)
	}
}

func TestEstimatesAreChecked(t *testing.T) {
	const gib = 1 << 30
	ok := estimate{memory: gib, time: time.Minute, runs: 4, parallel: 2, processes: 25_000_000, horizon: time.Minute}
	check.Equal(t, ok.check(2*gib), nil, "refused")
	for _, c := range []struct {
		change func(*estimate)
		want   []string
	}{
		{func(e *estimate) { e.memory = 3 * gib }, []string{"3 GiB of memory, of which 2 GiB are free", "25,000,000 processes", "--clients", "--workers 1", "--force"}},
		{func(e *estimate) { e.time = 2 * time.Hour }, []string{"120 min", "--horizon", "--seeds"}},
		{func(e *estimate) { e.memory, e.time = 3*gib, 5*time.Hour }, []string{"3 GiB", "5 h", "--clients", "--horizon"}},
	} {
		e := ok
		c.change(&e)
		err := e.check(2 * gib)
		if _, isList := err.(problem.List); !isList {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("lacks %q: %v", part, err)
			}
		}
	}
}

func TestMemAvailable(t *testing.T) {
	const text = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    2097152 kB\n"
	if n, ok := memAvailable(text); !ok || n != 2<<30 {
		t.Errorf("%d, %v; want 2 GiB", n, ok)
	}
	for _, text := range []string{"", "MemAvailable:", "MemAvailable: x kB", "MemAvailable: -5 kB", "MemAvailable: 9223372036854775807 kB"} {
		if n, ok := memAvailable(text); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
	if availableMemory() <= 0 {
		t.Error("no memory")
	}
}

// raced is set when the race detector is on.
var raced bool

// Some scenarios of the library are flown twice. The lab's suite does it with all.
func TestScenariosGiveTheSameBytes(t *testing.T) {
	for i, s := range scenario.BuiltIn() {
		if i%8 == 0 {
			givesTheSameBytes(t, s)
		}
	}
}

// givesTheSameBytes flies a scenario twice, small: one run at a time on one core, and two at a time on all cores. The
// output is the same bytes.
func givesTheSameBytes(t *testing.T, s sim.Scenario) {
	t.Run(s.Name, func(t *testing.T) {
		horizon := min(s.Horizon, 125*time.Second) // the faults begin after two minutes at most
		args := []string{s.Name, "--policy", "full-jitter,lull", "--json", "--quiet", "--seed", "7", "--clients", "20", "--horizon", horizon.String()}
		first := simulate(t, append(args, "--workers", "2")...)
		if !raced {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		}
		if again := simulate(t, append(args, "--workers", "1")...); again != first {
			t.Error("two runs at a time, on all cores, give other figures than one at a time on one core")
		}
	})
}
