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
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// partVariable makes a process a part of the program: it has an order, as JSON.
const partVariable = "LULL_CHAOS_PART"

type partOrder struct {
	Part   string // worker, inspect, redrive, server
	Broker string
	At     brokerAddress
	Log    string // the file in which workers write what they have done
	Trace  string // the file for all that is done, or ""
}

// runPart does what the process was started for. It returns false if that is no part.
func runPart() bool {
	text := os.Getenv(partVariable)
	if text == "" {
		return false
	}
	var o partOrder
	must.Succeed(json.Unmarshal([]byte(text), &o))
	go func() { // it ends with the process that has started it
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	must.Main(o.Part, 1, func() error {
		if err := o.carryOut(ctx); ctx.Err() == nil {
			return err
		}
		return nil // it was interrupted
	})
	return true
}

func (o partOrder) carryOut(ctx context.Context) (err error) {
	defer must.Catch(&err)
	switch o.Part {
	case "server":
		serveNATS(o.At)
	case "worker":
		runWorker(ctx, o)
	case "inspect", "redrive":
		runTool(ctx, o)
	}
	return nil
}

func startPart(o partOrder, stderr io.Writer) *child.Child {
	cmd := exec.Command(must.Have(os.Executable()))
	cmd.Env = append(os.Environ(), partVariable+"="+string(must.Have(json.Marshal(o))))
	cmd.Stdout, cmd.Stderr = stderr, stderr
	return must.Have(child.Start(cmd))
}

// openTrace returns a function that adds a line to the file, if there is one: when, which process, what, whose message or
// letter, its number, how often it was redriven, its id, and the error. So one that is lost can be followed by its number.
func openTrace(file string) func(what, whose, id string, h queue.Headers, redrives int, err error) {
	if file == "" {
		return func(string, string, string, queue.Headers, int, error) {}
	}
	w := must.Have(os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	return func(what, whose, id string, h queue.Headers, redrives int, err error) {
		fmt.Fprintf(w, "%s %d %s %s n=%s redrives=%d %s %v\n", time.Now().Format("15:04:05.000"), os.Getpid(), what, whose, h[numberHeader], redrives, id, err)
	}
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

// runWorker consumes for both, until ctx ends.
func runWorker(ctx context.Context, o partOrder) {
	b := kinds[o.Broker].connect(ctx, o.At)
	defer b.close()
	log := must.Have(os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	defer log.Close()
	trace := openTrace(o.Trace)
	d := must.Have(lull.NewDependency("ledger", policy()))
	var both sync.WaitGroup
	errs := make([]error, len(consumers))
	for i, name := range consumers {
		handle := handler(name, log)
		traced := func(ctx context.Context, m *queue.Message) error {
			err := handle(ctx, m)
			trace("handled", name, m.ID, m.Headers, m.Redrives, err)
			return err
		}
		c := must.Have(queue.New(name, b.queue(ctx, name), d, traced, queue.Config{Lease: lease}, queue.WithObserver(logUnexpected)))
		both.Go(func() { errs[i] = c.Run(ctx) })
	}
	both.Wait()
	must.Succeed(errors.Join(errs...))
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

// runTool inspects or redrives the dead letters of both, once. It is often cut short.
func runTool(ctx context.Context, o partOrder) {
	b := kinds[o.Broker].connect(ctx, o.At)
	defer b.close()
	trace := openTrace(o.Trace)
	if o.Part == "inspect" {
		must.Have(queue.Inspect(ctx, b.letters(ctx), queue.Filter{}, func(l *queue.Letter) (bool, error) {
			trace("read", l.Source, l.ID, l.Headers, l.Redrives, nil)
			return true, nil
		}))
		return
	}
	for _, name := range consumers {
		// What has been back once, and died again, stays.
		c := queue.RedriveConfig{Filter: queue.Filter{Source: name, MaxRedrives: 1}, Rate: math.Inf(1)}
		must.Have(queue.Redrive(ctx, b.letters(ctx), b.sender(ctx, name), c, func(r queue.LetterResult) {
			trace("redriven", name, r.Letter.ID, r.Letter.Headers, r.Letter.Redrives, r.Err)
		}))
	}
}
