package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	command "github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// redrive is lull queue redrive.
func redrive(env cli.Env, f command.Redrive) error {
	var l problem.List
	w := wantedOf(env, f.Letters, &l)
	c := queue.RedriveConfig{Filter: w.filter, Limit: w.limit, DryRun: f.DryRun, Rate: math.Inf(1)}
	if f.Rate != "max" {
		c.Rate = cli.Number(&l, "--rate", f.Rate, 0.001, 1e6, "letters a second, or max")
	}
	l.Check(f.To != "", "--to", f.To.Quoted(), "the name of a queue")
	l.Check(f.To != f.Queue, "--to", f.To.Quoted(), "another queue than that of the dead letters")
	if err := l.Err(); err != nil {
		return err
	}
	b, letters, err := w.read(env.Context)
	if err != nil {
		return err
	}
	defer b.Close()
	to, err := b.Sender(env.Context, string(f.To))
	if err != nil {
		return coded(errors.Join(fmt.Errorf("%s: %w", f.To, err), letters.Close(context.WithoutCancel(env.Context))))
	}
	began := time.Now()
	bar := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	p, err := queue.Redrive(env.Context, letters, to, c, func(s queue.LetterResult) {
		if s.Err != nil {
			bar.End()
			fmt.Fprintf(env.Stderr, "lull: %s stays a dead letter: %v\n", term.Printable(s.Letter.OriginalID), s.Err)
		}
		bar.Show(func(took time.Duration) string {
			return fmt.Sprintf("%s, %.1f/s", sentence(s.Progress, c.DryRun), float64(s.Moved)/cmp.Or(took.Seconds(), 1))
		})
	})
	bar.End()
	moved := redriven{Progress: p, From: w.queue, To: string(f.To), DryRun: c.DryRun, Seconds: time.Since(began).Seconds(), Interrupted: env.Context.Err() != nil, Incomplete: err != nil || p.Failed > 0}
	if writeErr := moved.print(env.Stdout, f.JSON); err == nil {
		err = writeErr
	}
	err = interrupted(env, err, "interrupted: the same command again goes on with what is left")
	if err == nil && p.Failed > 0 {
		err = fmt.Errorf("%d of %d letters could not be moved", p.Failed, p.Matched)
	}
	return coded(err)
}

// sentence returns the progress in words.
func sentence(p queue.Progress, dry bool) string {
	if dry {
		return "would have " + p.String()
	}
	return p.String()
}
