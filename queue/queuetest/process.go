package queuetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/tail"
	"github.com/lullgo/lull/queue"
)

// workerVariable makes a process a worker, and has its job as JSON.
const workerVariable = "LULL_QUEUETEST_WORKER"

// parallel is -test.parallel, if it was not given.
const parallel = 48

type job struct {
	Work        string
	Address     string
	Lease       time.Duration
	Attempts    int
	Concurrency int
}

const (
	workPoison  = "poison"
	workRedrive = "redrive"
	workHandle  = "handle"
)

// Main is for TestMain: it runs the tests, and returns the exit code. In a process that
// the tests started as a worker, it does that worker's job, and exits.
func Main(m *testing.M, connect func(ctx context.Context, address string) (*Connection, error)) int {
	if text := os.Getenv(workerVariable); text != "" {
		var j job
		must.Succeed(json.Unmarshal([]byte(text), &j))
		j.do(connect)
		os.Exit(0)
	}
	pace.Overlap(parallel)
	defer func() { os.RemoveAll(built.folder) }()
	return m.Run()
}

type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // when it has ended
}

// What workers print beside what their handlers do.
const (
	lineLate   = "late"   // the worker was too late for a lease
	lineBuried = "buried" // a message is a dead letter
)

// startWorker starts a worker, which ends with the test. hear gets each line that it prints, and an empty one at its end.
func (b *tester) startWorker(work string, attempts, concurrency int, hear func(line string)) *worker { //outside: only for a broker that other processes can reach
	j := job{work, b.address, b.o.Lease, attempts, concurrency}
	w := &worker{cmd: exec.Command(must.Have(os.Executable()), "-test.run=^$"), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerVariable+"="+string(must.Have(json.Marshal(j))))
	stderr := &tail.Tail{}
	w.cmd.Stderr = stderr
	stdout := must.Have(w.cmd.StdoutPipe())
	w.stdin = must.Have(w.cmd.StdinPipe())
	must.Succeed(w.cmd.Start())
	b.Cleanup(func() {
		w.kill()
		w.wait()
		if s := stderr.String(); s != "" && b.Failed() {
			b.Logf("a worker says on its standard error:\n%s", s)
		}
	})
	in := bufio.NewScanner(stdout)
	ready := in.Scan() && in.Text() == "ready"
	go func() {
		for ready && in.Scan() {
			hear(in.Text())
		}
		io.Copy(io.Discard, stdout)
		w.err = w.cmd.Wait()
		hear("")
		close(w.ended)
	}()
	if !ready {
		b.Fatalf("a worker did not begin (does TestMain call queuetest.Main?): %s", stderr)
	}
	return w
}

func (w *worker) kill() { w.cmd.Process.Kill() }
func (w *worker) stop() { w.stdin.Close() } // the worker lets its handlers end
func (w *worker) wait() { <-w.ended }

// printLine writes a line at once: what was printed is not lost when the process is killed.
func printLine(format string, a ...any) { os.Stdout.Write(fmt.Appendf(nil, format+"\n", a...)) }

// do is the main function of a worker. It connects again when its connection has failed.
func (j job) do(connect connector) {
	printLine("ready")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
		time.Sleep(20 * time.Second)
		os.Exit(4)
	}()
	for ctx.Err() == nil {
		if err := j.connectAndWork(ctx, connect); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func (j job) connectAndWork(ctx context.Context, connect connector) error {
	c, err := connect(ctx, j.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	w := newWatch(j.Lease)
	context.AfterFunc(w.lateContext, func() { printLine(lineLate) })
	w.watchCalls(c)
	defer w.watchTimers()()
	if j.Work == workRedrive {
		return redriveAndDie(ctx, c)
	}
	handler, wait := handlePoison, 20*time.Millisecond
	if j.Work == workHandle {
		handler, wait = handleNumber, 100*time.Millisecond
	}
	d, err := lull.NewDependency("backend", plain(j.Attempts, wait))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failures atomic.Int64
	observe := func(_ context.Context, e queue.Event) {
		switch e.Kind {
		case queue.EventReceiveFailed:
			if failures.Add(1) > 5 {
				cancel() // the broker may not reconnect by itself
			}
		case queue.EventSettled:
			failures.Store(0)
			if e.Outcome == queue.DeadLetter {
				printLine(lineBuried)
			}
		}
		if e.Kind == queue.EventReceiveFailed || e.Kind == queue.EventSettleFailed {
			fmt.Fprintf(os.Stderr, "%v %v: %v\n", e.Kind, e.ID, e.Err)
		}
	}
	config := queue.Config{Concurrency: j.Concurrency, Lease: j.Lease, Drain: time.Second}
	consumer, err := queue.New("orders", c.Broker, d, handler, config, queue.WithObserver(observe))
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// redriveAndDie moves letters until the process dies: it has sent one letter and not removed it.
func redriveAndDie(ctx context.Context, c *Connection) error {
	from, err := c.Letters(ctx)
	if err != nil {
		return err
	}
	p, err := queue.Redrive(ctx, &stuckReading{DeadLetters: from, after: 2, fail: child.KillSelf}, c.Sender, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
	printLine("%v, %v", p, err)
	return err
}

// handlePoison ends the process when a message is poison.
func handlePoison(_ context.Context, m *queue.Message) error {
	body := string(m.Body)
	if body == "exit" || body == "kill" {
		printLine("run %s", body)
		time.Sleep(50 * time.Millisecond) // others are handled beside it
		if body == "exit" {
			os.Exit(3)
		}
		child.KillSelf()
	}
	time.Sleep(200 * time.Millisecond)
	printLine("done %s", body)
	return nil
}

// What NothingLost's messages do: a hundredth fails permanently, a fifth fails once or twice.
func failsForGood(i int) bool { return i%100 == 7 }
func failuresOf(i int) int {
	return choice.Either(i%5 == 0, 1+i/5%2, 0)
}

func handleNumber(_ context.Context, m *queue.Message) error {
	i, err := strconv.Atoi(string(m.Body))
	switch {
	case err != nil:
		return queue.DeadLetterAs("no number", err)
	case failsForGood(i):
		printLine("bad %d", i)
		return lull.Permanent(fmt.Errorf("message %d fails for good", i))
	case m.Attempt <= failuresOf(i):
		printLine("blip %d", i)
		return lull.Transient(errBlip)
	}
	time.Sleep(2 * time.Millisecond)
	printLine("done %d", i)
	return nil
}
