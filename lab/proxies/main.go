// Command proxies measures lull proxy beside other proxies, and prints the table that stands in docs/proxy.md. It starts each of them
// on this machine, with doors on 127.0.0.1:
//
//	lab/proxies/install.sh /tmp/proxies
//	go run ./lab/proxies --programs /tmp/proxies outage load
//
// Its arguments are the parts of the table; without any all are measured, one after the other, which takes hours.
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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// options are what the flags say.
var options struct {
	programs, lull                 string
	peers                          []string
	adapters, clients, keep, cases string
	together, rounds               int
	requests                       int
	duration                       time.Duration
	verbose, race                  bool
}

type part struct {
	name string
	run  func(context.Context, io.Writer) error
}

// parts are those of the table, in the order in which they are measured.
var parts = []part{
	{"torture", runTorture},
	{"outage", runOutage},
	{"load", runLoad},
	{"kill", runKill},
	{"soak", runSoak},
	{"probe", runProbe},
	{"sim", runSim},
}

func main() {
	must.Main("proxies", 1, func() error {
		if len(os.Args) > 2 && os.Args[1] == "bare" {
			return bare(os.Args[2:])
		}
		f := flag.NewFlagSet("proxies", flag.ExitOnError)
		f.StringVar(&options.programs, "programs", "", "the folder with what lab/proxies/install.sh has installed")
		f.StringVar(&options.lull, "lull", "", "the program lull; otherwise it is built of this tree")
		compared := f.String("peers", "bare,lull,caddy,haproxy,nginx", "the proxies")
		f.StringVar(&options.adapters, "adapters", "", "torture: the list that lab/clients/install.sh has printed")
		f.StringVar(&options.clients, "clients", strings.Join(tortured, ","), "torture: the clients of that list")
		f.StringVar(&options.keep, "keep", "", "torture: a file that keeps the cards; what has one is not run again")
		f.StringVar(&options.cases, "case", "", "torture: only these cases, as for lull torture")
		f.IntVar(&options.together, "together", 16, "torture: cases at the same time")
		f.IntVar(&options.rounds, "rounds", 3, "load: how often each proxy is measured, in turns")
		f.IntVar(&options.requests, "requests", 1_000_000, "soak: how many requests")
		f.DurationVar(&options.duration, "duration", 30*time.Second, "outage, kill: how long the outage, and the load of each trial, lasts")
		f.BoolVar(&options.race, "race", false, "build lull with the race detector")
		f.BoolVar(&options.verbose, "verbose", false, "print what the proxies write to standard error")
		f.Parse(os.Args[1:])
		options.peers = split(*compared)
		for _, name := range options.peers {
			peerNamed(name)
		}
		for _, name := range f.Args() {
			if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
				must.Fail("no part of the table is named %q", name)
			}
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		for _, part := range parts {
			if f.NArg() == 0 || slices.Contains(f.Args(), part.name) {
				if err := part.run(ctx, os.Stdout); err != nil {
					return fmt.Errorf("%s: %w", part.name, err)
				}
			}
		}
		return nil
	})
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// lullProgram returns the path of lull, which is built when it is first needed.
var lullProgram = sync.OnceValue(func() string {
	if options.lull != "" {
		return options.lull
	}
	path := filepath.Join(os.TempDir(), "lull-proxies-lull")
	cmd := exec.Command("go", "build", fmt.Sprint("-race=", options.race), "-o", path, "github.com/lullgo/lull/cmd/lull")
	cmd.Stderr = os.Stderr
	must.Succeed(cmd.Run())
	return path
})

// progress prints to standard error what is being measured.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// A table is one of Markdown.
type table struct{ out io.Writer }

func newTable(out io.Writer, corner string, columns ...string) table {
	t := table{out}
	t.row(corner, columns...)
	fmt.Fprintln(out, strings.Repeat("|---", 1+len(columns))+"|")
	return t
}

func (t table) row(name string, cells ...string) {
	fmt.Fprintln(t.out, "| "+strings.Join(append([]string{name}, cells...), " | ")+" |")
}
