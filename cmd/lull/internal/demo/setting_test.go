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
)

// commands is lull with this command alone.
type commands struct {
	Demo Command `cmd:""`
}

// lullProgram runs the program and returns what it printed.
func lullProgram(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Run(cli.Env{Context: ctx}, &commands{}, args...)
}

// parse reads demo flags as the program does.
func parse(t *testing.T, args ...string) setting {
	t.Helper()
	var c commands
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"demo"}, args...)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Demo.setting()
	if err != nil {
		t.Fatal(err)
	}
	return s
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
		{[]string{"--duration", "-5s"}, []string{"--duration", `"-5s"`, "from 2s to 10m0s"}},
		{[]string{"--load", "0"}, []string{"--load", `"0"`, "from 0.05 to 2"}},
		{[]string{"--load", "NaN"}, []string{"--load", `"NaN"`, "from 0.05 to 2"}},
		{[]string{"--load=80%"}, []string{"--load", `"80%"`, "share of the capacity"}},
		{[]string{"--load", "-1"}, []string{"--load", `"-1"`, "from 0.05 to 2"}},
		{[]string{"--load", "--json"}, []string{"--load", `"--json"`, "from 0.05 to 2"}},
		{[]string{"--load"}, []string{"--load", "missing"}},
		{[]string{"--outage", "21s"}, []string{"--outage", `"21s"`, "from 0s to 20s"}},
		{[]string{"--outage", "3s", "--duration", "4s"}, []string{"--outage", `"3s"`, "from 0s to 2s"}},
		{[]string{"--kind", "refuse"}, []string{"--kind", `"refuse"`, "stall", "errors"}},
		{[]string{"--timeout", "0s"}, []string{"--timeout", `"0s"`, "from 20ms"}},
		{[]string{"--timeout", "4s"}, []string{"--timeout", "4s", "less than the 4s before the outage"}},
		{[]string{"--attempts", "0"}, []string{"--attempts", `"0"`, "from 1 to 10"}},
		{[]string{"--capacity", "1e3"}, []string{"--capacity", `"1e3"`, "from 10 to 2000"}},
		{[]string{"--queue", "0"}, []string{"--queue", `"0"`, "from 1 to 100000"}},
		{[]string{"--seed", "-1"}, []string{"--seed", `"-1"`, "from 0 to 18446744073709551615"}},
		{[]string{"--clients", "lull,polly"}, []string{"--clients", `"lull,polly"`, "no-retry", "fixed-interval", "full-jitter"}},
		{[]string{"--clients", "lull,"}, []string{"--clients", `"lull,"`, "no-retry"}},
		{[]string{"--lod", "1"}, []string{"--lod", "--load", "--duration", "--json"}},
		{[]string{"quick"}, []string{"quick", "--load", "--duration"}},
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
	_, _, stderr := lullProgram(t.Context(), "demo", "--duration=x", "--load=x", "--kind=x", "--timeout=x", "--attempts=x",
		"--capacity=x", "--seed=x", "--clients=x")
	if n := strings.Count(stderr, "\n"); n != 8 {
		t.Errorf("%d lines for 8 mistakes:\n%s", n, stderr)
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
	if got, want := s.policyText(), "lull.Policy{AttemptTimeout: 500ms}"; got != want {
		t.Errorf("lull gets %s, want %s: the zero policy but for the timeout", got, want)
	}
}

func TestShortRunsShrinkTheOutage(t *testing.T) {
	for _, args := range [][]string{{"--duration=2s", "--timeout=100ms"}, {"--duration=3s"}, {"--duration=10m"}} {
		s := parse(t, args...)
		if s.OutageAt <= s.Timeout || s.outageEnd()+aftermath > s.Duration {
			t.Errorf("%v: outage from %v to %v of %v", args, s.OutageAt, s.outageEnd(), s.Duration)
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
	if got, want := s.policyText(), "lull.Policy{AttemptTimeout: 200ms, Attempts: 5}"; got != want {
		t.Errorf("lull gets %s, want %s", got, want)
	}
}
