package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	command "github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

type wanted struct {
	broker *url.URL
	queue  string
	filter queue.Filter
	limit  int
}

func wantedOf(env cli.Env, f command.Letters, l *problem.List) wanted {
	w := wanted{queue: string(f.Queue), filter: queue.Filter{
		Reason: string(f.Reason), Code: string(f.Code), Source: string(f.Source), ID: string(f.ID),
		OlderThan: age(l, "--older-than", f.OlderThan), YoungerThan: age(l, "--younger-than", f.YoungerThan),
		MaxRedrives: count(l, "--max-redrives", f.MaxRedrives),
	}, limit: count(l, "--limit", f.Limit)}
	var err error
	if w.broker, err = brokers.Parse(string(f.Broker)); err != nil {
		l.Add("BROKER", redacted(f.Broker), strings.TrimPrefix(err.Error(), "want "))
	} else if p := env.Getenv("LULL_BROKER_PASSWORD"); p != "" {
		if _, typed := w.broker.User.Password(); !typed {
			w.broker.User = url.UserPassword(w.broker.User.Username(), p)
		}
	}
	l.Check(w.queue != "", "QUEUE", f.Queue.Quoted(), "the name of a queue")
	old, young := w.filter.OlderThan, w.filter.YoungerThan
	l.Check(young == 0 || young > old, "--younger-than", f.YoungerThan.Quoted(), "more than --older-than of "+string(f.OlderThan))
	return w
}

// redacted returns a broker's URL as it was typed, without what may be a password.
func redacted(v cli.Text) string {
	if at := strings.LastIndexByte(string(v), '@'); at >= 0 {
		return ("..." + v[at:]).Quoted()
	}
	return v.Quoted()
}

// count reads a number from 1, or returns 0 if none was typed.
func count(l *problem.List, flag string, v cli.Text) int {
	if v == "" {
		return 0
	}
	return cli.Whole(l, flag, v, 1, math.MaxInt32)
}

const longestAge = 100 * 365 * 24 * time.Hour

// age reads a duration, which may be in days, or returns 0 if none was typed.
func age(l *problem.List, flag string, v cli.Text) time.Duration {
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(string(v))
	if days, ok := strings.CutSuffix(string(v), "d"); ok {
		var n float64
		if n, err = strconv.ParseFloat(days, 64); err == nil && n > 0 && n <= longestAge.Hours()/24 {
			d = time.Duration(n * 24 * float64(time.Hour))
		}
	}
	l.Check(err == nil && d > 0 && d <= longestAge, flag, v.Quoted(), "an age, such as 30m, 12h or 7d")
	return d
}

// read begins to read the dead letters of a broker. The caller closes the broker; queue.Inspect and Redrive close the letters.
func (w wanted) read(ctx context.Context) (brokers.Broker, queue.DeadLetters, error) {
	b, err := brokers.Open(ctx, w.broker)
	if err != nil {
		return nil, nil, coded(err)
	}
	letters, err := b.Letters(ctx, w.queue)
	if err != nil {
		b.Close()
		return nil, nil, coded(fmt.Errorf("%s: %w", w.queue, err))
	}
	return b, letters, nil
}

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
	took, incomplete, end := time.Since(began).Seconds(), err != nil || p.Failed > 0, "" // incomplete: letters that are meant may be left
	if incomplete {
		end = ", incomplete"
	}
	var writeErr error
	if f.JSON {
		writeErr = json.NewEncoder(env.Stdout).Encode(map[string]any{
			"from": w.queue, "to": f.To, "seen": p.Seen, "matched": p.Matched, "moved": p.Moved, "failed": p.Failed,
			"dry_run": c.DryRun, "interrupted": env.Context.Err() != nil, "incomplete": incomplete, "seconds": took,
		})
	} else {
		_, writeErr = fmt.Fprintf(env.Stdout, "%s from %s to %s in %.1f s%s\n", sentence(p, c.DryRun), term.Printable(w.queue), term.Printable(string(f.To)), took, end)
	}
	if err == nil {
		err = writeErr
	}
	err = interrupted(env, err, "interrupted: the same command again goes on with what is left")
	if err == nil && p.Failed > 0 {
		err = fmt.Errorf("%d of %d letters could not be moved", p.Failed, p.Matched)
	}
	return coded(err)
}

func sentence(p queue.Progress, dry bool) string {
	return choice.Either(dry, "would have "+p.String(), p.String())
}
