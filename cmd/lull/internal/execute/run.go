package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/choice"
)

type runner struct {
	setting
	env      cli.Env
	path     string // of the program
	quiet    bool
	stream   bool // standard output is passed through
	ownGroup bool // the command gets a process group of its own
	input    *input
	signals  *signals
	number   int      // of the attempt
	out      *os.File // what the last attempt printed on standard output; nil if it is passed through
}

func (r *runner) run() error {
	d, err := lull.NewDependency(filepath.Base(r.argv[0]), r.policy,
		lull.WithClassifier(r.classify), lull.WithObserver(observer{r}))
	if err != nil {
		return cli.Fail(exitOwn, err)
	}
	if r.input, err = newInput(r.env.Stdin); err != nil {
		return cli.Fail(exitOwn, fmt.Errorf("standard input: %w", err))
	}
	defer r.input.close()
	// The context of env ends with an interrupt. Here the command decides what that means.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.env.Context))
	defer cancel()
	r.signals = catchSignals(cancel)
	defer r.signals.stop()
	defer r.dropOutput()

	err = lull.Run(ctx, d, r.attempt)
	if r.out != nil {
		if copied := copyOutput(r.env.Stdout, r.out); copied != nil {
			return cli.Fail(exitOwn, fmt.Errorf("standard output: %w", copied))
		}
	}
	if err == nil {
		return nil
	}
	return r.exitError(err)
}

func (r *runner) classify(err error) lull.Verdict {
	if e, ok := errors.AsType[attemptError](err); ok && !e.timedOut && r.transient.has(e) {
		return lull.Verdict{Kind: lull.KindTransient, Code: strings.ReplaceAll(e.ended(), " ", "_")}
	}
	return lull.Classify(err)
}

func (r *runner) attempt(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.number++
	c := exec.Command(r.path, r.argv[1:]...)
	c.Args[0] = r.argv[0]
	c.Env = append(os.Environ(), fmt.Sprintf("LULL_ATTEMPT=%d", r.number))
	c.Stdout, c.Stderr = r.env.Stdout, r.env.Stderr
	if !r.stream {
		r.dropOutput()
		var err error
		if r.out, err = os.CreateTemp("", "lull-exec-"); err != nil {
			return startError{err}
		}
		c.Stdout = r.out
	}
	setGroup(c, r.ownGroup)
	cut := make(chan error, 1)
	fed, err := r.input.connect(c, cut)
	if err != nil {
		return startError{err}
	}
	if err := r.signals.start(c, r.ownGroup); err != nil {
		fed()
		return startError{err}
	}
	over := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- r.endInTime(ctx, c, cut, over) }()
	err = c.Wait()
	r.signals.ended()
	close(over)
	unread := <-watched
	fed()
	if unread != nil {
		return lull.Permanent(inputError{unread})
	}
	if err == nil {
		return nil
	}
	if c.ProcessState == nil {
		return startError{err}
	}
	e := endOf(c.ProcessState)
	e.timedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	return e
}

// endInTime ends the command when ctx does, unless by a signal, which it has too, or when its input is cut short; it returns why.
func (r *runner) endInTime(ctx context.Context, c *exec.Cmd, cut <-chan error, over <-chan struct{}) (unread error) {
	select {
	case <-over:
		return nil
	case unread = <-cut:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil
		}
	}
	terminate(c, r.ownGroup)
	grace := time.NewTimer(r.killAfter)
	defer grace.Stop()
	select {
	case <-over:
	case <-grace.C:
		kill(c, r.ownGroup)
	}
	return unread
}

func (r *runner) dropOutput() {
	if r.out != nil {
		r.out.Close()
		os.Remove(r.out.Name())
		r.out = nil
	}
}

func copyOutput(to io.Writer, out *os.File) error {
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(to, out)
	return err
}

type observer struct{ *runner }

func (o observer) Observe(_ context.Context, e event.Event) {
	switch {
	case e.Kind == event.RetryScheduled:
		if o.out != nil {
			if err := copyOutput(o.env.Stderr, o.out); err != nil {
				fmt.Fprintf(o.env.Stderr, "lull: the output of attempt %d is lost: %v\n", e.Attempt, err)
			}
		}
		if !o.quiet {
			fmt.Fprintf(o.env.Stderr, "lull: attempt %d of %d: %v after %v; the next in %v\n",
				e.Attempt, e.MaxAttempts, e.Err, short(e.AttemptTook), short(e.Delay))
		}
	case e.Kind == event.CallEnded && e.Reason == engine.Success && e.Attempt > 1 && !o.quiet:
		fmt.Fprintf(o.env.Stderr, "lull: attempt %d of %d succeeded\n", e.Attempt, e.MaxAttempts)
	}
}

func short(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

type attemptError struct {
	code     int    // its exit code, if no signal ended it
	signal   int    // the number of the signal that ended it, or 0
	name     string // of the signal
	timedOut bool   // its time was over
}

func (e attemptError) ended() string {
	return choice.Either(e.signal > 0, "signal "+e.name, fmt.Sprintf("exit code %d", e.code))
}

func (e attemptError) Error() string {
	return choice.Either(e.timedOut, "ran out of time", e.ended())
}

// Unwrap makes a timeout one for lull.Classify.
func (e attemptError) Unwrap() error {
	return choice.Either(e.timedOut, context.DeadlineExceeded, nil)
}

type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// inputError is the error of an input that was cut short: what the command did with a part of it is no success.
type inputError struct{ error }

func (e inputError) Error() string { return "standard input was cut short: " + e.error.Error() }
func (e inputError) Unwrap() error { return e.error }

// exitError returns the error of lull for that of the call, with its exit code and why the command was not repeated.
func (r *runner) exitError(err error) error {
	if e, ok := errors.AsType[startError](err); ok {
		return cli.Fail(startCode(e), cli.CannotRun(r.argv[0], e.error))
	}
	if e, ok := errors.AsType[inputError](err); ok {
		return cli.Fail(exitOwn, e)
	}
	call, _ := errors.AsType[*lull.Error](err)
	e, ended := errors.AsType[attemptError](err)
	killedBy := r.signals.endingSignal()
	code := exitTimeout
	switch {
	case ended && e.signal > 0 && !e.timedOut:
		code = 128 + e.signal
	case ended && !e.timedOut:
		code = e.code
	case !ended && killedBy > 0:
		code = 128 + killedBy
	}
	if r.quiet {
		return cli.Fail(code, errors.New(""))
	}
	why := call.Reason.Meaning()
	switch {
	case killedBy > 0:
		why = "a signal asked it to end"
	case call.Reason == engine.AttemptsExhausted && r.policy.Attempts == 1:
		why = "--attempts allows one attempt"
	case call.Reason == engine.AttemptsExhausted:
		why = "--attempts allows no more"
	case call.Reason == engine.Deadline:
		why = "no time is left before the deadline (--deadline)"
	case call.Reason == engine.Permanent:
		why = "--transient does not have this"
	}
	if call.Last != nil {
		why += ": " + call.Last.Error()
	}
	return cli.Fail(code, fmt.Errorf("%s failed after %s (%v); not repeated, because %s",
		r.argv[0], term.Counted(call.Attempts, "attempt"), short(call.Elapsed), why))
}

type signals struct {
	received chan os.Signal
	done     chan struct{}

	mu       sync.Mutex // guards the rest
	running  *exec.Cmd  // nil between attempts
	ownGroup bool       // it has a process group of its own
	ending   os.Signal  // the first that ends the call, or nil
}

// catchSignals starts to pass signals on. Cancel is called after one that ends the call.
func catchSignals(cancel context.CancelFunc) *signals {
	s := &signals{received: make(chan os.Signal, 16), done: make(chan struct{})}
	signal.Notify(s.received, passedOn...)
	go func() {
		defer close(s.done)
		for got := range s.received {
			if s.pass(got) {
				cancel()
			}
		}
	}()
	return s
}

// pass passes a signal on, and reports whether it ends the call.
func (s *signals) pass(got os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := endsCall(got)
	if ends && s.ending == nil {
		s.ending = got
	}
	if s.running != nil {
		send(s.running, s.ownGroup, got)
	}
	return ends
}

// start starts an attempt. A signal that came just before reaches it too.
func (s *signals) start(c *exec.Cmd, own bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	s.running, s.ownGroup = c, own
	if s.ending != nil {
		send(c, own, s.ending)
	}
	return nil
}

func (s *signals) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
}

// endingSignal returns the number of the signal that ended the call, 0 if none did.
func (s *signals) endingSignal() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.ending.(syscall.Signal)
	return int(n)
}

func (s *signals) stop() {
	signal.Stop(s.received)
	close(s.received)
	<-s.done
}
