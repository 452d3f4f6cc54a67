//go:build servers

package natstest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue/queuetest"
)

// program is lull.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it is not short to build programs and to kill them")
	}
	return queuetest.Program(t)
}

// A cellWorker is lull worker in a process of its own.
type cellWorker struct {
	cmd    *exec.Cmd
	begins chan string // each cell that it begins
	ended  chan string // all that it has printed
}

func work(t *testing.T, program, url string, errs io.Writer) *cellWorker {
	t.Helper()
	w := &cellWorker{begins: make(chan string, 1000), ended: make(chan string, 1)}
	w.cmd = exec.Command(program, "worker", url, "--workers", "1")
	w.cmd.Stderr = errs
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	must(t, w.cmd.Start())
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if cell, _, begins := strings.Cut(lines.Text(), " begins: "); begins {
				w.begins <- cell
			}
		}
		w.cmd.Wait()
		w.ended <- all.String()
	}()
	t.Cleanup(func() { w.cmd.Process.Kill() })
	return w
}

// Three processes fly the cells of a sweep. One of them is killed while it is at work on a cell. What is printed is byte for
// byte what one process prints.
func TestCellsOfKilledWorkers(t *testing.T) {
	lull := program(t)
	t.Parallel()
	r := own(t)
	declare(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	args := []string{"simulate", "metastable-stall", "--policy", "none,full-jitter,lull", "--sweep", "clients=10,100,1000", "--seeds", "4", "--json", "--quiet", "--force"}
	run := func(more ...string) []byte {
		var out, errs bytes.Buffer
		c := exec.CommandContext(ctx, lull, append(args, more...)...)
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Errorf("%v: %v: %s", c.Args, err, errs.String())
		}
		return out.Bytes()
	}
	got := make(chan []byte, 1)
	begin := func() { got <- run("--workers", r.url()) }

	for range 2 {
		work(t, lull, r.url(), os.Stderr)
	}
	victim := work(t, lull, r.url(), os.Stderr) // the third, until it dies
	go begin()
	for tries := 1; ; tries++ {
		var cell string
		select {
		case cell = <-victim.begins:
		case <-ctx.Done():
			t.Fatal("no cell is begun")
		}
		victim.cmd.Process.Kill()
		if all := <-victim.ended; !strings.Contains(all, cell+" is done") {
			break
		}
		if tries == 10 {
			t.Fatal("the worker was never killed in the midst of a cell: this test shows nothing")
		}
		victim = work(t, lull, r.url(), os.Stderr) // it was quicker
	}
	after := <-got
	if want := run(); !bytes.Equal(after, want) {
		t.Errorf("printed by workers, of which one was killed\n%.2000s\nand by one process\n%.2000s", after, want)
	}
	check.Equal(t, r.msgs(t, "LULL_CELLS"), 0, "cells are left in the queue")

	// A run that is begun again finds the results, and needs no worker.
	if again := run("--workers", r.url()); !bytes.Equal(again, after) {
		t.Error("begun again it prints something else")
	}
}

// declare makes the queue with a short lease. Workers take it as it is.
func declare(t *testing.T, r *running) {
	t.Helper()
	c := lullnats.Config{Stream: "LULL_CELLS", Consumer: "workers", Subject: "lull.cells.*", Lease: 3 * time.Second}
	must(t, lullnats.Declare(bg, r.js(t), c))
}

// msgs returns how many messages a stream has.
func (r *running) msgs(t *testing.T, stream string) int {
	t.Helper()
	s, err := r.js(t).Stream(bg, stream)
	must(t, err)
	return int(s.CachedInfo().State.Msgs)
}

// A worker of another build would give other results. What it refuses is a dead letter, which ends the run.
func TestCellsOfAnotherBuild(t *testing.T) {
	lull, other := program(t), filepath.Join(t.TempDir(), "other")
	worker, err := os.ReadFile(lull + "-queue")
	if err == nil {
		err = os.WriteFile(other, append(worker, 0), 0o755)
	}
	must(t, err)
	// Only now: a process that another test started meanwhile would have the file open for a moment, and a program
	// that is open for writing cannot be started (ETXTBSY).
	t.Parallel()
	r := own(t)
	work(t, other, r.url(), nil)
	var errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	c := exec.CommandContext(ctx, lull, "battery", "--quick", "--quiet", "--world", "peace-err0.1-r50-p1", "--rivals", "none", "--workers", r.url())
	c.Stderr = &errs
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "is a dead letter of LULL_CELLS_DEAD: permanent after 1 attempts: it was asked for by another build of lull") {
		t.Errorf("%v: %s", err, errs.String())
	}
	check.Equal(t, r.msgs(t, "LULL_CELLS"), 0, "cells are left in the queue")
}
