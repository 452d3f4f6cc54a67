package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lullgo/lull/internal/must"
)

func runCoverage(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	for n := range options.worlds {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w := drawWorld(options.seed + uint64(n))
		w.fly(ctx)
		fmt.Fprintln(out, w.seed, w.family, len(w.attempts), w.timeouts, w.scenario.Fleets[0].Arrivals.Rate, w.capacity, w.saturates, w.calm, w.waits, w.contender.Name)
		for _, s := range sources {
			if options.only != "" && options.only != s.name {
				continue
			}
			folder := filepath.Join(options.folder, fmt.Sprint(w.seed), s.name)
			must.Succeed(os.MkdirAll(folder, 0o700))
			s.export(w, folder)
		}
	}
	return nil
}
