// Command overload shows what admission control does for a server that gets three times
// what it can do, from clients that retry. It takes some twenty seconds:
//
//	go run ./docs/examples/overload
//	go run ./docs/examples/overload -times 2 -seconds 5
//
// A server on this machine has four workers, who take 20 ms for a request: 200 a second.
// It gets 600 calls a second, which do not wait for one another. A client waits for
// 300 ms, and a naive one makes up to three attempts, whatever the answer, and sends which
// it is, as the SDKs of many services do.
//
// (a) As servers are: whatever comes waits for a worker. The queue is longer than the
// clients' patience within a second, and from then on all work is done for callers that
// have gone; that they come back makes it longer.
//
// (b) Behind package admission, with its zero Config, which knows neither the four
// workers nor the 20 ms. The clients are the same.
//
// (c) The same server, and clients under lull, which obey a refusal.
//
// The capacity is measured too, as a busy machine does not sleep for 20 ms exactly.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// A setting holds the values of the flags.
type setting struct {
	times    float64 // the load, in capacities
	duration time.Duration
	draws    draws
}

// draws are random bits, for several goroutines.
type draws func() uint64

func (d draws) Uint64() uint64 { return d() }

func run(args []string, stdout, stderr io.Writer) error {
	s := setting{draws: rand.Uint64}
	seconds := 0
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Float64Var(&s.times, "times", 3, "the load, as a multiple of what the server can do, from 0.5 to 5")
	flags.IntVar(&seconds, "seconds", 5, "how long each of the three parts is measured, from 2 to 60; two more come before")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: overload takes flags only, see -help", flags.Arg(0))
	case !(s.times >= 0.5 && s.times <= 5):
		return fmt.Errorf("-times is %v: want 0.5 to 5", s.times)
	case seconds < 2 || seconds > 60:
		return fmt.Errorf("-seconds is %d: want 2 to 60", seconds)
	}
	s.duration = time.Duration(seconds) * time.Second
	_, err := show(s, loopback(), stdout)
	return err
}

// show flies the three parts, and prints a line for each.
func show(s setting, n network, out io.Writer) (parts [3]figures, err error) {
	fmt.Fprintf(out, "A server that can do %.0f requests a second gets %.0f calls a second, for %v each:\n\n", capacity, s.times*capacity, s.duration)
	fmt.Fprintf(out, "%-44s %9s %11s %9s %9s %10s\n", "", "goodput", "of capacity", "p50", "p99", "attempts")
	for i, p := range []struct {
		name     string
		admitted bool
		obeying  bool
	}{
		{"(a) no admission control, naive clients", false, false},
		{"(b) admission control, naive clients", true, false},
		{"(c) admission control, clients that obey", true, true},
	} {
		f, err := fly(s, n, p.admitted, p.obeying)
		if err != nil {
			return parts, err
		}
		parts[i] = f
		fmt.Fprintf(out, "%-44s %7.0f/s %9.0f %% %9s %9s %10.2f\n", p.name, f.goodput, 100*f.ofCapacity, millis(f.p50), millis(f.p99), f.attempts)
	}
	fmt.Fprintf(out, "\nGoodput is calls that succeed; p50 and p99 are of what the server did work on, from its arrival\n"+
		"(nothing waits for admission for longer than %v); attempts are for each call.\n", bound)
	return parts, nil
}

// millis is a duration in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
