package main

import (
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// inspectFlags is lull queue inspect.
type inspectFlags struct {
	letterFlags
	Body bool `help:"Print the bodies too. With --json they are there in any case."`
}

// Help is shown above the flags.
func (inspectFlags) Help() string {
	return `Shows the dead letters of a queue: when and of what they died, after how many
attempts, and what the last error was. They stay where they are; while they are
read, another reader may not see them. Where it counts to look at them (RabbitMQ
up to 4.2, quorum queues with a limit on deliveries) it is refused.
` + exitCodes
}

// Run shows dead letters.
func (f inspectFlags) Run(env cli.Env) error {
	var l problem.List
	w := f.wanted(env, &l)
	if err := l.Err(); err != nil {
		return err
	}
	b, letters, err := w.read(env.Context)
	if err != nil {
		return err
	}
	defer b.Close()
	out := newLetterPrinter(env.Stdout, f.JSON, f.Body)
	shown := 0
	p, err := queue.Inspect(env.Context, letters, w.filter, func(l *queue.Letter) (bool, error) {
		shown++
		return w.limit == 0 || shown < w.limit, out.print(l)
	})
	if writeErr := out.end(p); err == nil {
		err = writeErr
	}
	return coded(interrupted(env, err, "interrupted: there may be more"))
}
