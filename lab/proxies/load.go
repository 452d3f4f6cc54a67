package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// runLoad measures what each proxy costs: all of them, and no proxy, in turns.
func runLoad(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	const many, connections = 64, 1000
	o := openOrigin()
	defer o.server.Close()
	o.quiet = true
	names := append([]string{""}, options.peers...)
	measures := []func(at string) float64{
		func(at string) float64 { return paced(at, 16, 1_000).p50 },
		func(at string) float64 { return paced(at, 128, 10_000).p50 },
		func(at string) float64 { return paced(at, 128, 10_000).rate },
		func(at string) float64 { return paced(at, many, 0).rate },
	}
	got := map[string][][]float64{} // by the proxy, the measure and the round
	for _, name := range names {
		got[name] = make([][]float64, len(measures)+1)
	}
	for round := range options.rounds {
		for _, name := range names {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			progress("load: round %d of %d, %s", round+1, options.rounds, name)
			at, memory := o.url, func() float64 { return 0 }
			if name != "" {
				r := must.Have(peerNamed(name).start("", door{to: o.url}))
				at, memory = r.url(0), r.memory
				defer r.close() // none of them is busy while another one is measured
			}
			paced(at, many, 0) // warm
			for i, measure := range measures {
				got[name][i] = append(got[name][i], measure(at))
			}
			hold(at, connections, func() { got[name][len(measures)] = append(got[name][len(measures)], memory()) })
		}
	}
	fmt.Fprintf(out, "Medians of %d rounds, in turns, on a machine with %d processors that also makes the calls and answers them.\n\n", options.rounds, runtime.NumCPU())
	t := newTable(out, "", "added p50 at 1,000/s", "added p50 at 10,000/s", "reached of 10,000/s", "throughput, 64 connections", "MB at 1,000 connections")
	direct := got[""]
	for _, name := range names {
		m := got[name]
		added := func(i int) string { return fmt.Sprintf("%.0f µs", 1e6*(median(m[i])-median(direct[i]))) }
		cells := []string{added(0), added(1), fmt.Sprintf("%.0f", median(m[2])), fmt.Sprintf("%.0f/s", median(m[3])), fmt.Sprintf("%.0f", median(m[4])/1e6)}
		if name == "" {
			name, cells[0], cells[1], cells[4] = "no proxy", fmt.Sprintf("(p50 %.0f µs)", 1e6*median(m[0])), fmt.Sprintf("(p50 %.0f µs)", 1e6*median(m[1])), ""
		}
		t.row(name, cells...)
	}
	return nil
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// A pace is what calls had for several seconds.
type pace struct{ p50, rate float64 } // seconds, calls a second

// loadTime is how long each measurement of load takes.
const loadTime = 3 * time.Second

// paced makes so many calls a second, on so many connections; as many as it can if rate is 0.
func paced(at string, connections int, rate float64) pace {
	var mu sync.Mutex
	var took []time.Duration
	began := time.Now()
	must.Succeed(open(at, connections, func(i int, c *conn) error {
		var own []time.Duration
		for n := 0; ; n++ {
			if rate > 0 {
				time.Sleep(time.Until(began.Add(time.Duration((float64(n*connections) + float64(i)) / rate * float64(time.Second)))))
			}
			start := time.Now()
			if start.Sub(began) > loadTime {
				break
			}
			if err := c.call(); err != nil {
				return err
			}
			own = append(own, time.Since(start))
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, own...)
		return nil
	}))
	slices.Sort(took)
	return pace{took[len(took)/2].Seconds(), float64(len(took)) / time.Since(began).Seconds()}
}

// hold keeps so many connections open, each of which makes a call a second for five seconds, and then calls during.
func hold(at string, connections int, during func()) {
	var called, held sync.WaitGroup
	called.Add(connections)
	held.Add(1)
	go func() {
		called.Wait()
		during()
		held.Done()
	}()
	began := time.Now()
	must.Succeed(open(at, connections, func(i int, c *conn) (err error) {
		for n := range 5 {
			time.Sleep(time.Until(began.Add(time.Duration((float64(n) + float64(i)/float64(connections)) * float64(time.Second)))))
			if err == nil {
				err = c.call()
			}
		}
		called.Done()
		held.Wait()
		return err
	}))
}

// open calls use with each of so many connections, at the same time, and returns when all have returned.
func open(at string, connections int, use func(i int, c *conn) error) error {
	var group sync.WaitGroup
	errs := make([]error, connections)
	for i := range connections {
		c := must.Have(dial(at))
		group.Go(func() {
			defer c.Close()
			errs[i] = use(i, c)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// A conn is a connection with a caller that does as little as possible.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func dial(at string) (*conn, error) {
	c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	return &conn{c, bufio.NewReaderSize(c, 1024)}, err
}

var getRequest = []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

// call makes a GET and reads the answer, which must be a 200 with its length.
func (c *conn) call() error {
	if _, err := c.Write(getRequest); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return fmt.Errorf("the answer is %q", line)
		case len(line) == 2 && length < 0:
			return errors.New("the answer has no length")
		case len(line) == 2:
			_, err := c.in.Discard(length)
			return err
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("content-length")) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
}

// memory returns the bytes of memory that the programs of a proxy have now.
func (r *running) memory() float64 {
	sum := 0.0
	for _, file := range must.Have(filepath.Glob("/proc/[0-9]*/stat")) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(after) // state, parent, group ...; the resident pages are field 24 of all, counted from 1
		if f[2] == strconv.Itoa(r.Process.Pid) {
			pages, _ := strconv.Atoi(f[21])
			sum += float64(pages * os.Getpagesize())
		}
	}
	return sum
}
