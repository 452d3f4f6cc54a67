package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

func TestBadTailFlagsSayWhatIsAllowed(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel() // a run that should not have begun ends at once
	for _, c := range []struct {
		args []string
		want []string // flag, value, what is allowed
	}{
		{[]string{"--scenario=tial"}, []string{"--scenario", `"tial"`, `"storm"`, `"tail"`}},
		{[]string{"--scenario="}, []string{"--scenario", `""`, `"storm"`, `"tail"`}},
		{[]string{"--scenario"}, []string{"--scenario", "missing"}},
		{[]string{"--scenario=tail", "--kind=errors"}, []string{"--kind", `"errors"`, "left out with --scenario tail"}},
		{[]string{"--scenario=tail", "--attempts=3"}, []string{"--attempts", `"3"`, "left out with --scenario tail"}},
		{[]string{"--scenario=tail", "--clients=no-retry"}, []string{"--clients", `"no-retry"`, "no-hedging,naive,lull"}},
		{[]string{"--scenario=tail", "--tail=0.6"}, []string{"--tail", `"0.6"`, "from 0 to 0.5"}},
		{[]string{"--scenario=tail", "--tail=NaN"}, []string{"--tail", `"NaN"`, "from 0 to 0.5"}},
		{[]string{"--scenario=tail", "--tail=2%"}, []string{"--tail", `"2%"`, "share of requests"}},
		{[]string{"--scenario=tail", "--hedge-delay=0s"}, []string{"--hedge-delay", `"0s"`, "from 1ms to 10s"}},
		{[]string{"--scenario=tail", "--hedge-delay=2s"}, []string{"--hedge-delay", "2s", "less than the 2s of --timeout"}},
		{[]string{"--scenario=tail", "--outage=19s"}, []string{"--outage", `"19s"`, "from 0s to 18s"}},
		{[]string{"--scenario=tail", "--load=3"}, []string{"--load", `"3"`, "from 0.05 to 2"}},
		{[]string{"--scenario=tail", "--queue=0"}, []string{"--queue", `"0"`, "from 1 to 100000"}},
		{[]string{"--scenario=tail", "--kind="}, []string{"--kind", `""`, "left out with --scenario tail"}},
		{[]string{"--scenario=tail", "--tail="}, []string{"--tail", `""`, "from 0 to 0.5"}},
		{[]string{"--scenario=tail", "--load="}, []string{"--load", `""`, "from 0.05 to 2"}},
		{[]string{"--load="}, []string{"--load", `""`, "from 0.05 to 2"}},
		{[]string{"--kind="}, []string{"--kind", `""`, "stall", "errors"}},
		{[]string{"--tail="}, []string{"--tail", `""`, "left out with --scenario storm"}},
		{[]string{"--scenario=storm", "--tail=0.1"}, []string{"--tail", `"0.1"`, "left out with --scenario storm"}},
		{[]string{"--hedge-delay=5ms"}, []string{"--hedge-delay", `"5ms"`, "left out with --scenario storm"}},
		{[]string{"--clients=naive"}, []string{"--clients", `"naive"`, "no-retry"}},
	} {
		code, stdout, stderr := lullProgram(over, append([]string{"demo"}, c.args...)...)
		if code != cli.Misused || stdout != "" {
			t.Errorf("%v: exit code %d, stdout %q; want %d and nothing", c.args, code, stdout, cli.Misused)
		}
		for _, part := range c.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("%v: message lacks %q:\n%s", c.args, part, stderr)
			}
		}
	}
	_, _, stderr := lullProgram(over, "demo", "--scenario=tail", "--duration=x", "--load=x", "--kind=x", "--timeout=x",
		"--attempts=x", "--capacity=x", "--seed=x", "--clients=x", "--tail=x", "--hedge-delay=x")
	if n := strings.Count(stderr, "\n"); n != 10 {
		t.Errorf("%d lines for 10 mistakes:\n%s", n, stderr)
	}
}

func TestDefaultTailSetting(t *testing.T) {
	s := parse(t, "--scenario=tail")
	if total := s.Duration + s.Timeout; total > 31*time.Second {
		t.Errorf("runs for up to %v; it should take about 30 s", total)
	}
	// While everything is slow the backend can serve the calls, but not twice as many
	// requests. A request that finds room in the queue is served in time.
	if s.Load >= 0.9 || 2*s.Load <= 1.2 {
		t.Errorf("a load of %v", s.Load)
	}
	if wait := time.Duration(s.Queue) * slowMedian / time.Duration(s.workers()); wait+slowest >= s.Timeout {
		t.Errorf("a full queue is %v long, a request takes up to %v, the timeout is %v", wait, slowest, s.Timeout)
	}
	if s.offered() < 150 || s.offered() > 300 {
		t.Errorf("%v calls a second", s.offered())
	}
	// The percentile is learned from the last five to ten seconds. There must be time for
	// that before and after, and not while everything is slow.
	if s.OutageAt < 5*time.Second || s.Outage < 3*time.Second || s.Duration-s.outageEnd() < 12*time.Second {
		t.Errorf("slow from %v to %v of %v", s.OutageAt, s.outageEnd(), s.Duration)
	}
	if s.HedgeDelay <= tailMedian*(10+10*tailSpread)/10 || s.Tail != 0.02 {
		t.Errorf("the naive hedger waits for %v, %v of the requests are slow", s.HedgeDelay, s.Tail)
	}
	if got, want := s.hedgePolicyText(), "lull.Policy{AttemptTimeout: 2s, Hedge: hedge.Config{Attempts: 2}}"; got != want {
		t.Errorf("lull gets %s, want %s: the recommended hedge, and the timeout", got, want)
	}
	if p := s.hedgePolicy(); p.Validate() != nil || p.Hedge.Attempts != 2 || p.AttemptTimeout != 2*time.Second {
		t.Errorf("lull gets %+v", p)
	}
}

func TestTailFlagsReachTheSetting(t *testing.T) {
	s := parse(t, "--scenario=tail", "--duration=10s", "--load=0.5", "--outage=1.5s", "--timeout=3s", "--capacity=400",
		"--queue=77", "--clients=lull,no-hedging", "--seed=9", "--tail=0.04", "--hedge-delay=15ms")
	if s.Scenario != tail || s.Duration != 10*time.Second || s.offered() != 200 || s.OutageAt != 3300*ms || s.Outage != 1500*ms ||
		s.Timeout != 3*time.Second || s.workers() != 200 || s.Queue != 77 || s.Seed != 9 || s.Tail != 0.04 || s.HedgeDelay != 15*ms || s.Attempts != 2 {
		t.Errorf("got %+v", s)
	}
	if len(s.Clients) != 2 || s.Clients[0].name != "no hedging" || s.Clients[1].name != "lull" {
		t.Errorf("clients %v", s.Clients)
	}
	for _, args := range [][]string{{"--duration=2s"}, {"--duration=3s"}, {"--duration=10m"}} {
		s := parse(t, append([]string{"--scenario=tail"}, args...)...)
		if s.OutageAt <= 0 || s.Outage <= 0 || s.outageEnd()+aftermath > s.Duration {
			t.Errorf("%v: slow from %v to %v of %v", args, s.OutageAt, s.outageEnd(), s.Duration)
		}
	}
	if storm := parse(t, "--scenario=storm"); storm.Duration != parse(t).Duration || storm.workers() != workers || storm.Scenario != parse(t).Scenario {
		t.Errorf("--scenario storm is not the default: %+v", storm)
	}
}
