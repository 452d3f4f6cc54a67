package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// A result counts how all messages of one broker ended.
type result struct {
	broker           string
	workers, servers int // killed
	tools, cut       int // inspections and redrives, and how many of them were cut short
	redriven         int // messages that are in the log or the letters after a redrive
	resent           int
	handled, letters int
	twice            int
	lost             []string
}

// A messageEnd is how one message ended at one consumer.
type messageEnd struct {
	handled, letters int
}

// patience is how long nothing moves before what is missing counts as lost: longer than any lease, wait or give-back
// takes, and than handOn.
func patience() time.Duration { return handOn + 2*time.Minute }

// settle is how long nothing moves, after all have come to their end, before duplicates are counted. Tests have less.
var settle = 5 * time.Second

// runBroker is the life of all parts with one broker.
func runBroker(ctx context.Context, s setting, name string, progress io.Writer) (r result, err error) {
	defer must.Catch(&err)
	r.broker = name
	dir := must.Have(os.MkdirTemp("", "lull-chaos"))
	defer os.RemoveAll(dir)
	k := kinds[name]
	srv := k.start(dir)
	defer srv.stop()
	here := k.connect(ctx, srv.at())
	defer here.close()
	here.declare(ctx)
	o := partOrder{Broker: name, At: srv.at(), Log: filepath.Join(dir, "handled"), Trace: s.trace}

	resent := make([]bool, s.messages)
	var sent atomic.Int64
	producing, stopProducer := context.WithCancel(ctx)
	defer stopProducer()
	var producer sync.WaitGroup
	send := k.produce(producing, srv.at())
	producer.Go(func() {
		began := time.Now()
		for n := range s.messages {
			time.Sleep(time.Until(began.Add(s.time * time.Duration(n) / time.Duration(s.messages))))
			for send(n) != nil && producing.Err() == nil {
				resent[n] = true
				time.Sleep(50 * time.Millisecond)
			}
			sent.Add(1)
		}
	})

	draw := rand.New(rand.NewPCG(s.seed, uint64(len(name))))
	workers := make([]*child.Child, s.workers)
	defer func() {
		for _, w := range workers {
			if w != nil {
				w.Kill()
			}
		}
	}()
	begin := func(i int) {
		o.Part = "worker"
		workers[i] = startPart(o, progress)
	}
	for i := range workers {
		begin(i)
	}

	// The chaos: in one goroutine, so that what is done follows from the seed.
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(draw.Int64N(int64(most-least)))
	}
	began := time.Now()
	server := began.Add(between(s.server/2, s.server*3/2))
	var back chan error // where the start of the server that was killed ends
	var tool *child.Child
	for time.Since(began) < s.time && ctx.Err() == nil {
		sleep.For(ctx, between(100*time.Millisecond, 900*time.Millisecond))
		if draw.IntN(3) == 0 {
			i := draw.IntN(len(workers))
			workers[i].Kill()
			r.workers++
			begin(i)
		}
		for i, w := range workers { // one that has ended by itself
			if w.HasEnded() {
				begin(i)
			}
		}
		if tool == nil {
			o.Part = []string{"inspect", "redrive", "redrive"}[draw.IntN(3)]
			tool = startPart(o, io.Discard)
			r.tools++
			soon, how := between(5*time.Millisecond, 300*time.Millisecond), draw.IntN(4)
			sleep.For(ctx, soon)
			if how < 3 && !tool.HasEnded() {
				if how > 0 || tool.Process.Signal(os.Interrupt) != nil {
					tool.Kill()
				}
				<-tool.Ended
				r.cut++
			}
		}
		if tool.HasEnded() {
			tool = nil
		}
		select {
		case err := <-back:
			must.Succeed(err)
			back, server = nil, time.Now().Add(between(s.server/2, s.server*3/2))
		default:
		}
		if back == nil && time.Now().After(server) {
			srv.kill()
			r.servers++
			fmt.Fprintf(progress, "%s: %v, %d sent, %d workers and %d servers killed\n", name, time.Since(began).Round(time.Second), sent.Load(), r.workers, r.servers)
			away, started := between(0, time.Second), make(chan error, 1)
			go func() {
				sleep.For(ctx, away)
				started <- srv.start()
			}()
			back = started
		}
	}
	if back != nil {
		must.Succeed(<-back)
	}
	if tool != nil {
		tool.Kill()
	}

	// Peace: all that was sent comes to its end.
	producer.Wait()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	var fates map[string][]messageEnd
	announced := false
	for last, since := -1, time.Now(); ; sleep.For(ctx, time.Second) {
		fates = countEnds(ctx, here, o.Log, s.messages, &r)
		sum, left := 0, 0
		for _, all := range fates {
			for _, f := range all {
				sum += f.handled + 1000*f.letters
				if f.handled+f.letters == 0 {
					left++
				}
			}
		}
		if sum != last {
			last, since = sum, time.Now()
		}
		quiet := time.Since(since)
		if left == 0 && quiet > settle || quiet > patience() || ctx.Err() != nil {
			break
		}
		if !announced && quiet > 30*time.Second {
			announced = true
			fmt.Fprintf(progress, "%s: nothing moves, %d to come; they count as lost after %v\n", name, left, patience())
		}
	}
	for n := range s.messages {
		if resent[n] {
			r.resent++
		}
		for _, c := range consumers {
			f := fates[c][n]
			switch {
			case f.handled+f.letters == 0:
				r.lost = append(r.lost, c+" "+strconv.Itoa(n))
			case f.handled+f.letters > 1 && !resent[n]:
				r.twice++
			}
			r.handled += min(f.handled, 1)
			r.letters += min(f.letters, 1)
		}
	}
	return r, ctx.Err()
}

func countEnds(ctx context.Context, b broker, log string, messages int, r *result) map[string][]messageEnd {
	fates := map[string][]messageEnd{}
	for _, c := range consumers {
		fates[c] = make([]messageEnd, messages)
	}
	r.redriven = 0
	for line := range strings.Lines(string(must.Have(os.ReadFile(log)))) {
		var c string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d", &c, &n); err == nil && fates[c] != nil && n >= 0 && n < messages {
			fates[c][n].handled++
			if n%50 == 0 {
				r.redriven++
			}
		}
	}
	must.Have(queue.Inspect(ctx, b.letters(ctx), queue.Filter{}, func(l *queue.Letter) (bool, error) {
		n, err := strconv.Atoi(l.Headers[numberHeader])
		if err != nil || fates[l.Source] == nil || n < 0 || n >= messages {
			return false, fmt.Errorf("a letter of %q with the number %q", l.Source, l.Headers[numberHeader])
		}
		fates[l.Source][n].letters++
		if l.Redrives > 0 {
			r.redriven++
		}
		return true, nil
	}))
	return fates
}
