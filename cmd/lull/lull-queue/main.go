// Command lull-queue is what lull needs the clients of brokers for: lull queue, which looks at
// the dead letters of a broker and puts them back; lull worker, which flies cells that others hand out; and
// lull simulate and lull battery when they hand theirs out (--workers URL). It is a program and a
// module of its own, since the rest of lull does not need these clients. lull starts it.
package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/battery"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/workers"
)

func main() { cli.Main(program) }

// program runs lull queue with the arguments that follow those two words, or one of the other
// commands with all arguments of lull.
func program(env cli.Env, args []string) int {
	words := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	other := len(words) > 0 && slices.Contains([]string{"worker", "simulate", "battery"}, words[0])
	if !other && (len(args) == 0 || args[0] != "--version") {
		args = append([]string{"queue"}, args...)
	}
	away := cells.Flags{Away: workers.Away}
	return cli.Run(env, &struct {
		Queue    queueCommands    `cmd:"" help:"Show the dead letters of a queue, and put them back into a queue."`
		Worker   workers.Command  `cmd:"" help:"Run simulations for lull simulate and lull battery on other machines."`
		Simulate simulate.Command `cmd:"" hidden:""`
		Battery  battery.Command  `cmd:"" hidden:""`
	}{Simulate: simulate.Command{Flags: away}, Battery: battery.Command{Flags: away}}, args)
}

// Exit codes of lull queue, besides those of all commands.
const (
	exitUnreachable = 3
	exitNoQueue     = 4
)

// queueCommands are the commands for dead letters.
type queueCommands struct {
	Inspect inspectFlags `cmd:"" help:"Show dead letters. Nothing is moved."`
	Redrive redriveFlags `cmd:"" help:"Put dead letters back into a queue."`
}

const exitCodes = `
Exit codes: 0 all is done, 1 something went wrong or Ctrl-C, 2 the command line
is wrong, 3 the broker cannot be reached, 4 there is no such queue.`

// Help is shown above the commands.
func (queueCommands) Help() string {
	return `A queue of dead letters is that of a lull consumer, or any other: of letters
without lull's envelope less is known.

  lull queue inspect amqp://localhost/ orders.dead
  lull queue redrive amqp://localhost/ orders.dead --to orders --dry-run
` + exitCodes
}

// coded gives err its exit code.
func coded(err error) error {
	switch {
	case errors.Is(err, brokers.ErrUnreachable):
		return cli.Fail(exitUnreachable, err)
	case errors.Is(err, brokers.ErrNoQueue):
		return cli.Fail(exitNoQueue, err)
	}
	return err
}

// interrupted returns err, or what it means if the user interrupted the command.
func interrupted(env cli.Env, err error, means string) error {
	if err != nil && env.Context.Err() != nil && errors.Is(err, env.Context.Err()) {
		return errors.New(means)
	}
	return err
}
