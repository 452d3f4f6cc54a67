package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/queue"
)

// partVariable makes a process a part of the program: it has an order, as JSON.
const partVariable = "LULL_CHAOS_PART"

// An order is the task of a part.
type order struct {
	Part   string // worker, inspect, redrive, server
	Broker string
	At     place
	Log    string // the file in which workers write what they have done
	Trace  string // the file for all that is done, or ""
}

// part does what the process was started for. It returns false if that is no part.
func part() bool {
	text := os.Getenv(partVariable)
	if text == "" {
		return false
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	go func() { // it ends with the process that has started it
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch o.Part {
	case "server":
		err = serveNATS(o.At)
	case "worker":
		err = work(ctx, o)
	case "inspect", "redrive":
		err = tool(ctx, o)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, o.Part+":", err)
		os.Exit(1)
	}
	return true
}

// child is a part that runs.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

func startPart(o order, stderr io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), partVariable+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = stderr, stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.cmd.Wait()
	}()
	return c, nil
}

// kill ends it at once.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.ended
}

// consumers are the two of each message.
var consumers = [...]string{"billing", "shipping"}

// numberHeader is the one header in which messages differ.
const numberHeader = "n"

// policy is patient with brokers that die, and quick.
func policy() lull.Policy {
	p := queue.Policy()
	p.Attempts = 30
	p.AttemptTimeout = 5 * time.Second
	p.Backoff = backoff.Schedule{Base: 200 * time.Millisecond, Cap: 2 * time.Second}
	p.HintLimit = time.Minute
	return p
}

// work consumes for both, until ctx ends.
func work(ctx context.Context, o order) error {
	b, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	t, err := openTrace(o.Trace)
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("ledger", policy())
	if err != nil {
		return err
	}
	var both sync.WaitGroup
	errs := make([]error, len(consumers))
	for i, name := range consumers {
		q, err := b.queue(ctx, name)
		if err != nil {
			return err
		}
		c, err := queue.New(name, t.queue(name, q), d, handler(name, log), queue.Config{Lease: lease}, queue.WithObserver(logUnexpected))
		if err != nil {
			return err
		}
		both.Go(func() { errs[i] = c.Run(ctx) })
	}
	both.Wait()
	return errors.Join(errs...)
}

const lease = 4 * time.Second

// logUnexpected logs what should not be, but for what killing servers makes of it.
func logUnexpected(ctx context.Context, e queue.Event) {
	if e.Kind == queue.EventSettled && (e.Code == queue.ReasonPanicked || e.Reason != "" && e.Reason != engine.Permanent.String() && e.Reason != queue.ReasonCrashed) {
		queue.NewLog(slog.Default())(ctx, e)
	}
}

// handler handles most messages, and logs each in one write. One in seven fails at first; one in fifty for
// good, and half of these also after their redrive.
func handler(name string, log io.Writer) queue.Handler {
	return func(ctx context.Context, m *queue.Message) error {
		if e, redriven := queue.EnvelopeOf(m.Headers); redriven && e.Source != name {
			return queue.DropMessage(nil) // it was the other's letter, and went to where both listen
		}
		n, err := strconv.Atoi(m.Headers[numberHeader])
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(n%10) * time.Millisecond)
		switch {
		case n%100 == 50, n%50 == 0 && m.Redrives == 0:
			return lull.Permanent(errors.New("no such account"))
		case n%7 == 0 && m.Attempt == 1:
			return lull.Transient(errors.New("the ledger is busy"))
		}
		_, err = fmt.Fprintf(log, "%s %d\n", name, n)
		return err
	}
}

// tool inspects or redrives the dead letters of both, once. It is often cut short.
func tool(ctx context.Context, o order) error {
	b, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	t, err := openTrace(o.Trace)
	if err != nil {
		return err
	}
	if o.Part == "inspect" {
		from, err := b.letters(ctx)
		if err != nil {
			return err
		}
		_, err = queue.Inspect(ctx, t.letters(from), queue.Filter{}, func(*queue.Letter) (bool, error) { return true, nil })
		return err
	}
	for _, name := range consumers {
		from, err := b.letters(ctx)
		if err != nil {
			return err
		}
		to, err := b.sender(ctx, name)
		if err != nil {
			return errors.Join(err, from.Close(ctx))
		}
		// What has been back once, and died again, stays.
		c := queue.RedriveConfig{Filter: queue.Filter{Source: name, MaxRedrives: 1}, Rate: math.Inf(1)}
		if _, err = queue.Redrive(ctx, t.letters(from), t.sender(name, to), c, nil); err != nil {
			return err
		}
	}
	return nil
}
