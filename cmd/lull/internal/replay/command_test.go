package replay

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// files writes a world and the policy that ran, and returns their names.
func files(t *testing.T, change func(s *sim.Scenario, l *scenario.Learned)) (world, policy string) {
	s := stalled()
	l := scenario.Learned{
		Observed: observe(s, now, 77, time.Second, false),
		Values:   []scenario.Interval{{Path: "services.0.workers", Low: "19", High: "21", By: "busy times"}, {Path: "services.0.errors", Low: "0.1%", High: "0.3%"}},
		Unknown:  []scenario.Question{{Path: "services.0.queue.limit", Least: "100", Ask: "How many may wait?", Needs: "a time in which some are turned away"}},
		Seen:     []scenario.Fact{{What: "attempt timeout", Low: "990ms", High: "1.01s", By: "a spike"}},
	}
	change(&s, &l)
	folder := t.TempDir()
	policies := must.Have(config.FormatPolicies([]config.NamedPolicy{{Name: "now", Policy: now}}))
	return clitest.Write(t, filepath.Join(folder, "world.yaml"), string(must.Have(scenario.FormatLearned(s, l)))),
		clitest.Write(t, filepath.Join(folder, "policy.yaml"), string(policies))
}

func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: ctx}, "replay", args...)
}

// The whole output, of a world that is right and of one that is not.
func TestCommand(t *testing.T) {
	for file, change := range map[string]func(s *sim.Scenario, l *scenario.Learned){
		"reproduced": func(s *sim.Scenario, l *scenario.Learned) {},
		"refused":    func(s *sim.Scenario, l *scenario.Learned) { s.Services[0].Workers, l.Values = 14, nil },
	} {
		world, policy := files(t, change)
		code, out, errs := run(t.Context(), world, "--policy", "lull,none,"+policy, "--seeds", "4")
		clitest.Width(t, out, 80)
		golden.File(t, "testdata/"+file+".txt", out)
		if refused := file == "refused"; code != map[bool]int{true: cli.Failed}[refused] || strings.Contains(errs, "no answer") != refused {
			t.Errorf("%s: exit code %d, %s", file, code, errs)
		}
	}
}

func TestJSONAndPage(t *testing.T) {
	world, policy := files(t, func(s *sim.Scenario, l *scenario.Learned) { l.Observed.P50[3] = -1 })
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := run(t.Context(), world, "--policy", policy+",none", "--seeds", "4", "--json", "--report", page)
	var got struct {
		Ran        string
		Reproduced bool
		Distances  []struct {
			Figure              string
			Observed, Simulated []*float64
		}
		Draws    [][]string
		Policies []struct {
			Name    string
			Flights []struct {
				Back     float64
				Recovery struct {
					From float64 `json:"from_s"`
					Time float64 `json:"time_s"`
				}
			}
		}
	}
	must.Succeed(json.Unmarshal([]byte(out), &got))
	if code != cli.OK || errs != "" || got.Ran != "now" || !got.Reproduced || len(got.Distances) != figures || len(got.Policies) != 2 || len(got.Draws) == 0 {
		t.Errorf("exit code %d, %s, ran %s, reproduced %v, %d policies", code, errs, got.Ran, got.Reproduced, len(got.Policies))
	}
	for _, f := range got.Policies[0].Flights {
		if back := f.Recovery.From + f.Recovery.Time - 60; math.Abs(f.Back-back) > 1e-6 || back < 15 {
			t.Errorf("back after %v s, want %v: the incident begins after 60 s", f.Back, back)
		}
	}
	if times := got.Distances[p50].Observed; len(times) != 180 || times[3] != nil || times[4] == nil {
		t.Errorf("%d observed times, want 180, and null where none is known", len(times))
	}
	html := string(must.Have(os.ReadFile(page)))
	for _, want := range []string{"lull replay", "what was measured", "The incident is reproduced", `id="chart-calls"`, `id="chart-good"`, `id="chart-p99"`, "--policy " + policy + ",none --seeds 4", "place 1; "} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	check.Equal(t, strings.Count(html, `<figure class="chart`), figures, "charts")
}

// spike has more come, to a service whose capacity is not known.
func spike(s *sim.Scenario) {
	s.Services[0].Faults, s.Services[0].Workers = nil, 0
	s.Services[0].Queue = sim.Queue{}
	s.Fleets[0].Arrivals.Ramp = []sim.RampPoint{{Factor: 1}, {At: time.Minute, Factor: 1}, {At: time.Minute, Factor: 2.5}, {At: 75 * time.Second, Factor: 2.5}, {At: 75 * time.Second, Factor: 1}}
}

// What the file does not know, a person can write into it.
func TestCapacityFromAPerson(t *testing.T) {
	world, policy := files(t, func(s *sim.Scenario, l *scenario.Learned) {
		spike(s)
		s.Services[0].Workers, s.Services[0].Queue.Limit = 20, 400
		l.Observed = observe(*s, now, 77, time.Second, false)
		l.Values, l.Unknown = nil, []scenario.Question{{Path: "services.0.workers", Ask: "How many requests can it work on at a time?"}}
	})
	if code, out, errs := run(t.Context(), world, "--policy", "lull,"+policy, "--seeds", "4"); code != cli.OK {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// After a stall the service's capacity decides who is back when: without it there is no answer. After errors that come at once there is.
func TestCapacityMustBeKnown(t *testing.T) {
	for kind, want := range map[sim.FaultKind]int{sim.Stall: cli.Failed, sim.Errors: cli.OK} {
		world, policy := files(t, func(s *sim.Scenario, l *scenario.Learned) {
			s.Services[0].Faults[0].Kind, s.Services[0].Workers, s.Services[0].Queue = kind, 0, sim.Queue{}
			l.Observed = observe(*s, now, 77, time.Second, false)
			l.Values, l.Unknown = nil, []scenario.Question{{Path: "services.0.workers", Ask: "How many requests can it work on at a time?"}}
		})
		code, out, errs := run(t.Context(), world, "--policy", "lull,"+policy, "--seeds", "4")
		if open := strings.Contains(out, "services.0.workers: How many"); code != want || !open || strings.Contains(errs, "too little is known") != (want == cli.Failed) || !strings.Contains(out, "is reproduced") {
			t.Errorf("%v: exit code %d, %s\n%s", kind, code, errs, out)
		}
	}
}

// The policy called now is the one that ran, wherever it stands.
func TestTheOneThatRan(t *testing.T) {
	world, policy := files(t, func(s *sim.Scenario, l *scenario.Learned) {})
	for policies, want := range map[string]string{"none,lull": "none", "none," + policy: "now"} {
		_, out, _ := run(t.Context(), world, "--policy", policies, "--seeds", "2")
		if !strings.Contains(out, "The policy that ran: "+want+".") {
			t.Errorf("%s: want %s to be the one that ran\n%s", policies, want, out)
		}
	}
}

// Of several services the first was observed. It alone flies.
func TestSeveralServices(t *testing.T) {
	world, policy := files(t, func(s *sim.Scenario, l *scenario.Learned) {
		s.Services = append(s.Services, sim.Service{Name: "other", Errors: 0.5, Faults: []sim.Fault{{Kind: sim.Stall, At: 2 * time.Minute, For: time.Minute}}})
		s.Fleets = append(s.Fleets, sim.Fleet{Calls: "other", Arrivals: sim.Arrivals{Rate: 1000}})
		l.Values = []scenario.Interval{{Path: "services.1.errors", Low: "40%", High: "60%"}}
	})
	code, out, errs := run(t.Context(), world, "--policy", policy, "--seeds", "4")
	if code != cli.OK || !strings.Contains(out, "incident from 60 to 75 s") || !strings.Contains(strings.Join(strings.Fields(out), " "), "It is of service.") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		change func(s *sim.Scenario, l *scenario.Learned)
		args   string
		want   string
	}{
		{nil, "--seeds 1", `--seeds is "1": want a whole number from 2 to 1000`},
		{nil, "--tolerance 2", `--tolerance is "2": want a number from 0 to 1, such as 0.2`},
		{nil, "--policy nobody", `--policy: no preset is called "nobody"`},
		{nil, "--report .", `--report: . cannot be written: is a directory`},
		{func(s *sim.Scenario, l *scenario.Learned) { l.Observed = scenario.Observed{} }, "", `learned.observed is missing: want what was observed, in a file that lull learn has written`},
		{func(s *sim.Scenario, l *scenario.Learned) { s.Services[0].Faults = nil }, "", `services.0.faults is empty: want an incident`},
		{func(s *sim.Scenario, l *scenario.Learned) { spike(s) }, "", `services.0.workers is not known: want how many requests it can work on at a time`},
		{func(s *sim.Scenario, l *scenario.Learned) {
			for i := range l.Observed.Calls {
				l.Observed.Calls[i], l.Observed.Attempts[i] = -1, -1
			}
		}, "", `learned.observed is unknown: want calls or attempts, and failures or times, of at least one step`},
		{func(s *sim.Scenario, l *scenario.Learned) {
			for i := range l.Observed.Calls {
				l.Observed.Failed[i], l.Observed.P50[i], l.Observed.P99[i] = -1, -1, -1
			}
		}, "", `learned.observed is unknown: want calls or attempts, and failures or times, of at least one step`},
		{func(s *sim.Scenario, l *scenario.Learned) {
			for i := range l.Observed.Failed {
				if at := time.Duration(i) * l.Observed.Step; at >= time.Minute && at < 75*time.Second {
					l.Observed.Failed[i], l.Observed.P50[i], l.Observed.P99[i] = -1, -1, -1
				}
			}
		}, "", `learned.observed is nothing from 60 to 75 s: want failures or times in the incident`},
	} {
		if c.change == nil {
			c.change = func(*sim.Scenario, *scenario.Learned) {}
		}
		world, policy := files(t, c.change)
		code, out, errs := run(t.Context(), append([]string{world, "--policy", policy}, strings.Fields(c.args)...)...)
		if code != cli.Misused || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("exit code %d, printed %q and %q, want %q", code, out, errs, c.want)
		}
	}
	if code, _, errs := run(t.Context(), "no.yaml"); code != cli.Misused || !strings.Contains(errs, "--policy is missing: want the policy that ran") || !strings.Contains(errs, "no.yaml cannot be read") {
		t.Errorf("without a policy and a world: exit code %d, %s", code, errs)
	}
	plain := clitest.Write(t, filepath.Join(t.TempDir(), "plain.yaml"), string(must.Have(scenario.Format(stalled()))))
	if code, _, errs := run(t.Context(), plain, "--policy=none"); code != cli.Misused || !strings.Contains(errs, "learned.observed is missing") {
		t.Errorf("a scenario that was not learned: exit code %d, %s", code, errs)
	}
}

func TestInterrupted(t *testing.T) {
	world, policy := files(t, func(*sim.Scenario, *scenario.Learned) {})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, errs := run(over, world, "--policy", policy); code != cli.Failed || out != "" || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit code %d, printed %q and %q", code, out, errs)
	}
}
