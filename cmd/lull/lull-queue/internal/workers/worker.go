package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	command "github.com/lullgo/lull/cmd/lull/internal/queue"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// Work is lull worker: it flies cells until it is interrupted.
func Work(env cli.Env, c command.Worker) error {
	side := runtime.GOMAXPROCS(0)
	if c.Workers != "" {
		var l problem.List
		if side = cli.Whole(&l, "--workers", c.Workers, 1, 1024); l.Err() != nil {
			return l.Err()
		}
	}
	s, err := connect(env.Context, c.URL, "lull worker")
	if err != nil {
		return err
	}
	defer s.conn.Close()
	w := &worker{server: s, out: env.Stdout}
	if c.Quiet {
		w.out = io.Discard
	}
	b, err := lullnats.Open(env.Context, s.js, config())
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("cells", policy())
	if err != nil {
		return err
	}
	consumer, err := queue.New(stream, b, d, w.handle, queue.Config{Concurrency: side, Batch: 1})
	if err != nil {
		return err
	}
	reaper, err := lullnats.NewReaper(env.Context, s.js, config())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(env.Context)
	var reaping sync.WaitGroup
	reaping.Go(func() {
		failed := func(err error) { fmt.Fprintf(env.Stderr, "lull: cells whose workers died may not be found: %v\n", err) }
		if err := reaper.Run(ctx, time.Minute, failed); err != nil {
			failed(err)
		}
	})
	defer reaping.Wait()
	defer stop()
	return consumer.Run(ctx)
}

type worker struct {
	*server
	mu  sync.Mutex // guards out
	out io.Writer
}

func (w *worker) print(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, format+"\n", args...)
}

func (w *worker) handle(ctx context.Context, m *queue.Message) error {
	if build := m.Headers[headerBuild]; build != cells.Build() {
		return lull.Permanent(fmt.Errorf("it was asked for by another build of lull, %s: the worker is %s", build, cells.Build()))
	}
	var c cells.Cell
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return lull.Permanent(err)
	}
	name := m.Headers[headerResult]
	flown := true // by another worker
	err := w.call(ctx, func(ctx context.Context) error {
		_, err := w.results.Get(ctx, name)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			flown, err = false, nil
		}
		return err
	})
	if flown || err != nil {
		return err
	}
	w.print("%s begins: %s with %s, seed %d", name, c.Scenario.Name, c.Contender.Name, c.Seed)
	began := time.Now()
	r, err := c.Fly(ctx, nil)
	if err != nil {
		return err
	}
	value, err := packed(r)
	if err != nil {
		return err
	}
	err = w.call(ctx, func(ctx context.Context) error {
		_, err := w.results.Put(ctx, name, value)
		return err
	})
	if err == nil {
		w.print("%s is done in %v", name, time.Since(began).Round(time.Millisecond))
	}
	return err
}
