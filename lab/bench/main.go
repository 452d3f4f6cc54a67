// Command bench measures lull beside the Go libraries that people use for the
// same job, in one run on one machine: failsafe-go, gobreaker, cenkalti/backoff,
// avast/retry-go, go-retryablehttp, hedgedhttp, and the retries that gRPC has itself.
// It is a module of its own, so that none of them becomes a dependency of lull.
//
//	go run ./lab/bench                      # everything, about six minutes
//	go run ./lab/bench -group Composed      # the groups whose name contains that
//	go run ./lab/bench -rounds 15 -time 500ms
//	go run ./lab/bench -json > figures.json
//	go run -pgo cmd/lull/default.pgo ./lab/bench -simulator     # the simulator, compiled as lull is, beside container/heap
//	go run -pgo cmd/lull/default.pgo ./lab/bench -simulator -clients 25000000
//
// # What is measured
//
// Each group gives every subject the same thing to do: an operation, or a
// transport, that costs next to nothing, so that what is left is the library's
// own work. Each subject is set up the way its documentation shows, in the form
// that is cheapest to call again (policies and executors built once). What a
// subject does beside retrying is printed with it, because a subject that does
// less should be faster: compare like with like.
//
// Every measurement is made twice: on one core, and on two cores whose
// goroutines share the subject's state, as the goroutines of one process share
// its breaker. On two cores the figure is wall time divided by calls, so a
// subject that scales perfectly halves it, and one that fights over a lock does
// not.
//
// The groups on hedging measure the calls that are not hedged, nineteen in twenty
// of them all: each subject is ready to send a second attempt after a second, and
// none is ever late. What lull takes more for that than under the same policy
// without hedging stands below the table: 300 ns and one allocation are allowed to a
// call. (An HTTP request of which there may be two takes a copy of it besides, in a
// context of its own.)
//
// GRPCUnary is the exception to the rule that the work costs next to nothing: a whole
// call, from the stub of generated code to a server in the same process and back,
// through memory. Both halves are in each figure, and most of it is gRPC; what counts
// is the differences below the table. A deadline is sent to the server and watched
// on both sides, whoever has set it, so lull without timeouts is compared with a bare
// call, and the zero policy, which has one, with a bare call that its caller gives one.
// Client and server share the cores, so that two of them do not halve the time.
//
// Adapters has lull's adapters for clients of databases, caches and clouds, each beside the
// bare client and beside the client with a deadline that its caller gives to each call: the zero policy
// has one, and most of what an adapter takes is for that. (The figures of a bare call that nothing
// bounds in time are no goal.) What is called answers at once: a driver, a server in the same process,
// the next step of the SDK. lullpgx is measured with a real server: go test -run '^$' -bench Cost
// ./integrations/postgres/lullpgx.
//
// # Noise
//
// Each measurement is a process of its own, so that no subject pays for what
// another has left behind: one of them keeps goroutines, timers and contexts.
// One round measures every subject once, in turn, and starts from a different
// one each time: what disturbs the machine for a while disturbs all of them. The
// table has the median over the rounds, by which subjects are compared, and the
// minimum, which is near the figure of a quiet machine. Of differences it has the
// median of those within a round, and that of the minimums. Bytes and allocations
// are exact.
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
	simulator := flags.Bool("simulator", false, "measure the simulator instead, beside a loop over container/heap; the table has the quickest round")
	clients := flags.Int("clients", 10_000_000, "the most clients that -simulator flies")
	asJSON := flags.Bool("json", false, "print JSON instead of tables")
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
	if *simulator {
		return flyStorms(stdout, stderr, min(*rounds, 5), *clients)
	}
	chosen, err := choose(groups(), *only)
	if err != nil {
		return err
	}
	results, err := measureAll(chosen, *rounds, measureApart(*per), stderr)
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(stdout, results)
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
