// Package execute is the command lull exec: it runs another command under a retry policy.
//
// Every decision about an attempt is the engine's, through lull.Run. This package carries it out: it starts processes, gives
// them their input, keeps their output apart, and passes signals on.
package execute

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/preset"
)

// Command is lull exec. Its flags are text, so that all mistakes are reported at once; setting reads them.
type Command struct {
	Attempts  cli.Text  `placeholder:"5" default:"5" help:"The most times that the command is run, the first one included: 1 to 1000."`
	Deadline  cli.Text  `placeholder:"DURATION" default:"none" help:"How long all attempts may take, with the waits. No wait crosses the deadline. A command that still runs at the deadline is ended. Default: none."`
	Timeout   cli.Text  `placeholder:"DURATION" default:"none" help:"How long each attempt may take. A command that takes longer is ended, and repeated. Default: none."`
	Wait      cli.Text  `placeholder:"1s" default:"1s" help:"The wait before the second attempt is random, between zero and this bound. The bound doubles from attempt to attempt."`
	MaxWait   cli.Text  `placeholder:"1m" default:"1m" help:"The longest wait."`
	Transient cli.Texts `placeholder:"CODES" help:"The exit codes after which the command is repeated: numbers and ranges, as 7,28,100-109, and signal if a signal ended the command. Default: 1-125,signal."`
	KillAfter cli.Text  `placeholder:"10s" default:"10s" help:"A command whose time is over gets SIGTERM, and SIGKILL if it still runs after this."`
	Stream    bool      `help:"Pass standard output through at once, also that of failed attempts. This is the default on a terminal."`
	Quiet     bool      `help:"Print nothing about attempts."`
	Command   []string  `arg:"" passthrough:"partial" name:"command" help:"The command and its arguments. Put -- before it, to end the flags of lull."`
}

func (Command) Help() string {
	return `Runs a command, and runs it again if it fails, until it succeeds, or its attempts
or its time are used up. The waits between the attempts grow and have jitter.

  lull exec -- curl --fail --silent https://api.example.com/orders
  lull exec --attempts 8 --timeout 30s --deadline 5m -- ./migrate
  lull exec --transient 75 -- sendmail -t < letter

The command must be safe to repeat: lull cannot know what it did before it
failed. A command that cannot be found or executed is not repeated.

Standard output has only the output of the last attempt, so a pipe gets no
partial output. The output of failed attempts goes to standard error. Each
attempt gets standard input from its beginning. For that lull reads ahead: in a
loop that itself reads standard input, add "< /dev/null". The environment
variable LULL_ATTEMPT has the number of the attempt.

Signals are passed on to the command, and it is not repeated after SIGINT,
SIGTERM, SIGHUP or SIGQUIT.

Exit codes: that of the last attempt, or 128 plus the number of the signal that
ended it. 124 if its time was over, 125 if lull itself failed or its command line
is wrong, 126 if the command cannot be executed, 127 if it is not found.`
}

// Exit codes, as timeout(1), env(1) and nice(1) have them.
const (
	exitTimeout       = 124
	exitOwn           = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// Misused is the exit code of a wrong command line: 2 may be the command's own.
func (Command) Misused() int { return exitOwn }

type setting struct {
	policy    lull.Policy
	transient codes
	killAfter time.Duration
	argv      []string
}

const longest = 365 * 24 * time.Hour

func (f Command) setting() (setting, error) {
	var l problem.List
	s := setting{argv: f.Command}
	if len(s.argv) > 0 && s.argv[0] == "--" {
		s.argv = s.argv[1:]
	}
	l.Check(len(s.argv) > 0 && s.argv[0] != "", "COMMAND", "missing", "one after the flags, as in lull exec -- true")
	s.policy = preset.BackgroundWorker()
	s.policy.Attempts = cli.Whole(&l, "--attempts", f.Attempts, 1, 1000)
	s.policy.Deadline = orNone(&l, "--deadline", f.Deadline)
	s.policy.AttemptTimeout = orNone(&l, "--timeout", f.Timeout)
	s.policy.Backoff.Base = cli.Duration(&l, "--wait", f.Wait, problem.ShortestDuration, longest)
	s.policy.Backoff.Cap = cli.Duration(&l, "--max-wait", f.MaxWait, problem.ShortestDuration, longest)
	s.killAfter = cli.Duration(&l, "--kill-after", f.KillAfter, 0, longest)
	s.transient = readCodes(&l, f.Transient)
	// One process makes one call. Nobody else's successes can pay for its retries, so all that it may make are in stock.
	s.policy.Budget.Stock = float64(max(s.policy.Attempts-1, 1))
	if len(l) == 0 && s.policy.Deadline > 0 && s.policy.AttemptTimeout > s.policy.Deadline {
		l.Add("--timeout", f.Timeout.Quoted(), "no more than the deadline of "+s.policy.Deadline.String())
	}
	if len(l) == 0 && s.policy.Backoff.Base > s.policy.Backoff.Cap {
		l.Add("--wait", f.Wait.Quoted(), "no more than --max-wait, "+s.policy.Backoff.Cap.String())
	}
	if err := l.Err(); err != nil {
		return s, err
	}
	return s, s.policy.Validate()
}

func orNone(l *problem.List, flag string, v cli.Text) time.Duration {
	if v == "none" {
		return lull.NoTimeout
	}
	d, err := time.ParseDuration(string(v))
	l.Check(err == nil && d >= problem.ShortestDuration && d <= longest, flag, v.Quoted(), "a positive duration, such as 500ms or 1.5s, or none")
	return d
}

func (f Command) Check() error { _, err := f.setting(); return err }

func (f Command) Run(env cli.Env) error {
	s, err := f.setting()
	if err != nil {
		return cli.Fail(exitOwn, err)
	}
	path, err := exec.LookPath(s.argv[0])
	if err != nil {
		return cli.Fail(startCode(err), cli.CannotRun(s.argv[0], err))
	}
	_, onScreen := term.Terminal(env.Stdout, env.Getenv)
	keyboard, _ := env.Stdin.(*os.File)
	_, atKeyboard := term.Terminal(keyboard, env.Getenv)
	r := &runner{setting: s, env: env, path: path, quiet: f.Quiet, stream: f.Stream || onScreen, ownGroup: !atKeyboard}
	return r.run()
}

type codes struct {
	code   [256]bool
	signal bool
}

// Codes up to 125 are the command's own; 126 and 127 mean that it cannot be run, and more are for signals.
const defaultCodes = "1-125,signal"

func (c codes) has(e attemptError) bool {
	if e.signal > 0 {
		return c.signal
	}
	return e.code >= 0 && e.code < len(c.code) && c.code[e.code]
}

func readCodes(l *problem.List, v cli.Texts) (c codes) {
	if len(v) == 0 {
		v = cli.Texts{defaultCodes}
	}
	for _, part := range v.Split() {
		if part == "signal" {
			c.signal = true
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 8)
		last, err2 := strconv.ParseUint(to, 10, 8)
		if err1 != nil || err2 != nil || first == 0 || first > last {
			l.Add("--transient", strconv.Quote(part), "an exit code from 1 to 255, a range of them such as 100-109, or signal")
			continue
		}
		for i := first; i <= last; i++ {
			c.code[i] = true
		}
	}
	return c
}
