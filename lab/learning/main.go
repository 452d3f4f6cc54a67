// Command learning shows whether lull learn, lull tune and lull replay tell the truth, and prints the tables of docs/learn.md:
//
//	go run ./lab/learning coverage     worlds that are known, as lull learn sees them
//	go run ./lab/learning incidents    incidents on sockets, and what lull replay says of them
//	go run ./lab/learning proposals    what lull tune proposes, in worlds of the battery
//
// Without an argument it does all of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/lullgo/lull/internal/must"
)

// options are what the flags say.
var options struct {
	lull, folder, only string
	seed               uint64
	worlds             int
	keep, again        bool
}

var parts = []struct {
	name string
	run  func(context.Context, io.Writer) error
}{
	{"coverage", runCoverage},
	{"incidents", runIncidents},
	{"proposals", runProposals},
}

func main() {
	must.Main("learning", 1, func() error {
		flag.StringVar(&options.lull, "lull", "", "the program lull; otherwise it is built of this tree")
		flag.StringVar(&options.folder, "folder", filepath.Join(os.TempDir(), "lull-learning"), "where what was recorded and learnt is kept")
		flag.StringVar(&options.only, "only", "", "coverage: only this source; incidents: only this one")
		flag.Uint64Var(&options.seed, "seed", 1, "coverage, proposals: the first seed")
		flag.IntVar(&options.worlds, "worlds", 200, "coverage, proposals: how many worlds")
		flag.BoolVar(&options.keep, "keep", false, "coverage: keep all files")
		flag.BoolVar(&options.again, "again", false, "incidents, proposals: use what an earlier run has recorded and proposed in the folder")
		flag.Parse()
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		for _, part := range parts {
			if all := flag.NArg() == 0; all || slices.Contains(flag.Args(), part.name) {
				if err := part.run(ctx, os.Stdout); err != nil {
					return fmt.Errorf("%s: %w", part.name, err)
				}
			}
		}
		return nil
	})
}

// lullProgram returns the path of lull, which is built when it is first needed.
var lullProgram = sync.OnceValue(func() string {
	if options.lull != "" {
		return options.lull
	}
	must.Succeed(os.MkdirAll(options.folder, 0o700))
	path := filepath.Join(options.folder, "lull")
	cmd := exec.Command("go", "build", "-o", path, "github.com/lullgo/lull/cmd/lull")
	cmd.Stderr = os.Stderr
	must.Succeed(cmd.Run())
	return path
})

// progress prints to standard error what is being measured.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
