// Command chaos has queue consumers live through what brokers, machines and operators do to them, and counts
// what is lost and what comes twice.
//
//	go run ./lab/chaos                      20,000 messages in five minutes, on each broker
//	go run ./lab/chaos -messages 2000 -for 40s -broker nats
//
// A producer that is not lull's, and gives no message an id, sends messages that differ in one header. Two consumers
// get each of them, in four worker processes, and put their dead letters into one place. Meanwhile workers and the
// server are killed (kill -9), and dead letters are inspected and redriven by processes that are killed or interrupted as well.
// What is killed, and when, follows from -seed; what that meets does not.
//
// The brokers are RabbitMQ, as it is installed (LULLAMQP_RABBITMQ_SERVER names another), and an embedded NATS
// server with JetStream, each in a process of its own on 127.0.0.1. It exits with 1 if anything was lost.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func main() {
	if runPart() {
		return
	}
	var s setting
	flag.StringVar(&s.brokers, "broker", "rabbitmq,nats", "which brokers, one after the other")
	flag.IntVar(&s.messages, "messages", 20_000, "how many messages are sent")
	flag.DurationVar(&s.time, "for", 5*time.Minute, "how long they are sent, and processes killed")
	flag.IntVar(&s.workers, "workers", 4, "worker processes")
	flag.DurationVar(&s.server, "server", 40*time.Second, "how long the server lives on average")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64(), "what is killed, and when")
	flag.StringVar(&s.trace, "trace", "", "the file to which all is added that becomes of each message and letter")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	must.Main("chaos", 1, func() error { return run(ctx, s, os.Stdout, os.Stderr) })
}

type setting struct {
	brokers  string
	messages int
	time     time.Duration
	workers  int
	server   time.Duration
	seed     uint64
	trace    string
}

func (s setting) validate() error {
	var l problem.List
	for _, name := range strings.Split(s.brokers, ",") {
		l.Check(kinds[name] != nil, "-broker", strconv.Quote(name), "rabbitmq, nats, or both")
	}
	l.Check(s.messages >= 1 && s.messages <= 1_000_000, "-messages", s.messages, "1 to 1000000")
	l.Check(s.time >= time.Second, "-for", s.time, "a second or more")
	l.Check(s.server >= time.Second, "-server", s.server, "a second or more")
	l.Check(s.workers >= 1 && s.workers <= 64, "-workers", s.workers, "1 to 64")
	return l.Err()
}

func run(ctx context.Context, s setting, out, progress io.Writer) error {
	if err := s.validate(); err != nil {
		return err
	}
	progress = &lockedWriter{w: progress}
	var results []result
	for _, name := range strings.Split(s.brokers, ",") {
		r, err := runBroker(ctx, s, name, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, r)
	}
	return report(out, s, results)
}

// lockedWriter is a writer that several processes may use at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *lockedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

func report(out io.Writer, s setting, results []result) error {
	fmt.Fprintf(out, "%d messages in %v, to two consumers in %d processes each; -seed %d\n\n", s.messages, s.time, s.workers, s.seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "broker\tworkers killed\tservers killed\tinspections and redrives cut\tredriven\thandled\tdead letters\tcame twice\tlost\t")
	var err error
	var resent []string
	for _, r := range results {
		resent = append(resent, fmt.Sprintf("%d on %s", r.resent, r.broker))
		fmt.Fprintf(w, "%s\t%d\t%d\t%d of %d\t%d\t%d\t%d\t%d\t%d\t\n", r.broker, r.workers, r.servers, r.cut, r.tools, r.redriven, r.handled, r.letters, r.twice, len(r.lost))
		if len(r.lost) > 0 {
			err = fmt.Errorf("messages were lost: %s, such as %v", r.broker, r.lost[:min(len(r.lost), 10)])
		}
	}
	if e := w.Flush(); e != nil {
		return e
	}
	fmt.Fprintf(out, "\nHandled, dead letters, came twice and lost count each message once for each consumer. One came twice if it was handled\n"+
		"twice or more, or was handled and is a dead letter as well. A message that the producer had to send again, since the\n"+
		"server died before it had confirmed it, is not counted for that: there were %s.\n", strings.Join(resent, ", "))
	return err
}
