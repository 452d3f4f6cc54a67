package main

import (
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	command "github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// inspect is lull queue inspect.
func inspect(env cli.Env, f command.Inspect) error {
	var l problem.List
	w := wantedOf(env, f.Letters, &l)
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
	if writeErr := out.end(p, err != nil); err == nil {
		err = writeErr
	}
	return coded(interrupted(env, err, "interrupted: there may be more"))
}
