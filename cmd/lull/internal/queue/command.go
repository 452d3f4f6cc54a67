// Package queue has the command lines of lull queue and lull worker, and starts the program that runs
// them: lull-queue. It is a module of its own (cmd/lull/lull-queue), because it needs the clients of three
// brokers, and the other commands do not. Both programs parse the command lines of this package. So lull
// has the help, the manual page and the completions of what lull-queue accepts.
package queue

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/queue"
)

// Commands is lull queue.
type Commands struct {
	Inspect Inspect `cmd:"" help:"Show dead letters. Nothing is moved."`
	Redrive Redrive `cmd:"" help:"Put dead letters back into a queue."`
}

const exitCodes = `
Exit codes: 0 all is done, 1 something went wrong or Ctrl-C, 2 the command line
is wrong, 3 the broker cannot be reached, 4 there is no such queue.`

func (Commands) Help() string {
	return `A queue of dead letters is that of a lull consumer, or any other: of letters
without lull's envelope less is known.

  lull queue inspect amqp://localhost/ orders.dead
  lull queue redrive amqp://localhost/ orders.dead --to orders --dry-run
` + exitCodes
}

// Letters selects dead letters. Its flags are text, so that all mistakes are reported at once.
type Letters struct {
	Broker cli.Text `arg:"" help:"The broker: amqp://user:password@host:5672/vhost (and ?management=http://host:15672, where a limit on deliveries has to be looked up), nats://host:4222, or sqs://region. Its password may stand in LULL_BROKER_PASSWORD instead."`
	Queue  cli.Text `arg:"" help:"The queue of dead letters: its name, on NATS that of its stream, on SQS its name or URL."`

	Reason      cli.Text `placeholder:"REASON" help:"Only those with this reason, such as attempts_exhausted."`
	Code        cli.Text `placeholder:"CODE" help:"Only those whose last failure had this code, such as connection_refused."`
	Source      cli.Text `placeholder:"NAME" help:"Only those that come from this queue."`
	ID          cli.Text `name:"id" placeholder:"ID" help:"Only the one with this original id."`
	OlderThan   cli.Text `placeholder:"AGE" help:"Only those that became dead letters longer ago than this, such as 30m, 12h or 7d."`
	YoungerThan cli.Text `placeholder:"AGE" help:"Only those that became dead letters within this time."`
	MaxRedrives cli.Text `placeholder:"N" help:"Only those that have been put back fewer times than this."`
	Limit       cli.Text `placeholder:"N" help:"No more than this many."`
	JSON        bool     `name:"json" help:"Print JSON on standard output."`
}

// Complete returns the values of flags. A handler may have reasons of its own beside these.
func (Letters) Complete() map[string][]string {
	return map[string][]string{"reason": {
		engine.Permanent.String(), engine.AttemptsExhausted.String(), engine.Deadline.String(), engine.HintTooLong.String(),
		queue.ReasonCrashed, queue.ReasonPanicked, queue.ReasonExpired, queue.ReasonTooLarge, queue.ReasonBroker,
	}}
}

// Inspect is lull queue inspect.
type Inspect struct {
	Letters
	Body bool `help:"Print the bodies too. With --json they are there in any case."`

	// Do shows the letters. Nil: this program cannot, and starts lull-queue.
	Do func(cli.Env, Inspect) error `kong:"-"`
}

func (Inspect) Help() string {
	return `Shows the dead letters of a queue: when and of what they died, after how many
attempts, and what the last error was. They stay where they are; while they are
read, another reader may not see them. Where it counts to look at them (RabbitMQ
up to 4.2, quorum queues with a limit on deliveries) it is refused.
` + exitCodes
}

// Run shows dead letters.
func (f Inspect) Run(env cli.Env, ctx *kong.Context) error { return run(env, ctx, f.Do, f) }

// Redrive is lull queue redrive.
type Redrive struct {
	Letters
	To     cli.Text `placeholder:"QUEUE" required:"" help:"The queue that gets them, on the same broker: the name of a queue; on NATS a subject. With wildcards (orders.>) each goes to the subject that it had."`
	Rate   cli.Text `placeholder:"10" default:"10" help:"The most messages that are moved in a second: 0.001 or more, or max. The consumers of the queue have other work too."`
	DryRun bool     `help:"Move nothing. Print what would be moved."`
	Quiet  bool     `help:"Show no progress."`

	// Do moves the letters. Nil: this program cannot, and starts lull-queue.
	Do func(cli.Env, Redrive) error `kong:"-"`
}

func (Redrive) Help() string {
	return `Puts dead letters back into a queue, each as a message with no attempts made.
A letter is removed when the queue has its message for certain. Interrupted at
any point nothing is lost: the same command again goes on with what is left.
What had been sent and not yet removed is then sent once more under the same id,
which brokers that deduplicate (NATS, SQS FIFO) discard for some minutes;
elsewhere a message may come twice, with the same id. Each letter is moved,
however much it is like another.

  lull queue redrive sqs://eu-central-1 orders-dead --to orders --limit 10
  lull queue redrive nats://localhost DEAD --to 'orders.>' --younger-than 2h
` + exitCodes
}

// Run moves dead letters.
func (f Redrive) Run(env cli.Env, ctx *kong.Context) error { return run(env, ctx, f.Do, f) }

// Worker is lull worker.
type Worker struct {
	URL     string   `arg:"" help:"The server, such as nats://host:4222. ?creds=FILE names a file with credentials."`
	Workers cli.Text `placeholder:"N" help:"How many simulations run at the same time. Default: one for each processor."`
	Quiet   bool     `help:"Print no line for each simulation."`

	// Do runs simulations. Nil: this program cannot, and starts lull-queue.
	Do func(cli.Env, Worker) error `kong:"-"`
}

func (Worker) Help() string {
	return `Runs simulations for lull simulate and lull battery that were started with
--workers and the same URL, until it is interrupted. It may be killed at any
time: another worker then runs what it had begun.`
}

// Run runs simulations until it is interrupted.
func (c Worker) Run(env cli.Env, ctx *kong.Context) error { return run(env, ctx, c.Do, c) }

// run calls do. If there is none, it starts lull-queue with the arguments of lull, without the word queue.
func run[T any](env cli.Env, ctx *kong.Context, do func(cli.Env, T) error, command T) error {
	if do != nil {
		return do(env, command)
	}
	args := slices.Clone(ctx.Args)
	if i := slices.Index(args, "queue"); ctx.Selected().Parent.Name == "queue" {
		args = slices.Delete(args, i, i+1)
	}
	return Start(env, args)
}

const program = "lull-queue"

// Start replaces this process with lull-queue. Where that cannot be done (Windows), it runs lull-queue to its end.
func Start(env cli.Env, args []string) error {
	path, err := find()
	if err != nil {
		return fmt.Errorf("%s is not installed: go install github.com/lullgo/lull/cmd/lull/%[1]s@latest (in a checkout of lull without @latest)", program)
	}
	if err := syscall.Exec(path, append([]string{path}, args...), os.Environ()); !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s: %w", path, err)
	}
	c := exec.Command(path, args...) // without the context: an interrupt reaches it as well
	c.Stdin, c.Stdout, c.Stderr = env.Stdin, env.Stdout, env.Stderr
	err = c.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return cli.Fail(ended.ExitCode(), errors.New("")) // it has printed its error
	}
	return err
}

func find() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), program)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(program)
}
