// Package workers hands the cells of lull simulate and lull battery out to other machines, through NATS JetStream.
//
// Cells are messages of a queue, LULL_CELLS, and workers are its consumers: a cell whose worker dies is
// delivered to another when its lease has lapsed, one that cannot be flown becomes a dead letter. Results are
// values of the bucket LULL_RESULTS, where the one who asked watches for them. A cell that is flown
// twice has the same result twice, so nothing has to happen exactly once.
package workers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	command "github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	stream  = "LULL_CELLS"
	subject = "lull.cells."
	bucket  = "LULL_RESULTS"
	// kept is for how long results are kept: a run that is begun again takes what is there.
	kept = 24 * time.Hour
)

// Headers of the message of a cell.
const (
	headerBuild  = "Lull-Build"  // of the program that asks
	headerResult = "Lull-Result" // the name of the result
	headerRun    = "Lull-Run"    // who asks
)

// policy is that of the workers. A cell takes as long as it takes.
func policy() lull.Policy {
	p := queue.Policy()
	p.AttemptTimeout = lull.NoTimeout
	return p
}

func config() lullnats.Config {
	return lullnats.Config{Stream: stream, Consumer: "workers", Subject: subject + "*", Policy: policy()}
}

type server struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	results jetstream.KeyValue
	calls   *lull.Dependency // the server itself
}

func connect(ctx context.Context, address, name string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls"}, u.Scheme) {
		return nil, errors.New("want a URL of NATS, such as nats://host:4222")
	}
	s := &server{}
	if s.calls, err = lull.NewDependency("nats", lull.Policy{}); err != nil {
		return nil, err
	}
	if s.conn, s.js, err = brokers.NATS(u, nats.Name(name), nats.MaxReconnects(-1)); err != nil {
		return nil, err
	}
	err = lullnats.Declare(ctx, s.js, config())
	if err == nil {
		s.results, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, TTL: kept, Description: "results of lull's cells"})
	}
	if err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

// call makes a call to the server under the zero policy.
func (s *server) call(ctx context.Context, op func(context.Context) error) error {
	return lull.Run(ctx, s.calls, func(ctx context.Context) error {
		err := op(ctx)
		if err == nil || errors.Is(err, nats.ErrMaxPayload) {
			return err
		}
		return lull.Transient(err)
	})
}

func packed(r cells.Result) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err = z.Write(text); err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}

func unpacked(value []byte) (json.RawMessage, error) {
	z, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	return text, nil
}

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
