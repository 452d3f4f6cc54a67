package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/wiring"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/server/proxy"
)

func wiringOf(f *file.File) wiring.Config {
	return wiring.Config{Traces: wiring.Traces(f.Traces), Fleet: wiring.Fleet(f.Fleet), Store: f.Ingress.Keys.Store}
}

// checkWiring returns what is wrong with the addresses of what f takes from outside.
func checkWiring(f *file.File) error {
	var l problem.List
	c := wiringOf(f)
	l.In("Traces", c.Traces.Validate())
	l.In("Fleet", c.Fleet.Validate())
	if c.Store != "" {
		if err := wiring.CheckStore(c.Store); err != nil { // which has no part of the address: a password may be in it
			l.Add("Ingress.Keys.Store", errors.New("wrong"), strings.TrimPrefix(err.Error(), "want "))
		}
	}
	return l.Err()
}

// closing is how long spans, shared budgets and stores may take to be closed.
const closing = 2 * time.Second

func (r *running) closeWiring() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if err := r.wiring.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.say(err)
	}
}

// record is called at the end of each request.
func (r *running) record(one *proxy.Record) {
	r.wiring.Count(one)
	r.log.record(one)
}
