package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/brokers"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// Exit codes of lull queue, beside those of all commands.
const (
	exitUnreachable = 3
	exitNoQueue     = 4
)

// queueCommands are what can be done with dead letters.
type queueCommands struct {
	Inspect inspectFlags `cmd:"" help:"Show dead letters, and leave them where they are."`
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

// letterFlags say which dead letters are meant. They are text, so that all that is wrong
// with them can be said at once.
type letterFlags struct {
	Broker text `arg:"" help:"The broker: amqp://user:password@host:5672/vhost (and ?management=http://host:15672, where a limit on deliveries has to be looked up), nats://host:4222, or sqs://region. Its password may stand in LULL_BROKER_PASSWORD instead."`
	Queue  text `arg:"" help:"The queue of dead letters: its name, on NATS that of its stream, on SQS its name or URL."`

	Reason      text `placeholder:"REASON" help:"Only those that died of this, such as attempts_exhausted."`
	Code        text `placeholder:"CODE" help:"Only those whose last failure was this, such as connection_refused."`
	Source      text `placeholder:"NAME" help:"Only those that come from this queue."`
	ID          text `name:"id" placeholder:"ID" help:"Only the one with this original id."`
	OlderThan   text `placeholder:"AGE" help:"Only those that died longer ago, such as 30m, 12h or 7d."`
	YoungerThan text `placeholder:"AGE" help:"Only those that died since."`
	MaxRedrives text `placeholder:"N" help:"Only those that have been put back fewer times than this."`
	Limit       text `placeholder:"N" help:"No more than this many."`
	JSON        bool `name:"json" help:"Print JSON on standard output."`
}

// wanted is what letterFlags say.
type wanted struct {
	broker *url.URL
	queue  string
	filter queue.Filter
	limit  int
}

func (f letterFlags) wanted(env surroundings, l *problem.List) wanted {
	w := wanted{queue: string(f.Queue), filter: queue.Filter{
		Reason: string(f.Reason), Code: string(f.Code), Source: string(f.Source), ID: string(f.ID),
		OlderThan: age(l, "--older-than", f.OlderThan), YoungerThan: age(l, "--younger-than", f.YoungerThan),
		MaxRedrives: count(l, "--max-redrives", f.MaxRedrives),
	}, limit: count(l, "--limit", f.Limit)}
	var err error
	if w.broker, err = brokers.Parse(string(f.Broker)); err != nil {
		l.Add("BROKER", redacted(f.Broker), strings.TrimPrefix(err.Error(), "want "))
	} else if p := env.getenv("LULL_BROKER_PASSWORD"); p != "" {
		if _, typed := w.broker.User.Password(); !typed {
			w.broker.User = url.UserPassword(w.broker.User.Username(), p)
		}
	}
	l.Check(w.queue != "", "QUEUE", quoted(f.Queue), "the name of a queue")
	old, young := w.filter.OlderThan, w.filter.YoungerThan
	l.Check(young == 0 || young > old, "--younger-than", quoted(f.YoungerThan), "more than --older-than of "+string(f.OlderThan))
	return w
}

// redacted is a broker's URL as it was typed, without what may be a password.
func redacted(v text) string {
	if at := strings.LastIndexByte(string(v), '@'); at >= 0 {
		return quoted("..." + v[at:])
	}
	return quoted(v)
}

// count is a number from 1, or 0 where none was typed.
func count(l *problem.List, flag string, v text) int {
	if v == "" {
		return 0
	}
	return whole(l, flag, v, 1, math.MaxInt32)
}

const longestAge = 100 * 365 * 24 * time.Hour

// age is a duration, for which days are allowed too; 0 where none was typed.
func age(l *problem.List, flag string, v text) time.Duration {
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
	l.Check(err == nil && d > 0 && d <= longestAge, flag, quoted(v), "an age, such as 30m, 12h or 7d")
	return d
}

// read opens the broker and begins to read its dead letters. The returned function
// closes the broker; the letters are closed by who reads them.
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

// A failure is an error with an exit code of its own.
type failure struct {
	error
	code int
}

func (f failure) Unwrap() error { return f.error }

// coded gives err the exit code that it deserves.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, brokers.ErrUnreachable):
		return failure{err, exitUnreachable}
	case errors.Is(err, brokers.ErrNoQueue):
		return failure{err, exitNoQueue}
	}
	return err
}

// inspectFlags are those of lull queue inspect.
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
func (f inspectFlags) Run(env surroundings) error {
	var l problem.List
	w := f.wanted(env, &l)
	if err := l.Err(); err != nil {
		return err
	}
	b, letters, err := w.read(env.ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	out := newLetterPrinter(env.stdout, f.JSON, f.Body)
	shown := 0
	p, err := queue.Inspect(env.ctx, letters, w.filter, func(l *queue.Letter) (bool, error) {
		shown++
		return w.limit == 0 || shown < w.limit, out.print(l)
	})
	if late := out.end(p); err == nil {
		err = late
	}
	return coded(interrupted(env, err, "interrupted: there may be more"))
}

// interrupted is err, or what it means if the user has ended the command.
func interrupted(env surroundings, err error, means string) error {
	if err != nil && env.ctx.Err() != nil && errors.Is(err, env.ctx.Err()) {
		return errors.New(means)
	}
	return err
}

// redriveFlags are those of lull queue redrive.
type redriveFlags struct {
	letterFlags
	To     text `placeholder:"QUEUE" required:"" help:"Where they go: the name of a queue, on NATS a subject, or with wildcards (orders.>) the subjects that they had. On the same broker."`
	Rate   text `placeholder:"10" default:"10" help:"How many a second, at most: the queue has other work too. 0.001 or more, or max."`
	DryRun bool `help:"Move nothing, and say what would be moved."`
	Quiet  bool `help:"Show no progress."`
}

// Help is shown above the flags.
func (redriveFlags) Help() string {
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
func (f redriveFlags) Run(env surroundings) error {
	var l problem.List
	w := f.wanted(env, &l)
	c := queue.RedriveConfig{Filter: w.filter, Limit: w.limit, DryRun: f.DryRun, Rate: math.Inf(1)}
	if f.Rate != "max" {
		c.Rate = number(&l, "--rate", f.Rate, 0.001, 1e6, "letters a second, or max")
	}
	l.Check(f.To != "", "--to", quoted(f.To), "the name of a queue")
	l.Check(f.To != f.Queue, "--to", quoted(f.To), "another queue than that of the dead letters")
	if err := l.Err(); err != nil {
		return err
	}
	b, letters, err := w.read(env.ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	to, err := b.Sender(env.ctx, string(f.To))
	if err != nil {
		return coded(errors.Join(fmt.Errorf("%s: %w", f.To, err), letters.Close(context.WithoutCancel(env.ctx))))
	}
	began := time.Now()
	bar := newProgress(env, f.Quiet, time.Now)
	p, err := queue.Redrive(env.ctx, letters, to, c, func(s queue.Step) {
		if s.Err != nil {
			bar.end()
			fmt.Fprintf(env.stderr, "lull: %s stays a dead letter: %v\n", printable(s.Letter.OriginalID), s.Err)
		}
		bar.show(moving{s.Progress, c.DryRun})
	})
	bar.end()
	moved := redriven{Progress: p, From: w.queue, To: string(f.To), DryRun: c.DryRun, Seconds: time.Since(began).Seconds(), Interrupted: env.ctx.Err() != nil}
	if late := moved.print(env.stdout, f.JSON); err == nil {
		err = late
	}
	err = interrupted(env, err, "interrupted: the same command again goes on with what is left")
	if err == nil && p.Failed > 0 {
		err = fmt.Errorf("%d of %d letters could not be moved", p.Failed, p.Matched)
	}
	return coded(err)
}

// moving is how far a redrive has come.
type moving struct {
	queue.Progress
	dry bool
}

func (m moving) line(took time.Duration) string {
	return fmt.Sprintf("%s, %.1f/s", sentence(m.Progress, m.dry), float64(m.Moved)/cmp.Or(took.Seconds(), 1))
}

// sentence is progress for people.
func sentence(p queue.Progress, dry bool) string {
	if dry {
		return "would have " + p.String()
	}
	return p.String()
}
