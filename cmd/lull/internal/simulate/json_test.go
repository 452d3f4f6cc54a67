package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

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
	if got := plainData(p); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := plainData(lull.Policy{}); string(got) != "{}" {
		t.Errorf("the zero Policy is %s", got)
	}
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
	if got := f.command(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
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
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if text := plainData(runOf(sim.Result{})); bytes.Contains(text, []byte("topics")) {
		t.Errorf("topics without any: %s", text)
	}
}

func TestProgressIsPlainAndRareWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := term.NewProgress(&out, func(string) string { return "" }, false)
		for second := range 35 {
			p.Show((&tally{done: second / 10, of: make([]sim.Progress, 5), share: float64(second) / 50, events: int64(second) * 2_000_000}).line)
			time.Sleep(time.Second)
		}
		p.End()
		const want = `simulating: 20.0 %, 1 of 5 runs, 2M events/s, 40 s left
simulating: 40.0 %, 2 of 5 runs, 2M events/s, 30 s left
simulating: 60.0 %, 3 of 5 runs, 2M events/s, 20 s left
`
		if out.String() != want {
			t.Errorf("printed\n%swant\n%s", out.String(), want)
		}
	})
}

// What is merged of three parts is byte for byte what one run prints, in every form.
func TestMergedPartsAreOneRun(t *testing.T) {
	for _, c := range []struct{ args, forms []string }{
		{[]string{tiny, "--policy=none,grpc,testdata/policies.yaml", "--seeds=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--sweep=clients=1,10", "--sweep=services.api.faults.0.for=1s,2s", "--set=policy.attempts=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--map"}, []string{"", "--json"}},
	} {
		folder := t.TempDir()
		for part := range 3 {
			text := simulate(t, append(c.args, fmt.Sprintf("--cells=%d/3", part))...)
			clitest.Write(t, filepath.Join(folder, fmt.Sprint(part, ".part")), text)
		}
		for _, form := range c.forms {
			args := c.args
			if form != "" {
				args = append(args[:len(args):len(args)], form)
			}
			want := simulate(t, args...)
			merged := append(args[:len(args):len(args)], "--merge="+folder+"/*.part")
			if got := simulate(t, merged...); got != want {
				t.Errorf("%v: merged\n%s\nwant\n%s", args, got, want)
			}
			if code, out, errs := lullProgram(t.Context(), append(merged, "--seed=2")...); code != cli.Failed || out != "" || !strings.Contains(errs, "are in none of the files") {
				t.Errorf("%v with another seed: exit code %d, printed %q and %q", args, code, out, errs)
			}
		}
	}
}
