package tune

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// stalled is a learned world: 20 calls/s of ten processes, whose attempts take 20 ms on average, exponentially, and a stall.
// Callers wait as long as they were seen to.
func stalled(samples int, seen time.Duration) (sim.Scenario, scenario.Learned) {
	s := sim.Scenario{
		Name: "stalled", Horizon: 150 * time.Second,
		Services: []sim.Service{{Name: "api", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: exponentialTimes(20*time.Millisecond, samples),
			ErrorTime: time.Millisecond, Errors: 0.002, CancelWork: true,
			Faults: []sim.Fault{{Kind: sim.Stall, At: 30 * time.Second, For: 30 * time.Second}}}},
		Fleets: []sim.Fleet{{Name: "clients", Calls: "api", Processes: 10, Arrivals: sim.Arrivals{Rate: 20}}},
	}
	l := scenario.Learned{From: []string{"nginx: 20,000 lines"}}
	if seen > 0 {
		l.Seen = []scenario.Fact{{What: "attempt timeout", Low: (seen - seen/100).String(), High: (seen + seen/100).String(), By: "a spike"}}
	}
	return s, l
}

// exponentialTimes is a histogram of that many attempts.
func exponentialTimes(mean time.Duration, samples int) sim.Distribution {
	r := rand.New(rand.NewPCG(1, 2))
	return histogramOf(samples, func() time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) })
}

// histogramOf is a histogram of n times, in bars of 2 %.
func histogramOf(n int, draw func() time.Duration) sim.Distribution {
	counts, most := map[int]float64{}, 0
	for range n {
		k := max(int(math.Ceil(math.Log(float64(draw())/1e4)/math.Log(1.02))), 0)
		counts[k]++
		most = max(most, k)
	}
	d := sim.Distribution{Kind: sim.Histogram}
	for k := range most + 1 {
		d.Bars = append(d.Bars, sim.Bar{UpTo: time.Duration(1e4 * math.Pow(1.02, float64(k))), Weight: counts[k]})
	}
	return d
}

// worldFile writes a world.
func worldFile(t *testing.T, s sim.Scenario, l scenario.Learned) string {
	return clitest.Write(t, filepath.Join(t.TempDir(), "world.yaml"), string(must.Have(scenario.FormatLearned(s, l))))
}

func tune(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: t.Context()}, "tune", append(args, "--quiet")...)
}

// Without enough attempts the answer has how many more are wanted.
func TestTooFewAttempts(t *testing.T) {
	s, l := stalled(1000, time.Second)
	f := must.Have(factsOf(s, &l))
	if r := f.attemptTimeout(lull.Policy{}, goals{falseTimeouts: 0.001}); r.Value != "" || !strings.Contains(r.Why, "3000 are wanted, 2000 more") {
		t.Errorf("proposed %q, because %s", r.Value, r.Why)
	}
}

// Times that nobody saw are no data: those of attempts that were cut off, which the world assumes.
func TestAssumedTimesAreNoData(t *testing.T) {
	s, l := stalled(20_000, 10*time.Second)
	s.Services[0].Time.Bars = append(s.Services[0].Time.Bars, sim.Bar{UpTo: 20 * time.Second, Weight: 100})
	l.Unknown = []scenario.Question{{Path: "services.0.time", Ask: "How long would those have taken that were cut off?"}}
	f := must.Have(factsOf(s, &l))
	if r := f.attemptTimeout(lull.Policy{}, goals{falseTimeouts: 0.001}); r.Value != "" || !strings.Contains(r.Why, "cut off?") {
		t.Errorf("proposed %q, because %s", r.Value, r.Why)
	}
	if r := f.base(lull.Policy{}); r.Value == "" {
		t.Errorf("the median was seen: %s", r.Why)
	}
}

// Whatever the world, what is proposed is a valid policy, an attempt timeout repeats timeouts by the rule of the zero policy and
// cuts off no more healthy attempts than is accepted, and what the world does not know is left alone, with a reason.
func TestProposalsOfRandomWorlds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := goals{slo: 800 * time.Millisecond, target: 0.999, falseTimeouts: 0.001, hedgeLoad: 0.02}
	timeouts := 0
	for range 300 {
		mean := time.Duration(math.Exp(r.Float64()*9) * 1e5)
		n := int(math.Exp(r.Float64() * 10))
		s, l := stalled(10, time.Duration(r.IntN(20))*time.Second)
		s.Services[0].Time = exponentialTimes(mean, n)
		s.Services[0].Workers, s.Services[0].Errors = r.IntN(100), float64(r.IntN(10))/20
		s.Fleets[0].Processes, s.Fleets[0].Arrivals.Rate = r.IntN(1000), math.Exp(r.Float64()*8)
		if r.IntN(2) == 0 {
			s.Services[0].Faults = nil
		}
		for _, path := range []string{"services.0.workers", "fleets.0.processes"} {
			if r.IntN(3) == 0 {
				l.Unknown = append(l.Unknown, scenario.Question{Path: path, Ask: "How many?"})
			}
		}
		var p lull.Policy
		if r.IntN(2) == 0 {
			p.AttemptTimeout, p.Deadline, p.Backoff.Base, p.Breaker.OpenMax = 3*time.Second, 9*time.Second, 20*time.Millisecond, time.Minute
			p.Limit.InFlight, p.Budget.Stock = 1+r.IntN(50), 1+float64(r.IntN(100))
		}
		f := must.Have(factsOf(s, &l))
		for _, x := range propose(&f, p, g) {
			if x.Value == "" {
				if x.Why == "" {
					t.Fatalf("%s: neither a value nor a reason", x.Field)
				}
				continue
			}
			if x.Data == "" || x.Formula == "" || x.Price == "" {
				t.Fatalf("%s: without data, formula or price: %+v", x.Field, x)
			}
			for _, value := range append([]string{x.Value}, x.Looser...) {
				x.Value = value
				if _, err := x.in(p); err != nil {
					t.Fatalf("%s=%s: %v", x.Field, value, err)
				}
			}
			if x.Outside == (x.Allowed == "") && x.Outside {
				t.Fatalf("%s is outside of no interval", x.Field)
			}
			unknown := func(path string) bool { return f.learned.Asks(path) != "" }
			if x.Field == "budget.stock" && (unknown("services.0.workers") || unknown("fleets.0.processes")) || x.Field == "limit.in_flight" && unknown("fleets.0.processes") {
				t.Fatalf("%s=%s, of what is not known", x.Field, x.Value)
			}
		}
		if x := f.attemptTimeout(p, g); x.Value != "" {
			timeouts++
			d := must.Have(time.ParseDuration(x.Value))
			above := 0.0
			for i, b := range f.times.Bars {
				if i > 0 && f.times.Bars[i-1].UpTo >= d {
					above += b.Weight
				}
			}
			if above > g.falseTimeouts*float64(f.times.N) {
				t.Fatalf("%v of %d healthy attempts take longer than %v", above, f.times.N, d)
			}
			if _, median := f.times.ExceededBy(f.times.N / 2); d < 4*median {
				t.Fatalf("%v with a median of %v: the zero policy does not repeat timeouts", d, median)
			}
		}
	}
	if timeouts < 20 {
		t.Errorf("only %d attempt timeouts", timeouts)
	}
}

// A surge fills the line of a service, and callers wait for two seconds where a shorter time lets others be served: the service stops
// to work for those who have gone. The policy is written with its reasons, can be read, and passes its own check.
func TestATimeoutForASurge(t *testing.T) {
	s, l := stalled(20_000, 2*time.Second)
	v := &s.Services[0]
	v.Faults, v.Workers, v.Queue.Limit = nil, 2, 1000
	s.Fleets[0].Arrivals = sim.Arrivals{Rate: 50, Ramp: []sim.RampPoint{{At: time.Minute, Factor: 1}, {At: time.Minute, Factor: 3}, {At: 90 * time.Second, Factor: 3}, {At: 90 * time.Second, Factor: 1}}}
	folder := t.TempDir()
	world, policy, page := worldFile(t, s, l), filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "page.html")
	code, out, errs := tune(t, world, "--slo", "800ms@99.9", "--seeds", "3", "-o", policy, "--report", page)
	if code != cli.OK || errs != "" || !strings.HasPrefix(out, "Change ") || !strings.Contains(out, "attempt_timeout: 2s (seen), proposed ") || !strings.Contains(out, "\n+     attempt_timeout: ") {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	clitest.Width(t, out, 100)
	got := must.Have(config.ReadPolicies(policy))[0].Policy
	if got.AttemptTimeout < 130*time.Millisecond || got.AttemptTimeout > time.Second {
		t.Errorf("the attempt timeout is %v", got.AttemptTimeout)
	}
	text := string(must.Have(os.ReadFile(policy)))
	if !strings.Contains(text, "    # attempt_timeout was 2s (seen), and changes: better in learned") || !strings.Contains(text, "Data: 20000") || !strings.Contains(text, "Price: ") {
		t.Errorf("without its reasons:\n%s", text)
	}
	if html := string(must.Have(os.ReadFile(page))); !strings.Contains(html, "attempt_timeout: 2s (seen), proposed ") || !strings.Contains(html, "<svg") {
		t.Error("the page has no reasons or no charts")
	}
	if code, out, errs := tune(t, world, "--slo", "800ms@99.9", "--policy", policy, "--check"); code != cli.OK || errs != "" || strings.Contains(out, ": want ") {
		t.Errorf("--check: exit code %d: %s\n%s", code, errs, out)
	}
}

// Callers wait for 30 s where 99 % of the answers take 92 ms, and repeat at once whatever fails. After a stall the service works for
// a long time on what is too late. A shorter timeout is proposed, and helps in the true world, with other seeds.
func TestAPlainMistake(t *testing.T) {
	s, l := stalled(20_000, 30*time.Second)
	v := &s.Services[0]
	v.Workers, v.Queue.Limit, v.Faults[0].For, s.Fleets[0].Arrivals.Rate = 2, 1000, 10*time.Second, 60
	folder := t.TempDir()
	policy := filepath.Join(folder, "policy.yaml")
	now := clitest.Write(t, filepath.Join(folder, "now.yaml"), "dependencies:\n  api: {attempt_timeout: 30s, deadline: none, backoff: {kind: constant, base: 10ms}, budget: {unlimited: true}, breaker: {off: true}}\n")
	code, out, errs := tune(t, worldFile(t, s, l), "--policy", now, "--slo", "1s@99", "--seeds", "3", "-o", policy)
	if code != cli.OK || errs != "" || !strings.Contains(out, "attempt_timeout: 30s, proposed ") || !strings.Contains(out, "changes: ") {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	v.Time = sim.Distribution{Kind: sim.Exponential, Mean: 20 * time.Millisecond}
	fault := v.Faults[0]
	truth := battery.Trial{Worlds: []battery.World{{Name: "true", Scenario: s, From: fault.At, To: fault.At + fault.For}}, Seeds: 6, InTime: time.Second}
	differences := must.Have(truth.Differences(t.Context(), must.Have(config.ReadPolicies(policy))[0].Policy, must.Have(config.ReadPolicies(now))[0].Policy, 0, 5001))
	if d := differences[0]; !d.Better() || d.By < 0.05 || differences[1].By < 5 || slices.ContainsFunc(differences, battery.Difference.SurelyWorse) {
		t.Errorf("in the true world: %+v", differences)
	}
}

// What is not known is flown with several values: the number of processes, and how many calls a circuit breaker kept from the service.
// Each fault is flown once more with them.
func TestDrawsOfWhatIsNotKnown(t *testing.T) {
	s, l := stalled(1000, time.Second)
	ramp := []sim.RampPoint{{Factor: 1}, {At: 35 * time.Second, Factor: 1}, {At: 35 * time.Second, Factor: 0.2}, {At: time.Minute, Factor: 0.2}, {At: time.Minute, Factor: 1}}
	s.Fleets[0].Arrivals.Ramp = ramp
	l.Unknown = []scenario.Question{{Path: "fleets.0.processes", Least: "1", Ask: "How many?"}}
	f := must.Have(factsOf(s, &l))
	worlds, own, _, err := f.around()
	if err != nil || own < 9 || len(worlds) != own+draws-1+own {
		t.Fatalf("%d worlds, %d of them with the values of the file: %v", len(worlds), own, err)
	}
	for _, w := range worlds[:own] {
		if strings.Contains(w.Name, "draw") || w.Scenario.Fleets[0].Processes != 10 {
			t.Errorf("%s has %d processes", w.Name, w.Scenario.Fleets[0].Processes)
		}
	}
	processes := map[int]bool{}
	for _, w := range worlds[own:] {
		fleet := &w.Scenario.Fleets[0]
		processes[fleet.Processes] = true
		if least := slices.MinFunc(append(fleet.Arrivals.Ramp, sim.RampPoint{Factor: 1}), func(a, b sim.RampPoint) int { return cmp.Compare(a.Factor, b.Factor) }); least.Factor < 1 {
			t.Errorf("%s has a factor of %v", w.Name, least.Factor)
		}
	}
	if len(processes) != draws || !processes[200] { // of which each makes a call in ten seconds
		t.Errorf("numbers of processes: %v", processes)
	}
	if !slices.Equal(ramp, s.Fleets[0].Arrivals.Ramp) || ramp[2].Factor != 0.2 {
		t.Error("the world itself has changed")
	}
	l.Observed = scenario.Observed{Step: time.Second, Calls: []float64{1}} // calls were measured, and the number of processes is known
	l.Unknown = nil
	if worlds, own, _, err := f.around(); err != nil || len(worlds) != own {
		t.Errorf("%d worlds, %d of them with the values of the file: %v", len(worlds), own, err)
	}
}

// An objective that no policy can meet is named as such, and is no bound of an interval.
func TestAnObjectiveOutOfReach(t *testing.T) {
	s, l := stalled(4000, time.Second)
	code, out, _ := tune(t, worldFile(t, s, l), "--slo", "5ms@99", "--seeds", "3")
	if code != cli.OK || !strings.Contains(out, "The SLO is not met even in peace: 2") || !strings.Contains(out, "attempt_timeout: 1s (seen); the data allows at least 110ms\n") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// Without an incident nothing can be better in the learned world.
func TestKeepsTheZeroPolicy(t *testing.T) {
	s, l := stalled(20_000, time.Second)
	s.Services[0].Faults = nil
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	code, out, errs := tune(t, worldFile(t, s, l), "--seeds", "3", "-o", policy)
	if code != cli.OK || errs != "" || !strings.HasPrefix(out, "Keep the zero policy: ") || strings.Contains(out, "\n+ ") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	if got := must.Have(config.ReadPolicies(policy))[0].Policy; got != (lull.Policy{}) {
		t.Errorf("written: %+v", got)
	}
}

// A policy that is hardly another one is none that anybody needs. The other dependencies of its file stay.
func TestThePolicyInUse(t *testing.T) {
	s, l := stalled(20_000, time.Second)
	folder := t.TempDir()
	now := clitest.Write(t, filepath.Join(folder, "now.yaml"), "defaults: {hint_limit: 10s}\ndependencies:\n  other: {attempts: 7}\n  api: {backoff: {base: 90ms}, breaker: {open_max: 25s}}\n")
	code, out, errs := tune(t, worldFile(t, s, l), "--policy", now, "--seeds", "3", "-o", filepath.Join(folder, "policy.yaml"))
	if code != cli.OK || errs != "" || !strings.HasPrefix(out, "The zero policy is as good as the one in use") || !strings.Contains(out, "in use") {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	file := must.Have(config.ReadPolicyFile(filepath.Join(folder, "policy.yaml")))
	if got := file.Policy("other"); got.Attempts != 7 || got.HintLimit != 10*time.Second {
		t.Errorf("another dependency has changed: %+v", got)
	}
	if got := file.Policy("api"); got.Backoff.Base != 0 || got.Breaker.OpenMax != 0 {
		t.Errorf("written: %+v", got)
	}
}

func TestCheck(t *testing.T) {
	s, l := stalled(20_000, time.Second)
	world := worldFile(t, s, l)
	for policy, want := range map[string]string{
		"{}":                        "",
		"{attempt_timeout: 500ms}":  "",
		"{attempt_timeout: 100ms}":  "attempt_timeout is 100ms: want at least 130ms",
		"{backoff: {cap: 2m}}":      "backoff.cap is 2m: want at most 30s",
		"{breaker: {open_max: 1m}}": "breaker.open_max is 1m: want at most 30s",
		"{limit: {in_flight: 1}}":   "limit.in_flight is 1: want at least 5",
		"{budget: {stock: 1000}}":   "budget.stock is 1000: want at most 48",
		"{hedge: {attempts: 2, delay: 20ms}, attempts: 1}": "hedge is 2 attempts, delay 20ms: want at least 7",
	} {
		now := clitest.Write(t, filepath.Join(t.TempDir(), "now.yaml"), "dependencies:\n  api: "+policy+"\n")
		code, out, errs := tune(t, world, "--policy", now, "--check")
		if want == "" && (code != cli.OK || errs != "") || want != "" && (code != cli.Failed || !strings.Contains(out, want)) {
			t.Errorf("%s: exit code %d: %s\n%s", policy, code, errs, out)
		}
	}
	now := clitest.Write(t, filepath.Join(t.TempDir(), "now.yaml"), "dependencies:\n  api: {deadline: 700ms, attempt_timeout: 700ms}\n")
	if code, out, _ := tune(t, world, "--policy", now, "--check", "--slo", "800ms@99.9"); code != cli.Failed || !strings.Contains(out, "deadline is 700ms: want at least 800ms") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// The answer depends neither on how many simulations run at the same time nor on the clock.
func TestTheSameAnswer(t *testing.T) {
	s, l := stalled(4000, 3*time.Second)
	world := worldFile(t, s, l)
	processors := runtime.GOMAXPROCS(1)
	_, one, _ := tune(t, world, "--seeds", "3")
	runtime.GOMAXPROCS(max(processors, 2))
	defer runtime.GOMAXPROCS(processors)
	if _, two, _ := tune(t, world, "--seeds", "3"); one != two || one == "" {
		t.Errorf("one after the other:\n%s\ntwo at a time:\n%s", one, two)
	}
}

func TestMistakes(t *testing.T) {
	s, l := stalled(100, time.Second)
	world := worldFile(t, s, l)
	folder := t.TempDir()
	plain := clitest.Write(t, filepath.Join(folder, "plain.yaml"), string(must.Have(scenario.Format(s))))
	two := clitest.Write(t, filepath.Join(folder, "two.yaml"), "dependencies: {a: {}, b: {}}\n")
	none := clitest.Write(t, filepath.Join(folder, "none.yaml"), "defaults: {attempts: 2}\n")
	bad := clitest.Write(t, filepath.Join(folder, "bad.yaml"), "dependencies:\n  api: {attemps: 1}\n")
	for _, c := range []struct{ args, want string }{
		{plain, "plain.yaml: learned is missing: want a world that lull learn wrote"},
		{"nowhere.yaml", "nowhere.yaml cannot be read"},
		{world + " --slo 800ms", `--slo is "800ms": want a time from 1ms to 1h and a percentage`},
		{world + " --slo 800ms@100", `--slo is "800ms@100"`},
		{world + " --slo x@99", `--slo is "x@99"`},
		{world + " --false-timeouts 0.1", `--false-timeouts is "0.1": want 0.001 % to 5 %`},
		{world + " --hedge-load 30%", `--hedge-load is "30%"`},
		{world + " --seeds 2", "--seeds is "},
		{world + " --check", "--check is without --policy"},
		{world + " --dependency x", "--dependency is without --policy"},
		{world + " --policy " + two, `--dependency: "api" is none of the policy file: want one of ["a" "b"]`},
		{world + " --policy " + none, `--dependency: "api" is none of the policy file: want one of []`},
		{world + " --policy " + bad, "bad.yaml:2:"},
		{world + " -o " + filepath.Join(folder, "no", "x.yaml"), "x.yaml cannot be written"},
	} {
		if code, out, errs := tune(t, strings.Fields(c.args)...); code != cli.Misused && !strings.Contains(c.want, "cannot be read") || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, printed %s\n%s", c.args, code, out, errs)
		}
	}
}

// The rule of the engine that the least attempt timeout follows from.
func TestQuickParts(t *testing.T) {
	if engine.TimeoutsWhenAnswered != (lull.Policy{}).Timeouts || quickParts < 5 {
		t.Error("the zero policy has another rule for timeouts")
	}
}

func FuzzSLO(f *testing.F) {
	f.Add("800ms@99.9")
	f.Add("1s@99.9%")
	f.Add("@")
	f.Fuzz(func(t *testing.T, text string) {
		d, target, err := parseSLO(text)
		if err == nil && (d < time.Millisecond || d > time.Hour || !(target >= 0.5 && target < 1)) {
			t.Errorf("%q is %v and %v", text, d, target)
		}
	})
}
