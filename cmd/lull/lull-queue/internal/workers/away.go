package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// Away is a cells.Away: it hands the cells out, and takes their results. When it returns, none of them is left in the queue.
func Away(ctx context.Context, address string, all []cells.Cell, done func(i int, r json.RawMessage) error) (err error) {
	s, err := connect(ctx, address, "lull")
	if err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	defer s.conn.Close()
	o, err := newOrder(all, done)
	if err != nil {
		return err
	}
	o.server = s
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watch, err := s.results.Watch(ctx, o.run+".*")
	if err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	defer watch.Stop()
	if o.letters, err = o.written(ctx); err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	defer func() {
		if left := o.takeBack(); left != nil && len(o.left) > 0 {
			err = errors.Join(err, fmt.Errorf("--workers: cells may be left in the queue: %w", left))
		}
	}()
	if err := o.wait(ctx, watch); err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	return nil
}

type order struct {
	*server
	all     []cells.Cell
	done    func(i int, r json.RawMessage) error
	run     string           // a digest of the cells: a run that is begun again finds its results
	id      string           // of this order
	left    map[string][]int // cells without a result, by the names of the results
	letters uint64           // dead letters that there were
}

func newOrder(all []cells.Cell, done func(i int, r json.RawMessage) error) (*order, error) {
	o := &order{all: all, done: done, id: nuid.Next(), left: map[string][]int{}}
	sum := sha256.New()
	keys := make([]string, len(all))
	for i := range all {
		key, err := all[i].Key()
		if err != nil {
			return nil, err
		}
		keys[i] = key
		io.WriteString(sum, key)
	}
	o.run = hex.EncodeToString(sum.Sum(nil)[:8])
	for i, key := range keys {
		name := o.run + "." + key
		o.left[name] = append(o.left[name], i)
	}
	return o, nil
}

// wait takes results until none is missing. Cells whose results are not there yet are sent.
func (o *order) wait(ctx context.Context, watch jetstream.KeyWatcher) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for len(o.left) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case value, open := <-watch.Updates():
			switch {
			case !open:
				return errors.New("the connection has ended")
			case value == nil: // those that were there have come
				if err := o.send(ctx); err != nil {
					return err
				}
			case value.Operation() == jetstream.KeyValuePut:
				if err := o.take(value); err != nil {
					return err
				}
			}
		case <-tick.C:
			if err := o.dead(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *order) take(value jetstream.KeyValueEntry) error {
	waiting, there := o.left[value.Key()]
	if !there {
		return nil // it was flown twice
	}
	text, err := unpacked(value.Value())
	if err != nil {
		return err
	}
	delete(o.left, value.Key())
	for _, i := range waiting {
		if err := o.done(i, text); err != nil {
			return err
		}
	}
	return nil
}

func (o *order) send(ctx context.Context) error {
	to, err := lullnats.NewSender(o.js, stream, subject+o.id)
	if err != nil {
		return err
	}
	first := make([]string, len(o.all))
	for name, waiting := range o.left {
		first[waiting[0]] = name
	}
	for i, name := range first {
		if name == "" {
			continue
		}
		body, err := json.Marshal(o.all[i])
		if err != nil {
			return err
		}
		m := queue.Outgoing{
			ID: o.id + "." + name, Body: body,
			Headers: queue.Headers{headerBuild: cells.Build(), headerResult: name, headerRun: o.id},
		}
		if err := o.call(ctx, func(ctx context.Context) error { return to.Send(ctx, m) }); err != nil {
			return err
		}
	}
	return nil
}

// written is how many dead letters have been written up to now.
func (o *order) written(ctx context.Context) (n uint64, err error) {
	err = o.call(ctx, func(ctx context.Context) error {
		s, err := o.js.Stream(ctx, config().WithDefaults().DeadLetters)
		if err == nil {
			n = s.CachedInfo().State.LastSeq
		}
		return err
	})
	return n, err
}

func (o *order) dead(ctx context.Context) error {
	n, err := o.written(ctx)
	if err != nil || n == o.letters {
		return err
	}
	o.letters = n
	letters, err := lullnats.Letters(ctx, o.js, config())
	if err != nil {
		return err
	}
	defer letters.Close(ctx)
	for {
		some, err := letters.Next(ctx, 100)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, l := range some {
			if l.Headers[headerRun] == o.id {
				return fmt.Errorf("cell %s is a dead letter of %s: %s after %d attempts: %s",
					l.Headers[headerResult], config().WithDefaults().DeadLetters, l.Reason, l.Attempts, strings.Join(l.Errors, ": "))
			}
		}
	}
}

// takeBack removes what is still in the queue, even if the run was interrupted.
func (o *order) takeBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := o.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(subject+o.id))
}
