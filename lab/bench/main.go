// Command bench measures lull beside the Go libraries that people use for the
// same job, in one run on one machine: failsafe-go, gobreaker, cenkalti/backoff,
// avast/retry-go, go-retryablehttp, hedgedhttp, and the retries that gRPC has itself.
//
//	go run ./lab/bench                      # everything, about six minutes
//	go run ./lab/bench -group Composed      # the groups whose name contains that
//	go run ./lab/bench -rounds 15 -time 500ms
//
// A group gives each subject the same work, which costs next to nothing: what is left is the library's own. (GRPCUnary is a whole call
// through memory, both halves of it, and Adapters has clients of databases, caches and clouds: there the differences count that stand below
// the table, to the bare client with a deadline of its caller's. lullpgx is measured with a real server: go test -run '^$' -bench Cost
// ./integrations/postgres/lullpgx.) A subject is set up as its documentation shows, in the form that is cheapest to call again. What it does
// beside retrying is printed with it: compare like with like. Of the groups on hedging no call is late: they measure those that are not hedged.
//
// Each figure is measured on one core, and on two whose goroutines share the subject's state: there it is wall time divided by calls. Each
// measurement is a process of its own. A round measures every subject once, and starts from another one each time, so that what disturbs
// the machine disturbs all. The table has the median over the rounds, and the minimum, which is near that of a quiet machine; of
// differences the median of those within a round, and that of the minimums. Bytes and allocations are exact.
//
// The same measurements as Go benchmarks, for benchstat:
//
//	go test -run '^$' -bench . -cpu 1,2 -count 10 ./lab/bench
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func main() {
	testing.Init() // registers test.benchtime, by which -time reaches testing.Benchmark
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 7, "how often everything is measured; the table has the median")
	per := flags.Duration("time", 200*time.Millisecond, "how long each measurement of a round runs")
	only := flags.String("group", "", "measure only the groups whose name contains this (any case)")
	subject := flags.String("subject", "", "measure this one (group/subject) once, in this process, and print JSON: for the command's own use, and for profiles")
	cores := flags.Int("cores", 1, "on how many cores -subject is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: bench takes flags only, see -help", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds is %d: want 1 or more", *rounds)
	case *per <= 0:
		return fmt.Errorf("-time is %v: want a positive duration", *per)
	}
	if *subject != "" {
		if err := flag.Set("test.benchtime", per.String()); err != nil {
			return err
		}
		return measureHere(groups(), *subject, *cores, stdout)
	}
	chosen, err := choose(groups(), *only)
	if err != nil {
		return err
	}
	results, err := measureAll(chosen, *rounds, measureApart(*per), stderr)
	if err != nil {
		return err
	}
	return printTables(stdout, results, *rounds)
}

// choose keeps the groups whose name contains part, in any case.
func choose(all []group, part string) ([]group, error) {
	var chosen []group
	var names []string
	for _, g := range all {
		names = append(names, g.name)
		if strings.Contains(strings.ToLower(g.name), strings.ToLower(part)) {
			chosen = append(chosen, g)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-group %q matches none of %s", part, strings.Join(names, ", "))
	}
	return chosen, nil
}
