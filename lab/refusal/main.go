// Command refusal measures what it costs a server to refuse a request: the CPU time of its process for a 503, beside that of
// requests with 1 ms and 10 ms of work.
//
//	go run ./lab/refusal                 every server that is installed: some three minutes of a quiet machine
//	go run ./lab/refusal -server Node    only the servers whose name contains that
//
// The servers are those of Go's, Python's and Node's standard libraries, and nginx (which has no work of its own), each in a process
// on 127.0.0.1. A 503 has an empty body, or one of 1 KB and a line in a log. The work is a loop. Eight callers ask at a time, on
// connections that they keep, or each time on a new one, also with TLS 1.3 and a full handshake (ECDSA P-256). "Closed" is a
// connection that the process accepts and closes at once.
//
// Only the CPU time of the server counts, as Linux has it in /proc. What else runs on the machine, the callers included, makes the
// measurement longer and changes little. Each figure is the median of some rounds.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/must"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		must.Main("refusal", 1, func() error { return serve(os.Args[2:]) })
		return
	}
	rounds := flag.Int("rounds", 3, "how often everything is measured; the table has the median")
	cpu := flag.Duration("cpu", 500*time.Millisecond, "how much CPU time a server uses for each figure of a round")
	name := flag.String("server", "", "only the servers whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	must.Main("refusal", 1, func() error { return run(ctx, *rounds, *cpu, *name, os.Stdout) })
}

// A request is a column of the table. It is made in batches, between which the CPU time is read.
type request struct {
	name, path    string
	status, batch int
}

var requests = [...]request{
	{"503", "/refuse", 503, 200},
	{"503, 1 KB and a log line", "/refuse/log", 503, 200},
	{"200 of 1 ms", "/work/1", 200, 40},
	{"200 of 10 ms", "/work/10", 200, 8},
}

// A way is how the callers connect: to which of the server's ports, and whether they keep the connections.
type way struct {
	name string
	port int
	keep bool
}

// The ports of a server.
const (
	plain = iota
	secure
	closed // only net/http has it
)

var ways = []way{{"kept", plain, true}, {"new", plain, false}, {"new, TLS", secure, false}, {"closed", closed, false}}

// A row is what one server takes for each of the requests, on one kind of connections. Zero: not measured.
type row struct {
	server, connections string
	took                [len(requests)]time.Duration
}

func run(ctx context.Context, rounds int, cpu time.Duration, name string, stdout io.Writer) (err error) {
	defer must.Catch(&err)
	if rounds < 1 || cpu < tick {
		must.Fail("-rounds is %d and -cpu %v: want 1 or more, and %v or more", rounds, cpu, tick)
	}
	var rows []row
	var versions, missing []string
	for _, d := range servers {
		if !strings.Contains(d.name, name) {
			continue
		}
		r, err := start(ctx, d)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", d.name, err))
			continue
		}
		versions = append(versions, d.version())
		func() {
			defer r.stop()
			rows = append(rows, r.measure(rounds, cpu)...)
		}()
	}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	fmt.Fprintf(stdout, "%s, %d cores, %s.\nCPU time of the server's process for a request, median of %d.\n\n%s",
		processor(string(cpuinfo)), runtime.NumCPU(), strings.Join(slices.Compact(versions), ", "), rounds, table(rows))
	if len(missing) > 0 {
		fmt.Fprintf(stdout, "\nNot measured: %s.\n", strings.Join(missing, ", "))
	}
	return nil
}

func (r *running) measure(rounds int, cpu time.Duration) (rows []row) {
	for _, w := range ways[:len(ways)-1] {
		rows = append(rows, row{server: r.def.name, connections: w.name})
		for k, q := range requests {
			if q.status == http.StatusOK && r.def.noWork {
				continue
			}
			rows[len(rows)-1].took[k] = r.median(rounds, w, q, cpu)
		}
	}
	if r.def.program == "" {
		rows = append(rows, row{server: r.def.name, connections: "closed"})
		rows[len(rows)-1].took[0] = r.median(rounds, ways[len(ways)-1], requests[0], cpu)
	}
	return rows
}

func (r *running) median(rounds int, w way, q request, cpu time.Duration) time.Duration {
	var all []time.Duration
	for range rounds {
		all = append(all, r.perRequest(w, q, cpu))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// perRequest returns the CPU time of one request, from that of many.
func (r *running) perRequest(w way, q request, target time.Duration) time.Duration {
	var callers [8]caller
	for i := range callers {
		callers[i] = caller{request: q, way: w, address: r.ports[w.port]}
		defer callers[i].close()
	}
	batch := func() {
		var left atomic.Int64
		left.Store(int64(q.batch))
		var group sync.WaitGroup
		var errs [len(callers)]error
		for i := range callers {
			group.Go(func() {
				for left.Add(-1) >= 0 && errs[i] == nil {
					errs[i] = callers[i].call()
				}
			})
		}
		group.Wait()
		for _, err := range errs {
			must.Succeed(err)
		}
	}
	batch() // it dials, and finds cold caches
	begin := r.cpu()
	for n := q.batch; ; n += q.batch {
		batch()
		if used := r.cpu() - begin; used >= target {
			return used / time.Duration(n)
		}
	}
}

type caller struct {
	request
	way
	address string
	conn    net.Conn // nil: there is none
	reader  *bufio.Reader
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *caller) call() (err error) {
	defer must.Catch(&err)
	if c.conn == nil {
		c.conn = must.Have(net.Dial("tcp", c.address))
		if c.port == secure {
			c.conn = tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) // it keeps no sessions
		}
		c.reader = bufio.NewReader(c.conn)
	}
	connection := "keep-alive"
	if !c.keep {
		defer c.close()
		connection = "close"
	}
	if c.port == closed {
		io.Copy(io.Discard, c.reader)
		return nil
	}
	must.Have(fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n", c.path, connection))
	resp := must.Have(http.ReadResponse(c.reader, nil))
	defer resp.Body.Close()
	must.Have(io.Copy(io.Discard, resp.Body))
	if resp.StatusCode != c.status || resp.Close && c.keep {
		must.Fail("%s on a connection that is %s is answered with %s, close: %t", c.path, c.way.name, resp.Status, resp.Close)
	}
	return nil
}

// table is the rows in Markdown, with the share of a request's time that a 503 takes.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| server | connections |")
	for _, q := range requests {
		b.WriteString(" " + q.name + " |")
	}
	b.WriteString(" 503 / 200 of 1 ms | 503 / 200 of 10 ms |\n|---|---|" + strings.Repeat("--:|", len(requests)+2) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |", r.server, r.connections)
		for _, d := range r.took {
			b.WriteString(cell(d > 0, "%.0f µs", float64(d.Nanoseconds())/1e3))
		}
		for _, whole := range r.took[2:] {
			b.WriteString(cell(whole > 0, "%.1f %%", 100*float64(r.took[0])/float64(whole)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(known bool, format string, figure float64) string {
	if !known {
		return " – |"
	}
	return " " + fmt.Sprintf(format, figure) + " |"
}

// processor is the model of the machine's CPU.
func processor(cpuinfo string) string {
	if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindStringSubmatch(cpuinfo); m != nil {
		return m[1]
	}
	return runtime.GOARCH
}
