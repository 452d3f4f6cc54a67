// Command tail shows what hedging does about a few slow requests, and what it does
// when every request is slow. It takes 20 seconds, and uses real HTTP on this machine:
//
//	go run ./docs/examples/tail
//	go run ./docs/examples/tail -rate 200 -every 60 -duration 10s
//
// A backend answers in about 5 ms, but takes 100 times as long for one request in 80:
// it met a pause of the garbage collector, a busy disk, a lost packet. The same calls
// are made to it twice, through an http.Client under lull, without hedging and with
// it. That is all the difference: Policy.Hedge has 2 attempts, and a MaxDelay of 25 ms.
//
// With it, a second request is sent when the first takes longer than 19 in 20 do,
// which is learned from them, and whichever answers first is the result. The other is
// cancelled: its context ends at the backend too, which stops working on it.
//
// Then every request becomes slow, as in an overload. A second request for each would
// double the load when the backend can bear it least. But hedges are for a tail: when
// more than one call in ten is late, none is hedged, until the others are back in time.
//
// MaxDelay is after how long a call is late, whatever is learned. Without it hedging
// gets used to slow answers as to any others: within two seconds 500 ms would be what
// most calls take, and nothing late. For a service that has changed for good that is
// right. Here it would take up to ten seconds, when all is well again, to get used to
// that, and until then 500 ms would not be late either.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

// The two policies.
var (
	plain  = lull.Policy{}
	hedged = lull.Policy{Hedge: hedge.Config{Attempts: 2, MaxDelay: 5 * usual}}
)

// A setting is how often and how long the backend is called.
type setting struct {
	rate                int           // calls a second
	every               uint64        // one request in so many is slow
	seed                uint64        // of which that is
	duration            time.Duration // of the comparison, with each policy
	before, slow, after time.Duration // of the turn: before it, while all is slow, and after
}

// warmUp comes before what is compared: connections are opened, and what is late is
// learned.
const warmUp = time.Second

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "tail:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, err = show(s, listener, (&net.Dialer{}).DialContext, stdout)
	return err
}

func parse(args []string, stderr io.Writer) (setting, error) {
	s := setting{seed: rand.Uint64(), before: 2 * time.Second, slow: 3 * time.Second, after: 4 * time.Second}
	flags := flag.NewFlagSet("tail", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.rate, "rate", 500, "calls a second, from 100 to 5000; they do not wait for one another")
	flags.Uint64Var(&s.every, "every", 80, "one request in so many takes 100 times as long, from 2 to 99; if it is\n20 or less, that is not the tail but a part of what is usual, and hardly hedged")
	flags.DurationVar(&s.duration, "duration", 4*time.Second, "how long the calls are made without hedging, and with it, 1s or more")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q: tail takes flags only, see -help", flags.Arg(0))
	case s.rate < 100 || s.rate > 5000:
		return s, fmt.Errorf("-rate is %d: want 100 to 5000", s.rate)
	case s.every < 2 || s.every > 99:
		return s, fmt.Errorf("-every is %d: want 2 to 99, so that the p99 is one of the slow", s.every)
	case s.duration < time.Second:
		return s, fmt.Errorf("-duration is %v: want 1s or more", s.duration)
	}
	return s, nil
}

// figures are those of one policy.
type figures struct {
	calls, requests int64 // requests: that the backend got for the calls
	p50, p99, p999  time.Duration
}

func (f figures) extra() int64 { return f.requests - f.calls }

// shown is all that was seen.
type shown struct {
	plain, hedged figures
	turn          turn
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// show starts a backend, makes the calls, and prints what came of them.
func show(s setting, listener net.Listener, dial dialer, out io.Writer) (r shown, err error) {
	defer must.Catch(&err)
	b := newBackend(s.every, s.seed)
	server := &http.Server{Handler: b}
	defer server.Close()
	go server.Serve(listener)

	// A connection for each request in flight, kept for the next ones: what is slow
	// here should be the backend.
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext, base.MaxIdleConns, base.MaxIdleConnsPerHost = dial, 0, 10_000
	defer base.CloseIdleConnections()

	under := func(p lull.Policy) *load {
		client := must.Have(lullhttp.NewClient(p, lullhttp.WithBase(base)))
		return &load{client: client, url: "http://" + listener.Addr().String(), rate: s.rate}
	}
	without, with := under(plain), under(hedged)

	fmt.Fprintf(out, "A backend answers in about %v, but takes %v for one request in %d.\n", usual, long, s.every)
	fmt.Fprintf(out, "It gets %d calls a second, for %v without hedging, and for as long with it:\n\n", s.rate, s.duration)
	fmt.Fprintf(out, "%-15s %9s %9s %9s %8s %9s %15s\n", "", "p50", "p99", "p99.9", "calls", "requests", "extra")
	r.plain = compare("without hedging", s, b, without, out)
	r.hedged = compare("with hedging", s, b, with, out)
	fmt.Fprintf(out, "\nThe p99 is %.0f times lower, for %.1f %% more requests, as the backend counted them.\n\n",
		float64(r.plain.p99)/float64(r.hedged.p99), percent(r.hedged.extra(), r.hedged.calls))

	fmt.Fprintf(out, "Now, still with hedging, every request takes %v for %v:\n\n", long, s.slow)
	r.turn = must.Have(s.turn(b, with, out))
	calls, hedges := sum(r.turn.slow)
	fmt.Fprintf(out, "\nOf %d calls while all was slow %d were hedged, %.1f %%", calls, hedges, percent(hedges, calls))
	if last := lastHedge(r.turn.slow); last > 0 {
		fmt.Fprintf(out, ", the last of them within %v", last)
	}
	fmt.Fprintln(out, ".")
	if again := firstHedge(r.turn.after); again > 0 {
		fmt.Fprintf(out, "When all was well again, the first hedge came within %v.\n", again)
	}
	return r, nil
}

// compare makes calls under one policy, and prints a line about them.
func compare(name string, s setting, b *backend, l *load, out io.Writer) figures {
	must.Have(l.run(warmUp))
	before := b.requests.Load()
	took := must.Have(l.run(s.duration))
	f := figures{
		calls: int64(len(took)), requests: b.requests.Load() - before,
		p50: percentile(took, 0.5), p99: percentile(took, 0.99), p999: percentile(took, 0.999),
	}
	fmt.Fprintf(out, "%-15s %9s %9s %9s %8d %9d %6d = %.1f %%\n", name, millis(f.p50), millis(f.p99), millis(f.p999),
		f.calls, f.requests, f.extra(), percent(f.extra(), f.calls))
	return f
}

// millis is a duration in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
