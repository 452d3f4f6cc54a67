package demo

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// lullProgram runs the program and returns what it printed.
func lullProgram(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: ctx}, "demo", args[1:]...)
}

// parse reads demo flags as the program does.
func parse(t *testing.T, args ...string) setting {
	t.Helper()
	var c Command
	parser := must.Have(kong.New(&c, kong.Writers(io.Discard, io.Discard)))
	must.Have(parser.Parse(args))
	return must.Have(c.setting())
}

func TestBadFlagsSayWhatIsAllowed(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel() // a run that should not have begun ends at once
	for _, c := range []struct {
		args []string
		want []string // flag, value, what is allowed
	}{
		{[]string{"--duration", "1s"}, []string{"--duration", `"1s"`, "from 2s to 10m0s"}},
		{[]string{"--duration=20"}, []string{"--duration", `"20"`, "such as 500ms"}},
		{[]string{"--load", "NaN"}, []string{"--load", `"NaN"`, "from 0.05 to 2"}},
		{[]string{"--load", "--plain"}, []string{"--load", `"--plain"`, "from 0.05 to 2"}},
		{[]string{"--load"}, []string{"--load", "missing"}},
		{[]string{"--outage", "21s"}, []string{"--outage", `"21s"`, "from 0s to 20s"}},
		{[]string{"--outage", "3s", "--duration", "4s"}, []string{"--outage", `"3s"`, "from 0s to 2s"}},
		{[]string{"--kind", "refuse"}, []string{"--kind", `"refuse"`, "stall", "errors"}},
		{[]string{"--timeout", "4s"}, []string{"--timeout", "4s", "less than the 4s before the outage"}},
		{[]string{"--attempts", "0"}, []string{"--attempts", `"0"`, "from 1 to 10"}},
		{[]string{"--queue", "0"}, []string{"--queue", `"0"`, "from 1 to 100000"}},
		{[]string{"--clients", "lull,polly"}, []string{"--clients", `"lull,polly"`, "no-retry", "fixed-interval", "full-jitter"}},
		{[]string{"--lod", "1"}, []string{"--lod", "--load", "--duration", "--plain"}},
		{[]string{"quick"}, []string{"quick", "--load", "--duration"}},
		{[]string{"--scenario=tial"}, []string{"--scenario", `"tial"`, `"storm"`, `"tail"`}},
		{[]string{"--scenario=tail", "--kind=errors"}, []string{"--kind", `"errors"`, "left out with --scenario tail"}},
		{[]string{"--scenario=tail", "--attempts=3"}, []string{"--attempts", `"3"`, "left out with --scenario tail"}},
		{[]string{"--scenario=tail", "--clients=no-retry"}, []string{"--clients", `"no-retry"`, "no-hedging,naive,lull"}},
		{[]string{"--scenario=tail", "--tail=0.6"}, []string{"--tail", `"0.6"`, "from 0 to 0.5"}},
		{[]string{"--scenario=tail", "--hedge-delay=0s"}, []string{"--hedge-delay", `"0s"`, "from 1ms to 10s"}},
		{[]string{"--scenario=tail", "--hedge-delay=2s"}, []string{"--hedge-delay", "2s", "less than the 2s of --timeout"}},
		{[]string{"--scenario=tail", "--outage=19s"}, []string{"--outage", `"19s"`, "from 0s to 18s"}},
		{[]string{"--load="}, []string{"--load", `""`, "from 0.05 to 2"}},
		{[]string{"--kind="}, []string{"--kind", `""`, "stall", "errors"}},
		{[]string{"--tail="}, []string{"--tail", `""`, "left out with --scenario storm"}},
		{[]string{"--hedge-delay=5ms"}, []string{"--hedge-delay", `"5ms"`, "left out with --scenario storm"}},
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
}

func TestAllBadFlagsAreReportedAtOnce(t *testing.T) {
	common := []string{"demo", "--duration=x", "--load=x", "--kind=x", "--timeout=x", "--attempts=x", "--capacity=x", "--seed=x", "--clients=x"}
	for n, more := range map[int][]string{8: nil, 10: {"--scenario=tail", "--tail=x", "--hedge-delay=x"}} {
		_, _, stderr := lullProgram(t.Context(), append(common, more...)...)
		check.Equal(t, strings.Count(stderr, "\n"), n, "lines:\n%s", stderr)
	}
}

func TestDefaultSetting(t *testing.T) {
	s := parse(t)
	// The last call begins at the end, and all its attempts may time out.
	if longest := s.Duration + time.Duration(s.Attempts)*(s.Timeout+4*naiveBase); longest > 28*time.Second {
		t.Errorf("runs for up to %v; it should take less than 30 s", longest)
	}
	// A backend collapses and stays down if the longest wait is longer than the timeout, the
	// outage is longer than the timeout, and retries overload it.
	if wait := time.Duration(s.Queue) * s.service() / workers; wait <= s.Timeout {
		t.Errorf("a full queue is %v long, the timeout %v", wait, s.Timeout)
	}
	if s.Outage <= s.Timeout || s.Load*float64(s.Attempts) <= 1 {
		t.Errorf("outage %v, timeout %v, load %v with %d attempts", s.Outage, s.Timeout, s.Load, s.Attempts)
	}
	check.Equal(t, s.policyText(), "lull.Policy{AttemptTimeout: 500ms}", "lull gets: the zero policy but for the timeout")
}

func TestShortRunsShrinkTheOutage(t *testing.T) {
	for _, args := range [][]string{{"--duration=2s", "--timeout=100ms"}, {"--duration=3s"}, {"--duration=10m"}} {
		for _, scenario := range []string{"storm", "tail"} {
			s := parse(t, append(args, "--scenario="+scenario)...)
			if s.Scenario == storm && s.OutageAt <= s.Timeout || s.OutageAt <= 0 || s.Outage <= 0 || s.outageEnd()+shortestAftermath > s.Duration {
				t.Errorf("%v: outage from %v to %v of %v", args, s.OutageAt, s.outageEnd(), s.Duration)
			}
		}
	}
}

func TestFlagsReachTheSetting(t *testing.T) {
	s := parse(t, "--duration=10s", "--load=0.5", "--outage=1.5s", "--kind=errors", "--timeout=200ms", "--attempts=5",
		"--capacity=400", "--queue=77", "--clients=lull,no-retry", "--seed=9")
	if s.Duration != 10*time.Second || s.offered() != 200 || s.OutageAt != 2500*ms || s.Outage != 1500*ms || s.Kind != errors503 ||
		s.Timeout != 200*ms || s.Attempts != 5 || s.service() != 10*ms || s.Queue != 77 || s.Seed != 9 {
		t.Errorf("got %+v", s)
	}
	if len(s.Clients) != 2 || s.Clients[0].name != "no retry" || s.Clients[1].name != "lull" {
		t.Errorf("clients %v", s.Clients)
	}
	check.Equal(t, s.policyText(), "lull.Policy{AttemptTimeout: 200ms, Attempts: 5}", "lull gets")
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
	check.Equal(t, s.hedgePolicyText(), "lull.Policy{AttemptTimeout: 2s, Hedge: hedge.Config{Attempts: 2}}", "lull gets: the recommended hedge, and the timeout")
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
	if storm := parse(t, "--scenario=storm"); storm.Duration != parse(t).Duration || storm.workers() != workers || storm.Scenario != parse(t).Scenario {
		t.Errorf("--scenario storm is not the default: %+v", storm)
	}
}

func TestHelpNamesTheClients(t *testing.T) {
	_, help, _ := lullProgram(t.Context(), "demo", "--help")
	for _, name := range append(flagNames(stormClients), flagNames(tailClients)...) {
		if !strings.Contains(help, name) {
			t.Errorf("the help of demo does not name client %s", name)
		}
	}
}
