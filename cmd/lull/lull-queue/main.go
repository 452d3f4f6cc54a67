// Command lull-queue runs the commands of lull that need the clients of brokers: lull queue shows the dead
// letters of a broker and puts them back into a queue, and lull worker runs parts of simulations for other
// machines. It also runs lull simulate and lull battery if they have workers on other machines (--workers URL).
// It is a program and a module of its own, because the rest of lull does not need these clients. lull starts
// it, and has the command lines (package cmd/lull/internal/queue).
package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/battery"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/workers"
)

func main() { cli.Main(program) }

// program runs lull queue with the arguments behind these words, or another command with all arguments of lull.
func program(env cli.Env, args []string) int {
	words := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	other := len(words) > 0 && slices.Contains([]string{"worker", "simulate", "battery"}, words[0])
	if !other && (len(args) == 0 || args[0] != "--version") {
		args = append([]string{"queue"}, args...)
	}
	return cli.Run(env, commandLine(), args)
}

type commands struct {
	Queue    queue.Commands   `cmd:"" help:"Show the dead letters of a queue, and put them back into a queue."`
	Worker   queue.Worker     `cmd:"" help:"Run parts of a simulation for other machines (simulate or battery with --workers URL)."`
	Simulate simulate.Command `cmd:"" hidden:""`
	Battery  battery.Command  `cmd:"" hidden:""`
}

func commandLine() *commands {
	away := cells.Flags{Away: workers.Away}
	return &commands{
		Queue:    queue.Commands{Inspect: queue.Inspect{Do: inspect}, Redrive: queue.Redrive{Do: redrive}},
		Worker:   queue.Worker{Do: workers.Work},
		Simulate: simulate.Command{Flags: away}, Battery: battery.Command{Flags: away},
	}
}

// Exit codes of lull queue, besides those of all commands.
const (
	exitUnreachable = 3
	exitNoQueue     = 4
)

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
