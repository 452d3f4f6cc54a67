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
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	go serveQuickly(l)
	origin := "http://" + l.Addr().String()
	names := append([]string{""}, options.peers...)
	got := map[string]*[measures][]float64{} // by the proxy and the round
	for _, name := range names {
		got[name] = new([measures][]float64)
	}
	for round := range options.rounds {
		for _, name := range names {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			progress("load: round %d of %d, %s", round+1, options.rounds, name)
			at, used := origin, func() (memory, cpu float64) { return 0, 0 }
			if name != "" {
				r := must.Have(peerNamed(name).start("", door{to: origin}))
				at, used = r.url(0), r.used
				defer r.close() // none of them is busy while another one is measured
			}
			add := func(i int, x float64) { got[name][i] = append(got[name][i], x) }
			holds := func(i int) {
				hold(at, connections, func() {
					memory, _ := used()
					add(i, memory)
				})
			}
			holds(resident)
			paced(at, many, 0) // warm
			add(p50Slow, paced(at, 16, 1_000).p50)
			fast := paced(at, 128, 10_000)
			add(p50Fast, fast.p50)
			add(reached, fast.rate)
			_, before := used()
			began := time.Now()
			throughput := paced(at, many, 0)
			_, after := used()
			add(most, throughput.rate)
			add(cpu, (after-before)/(throughput.rate*time.Since(began).Seconds()))
			holds(residentLater)
		}
	}
	fmt.Fprintf(out, "Medians of %d rounds, in turns, on a machine with %d processors that also makes the calls and answers them.\n\n", options.rounds, runtime.NumCPU())
	t := newTable(out, "", "added p50 at 1,000/s", "added p50 at 10,000/s", "reached of 10,000/s", "throughput, 64 connections", "CPU a request", "MB at 1,000 connections", "MB at 1,000 connections, after the load")
	direct := got[""]
	t.row("no proxy", fmt.Sprintf("(p50 %.0f µs)", 1e6*median(direct[p50Slow])), fmt.Sprintf("(p50 %.0f µs)", 1e6*median(direct[p50Fast])),
		fmt.Sprintf("%.0f", median(direct[reached])), fmt.Sprintf("%.0f/s", median(direct[most])), "", "", "")
	for _, name := range options.peers {
		m := got[name]
		added := func(i int) string { return fmt.Sprintf("%.0f µs", 1e6*(median(m[i])-median(direct[i]))) }
		t.row(name, added(p50Slow), added(p50Fast), fmt.Sprintf("%.0f", median(m[reached])), fmt.Sprintf("%.0f/s", median(m[most])),
			fmt.Sprintf("%.0f µs", 1e6*median(m[cpu])), fmt.Sprintf("%.0f", median(m[resident])/1e6), fmt.Sprintf("%.0f", median(m[residentLater])/1e6))
	}
	return nil
}

// What is measured of each proxy in each round.
const (
	p50Slow = iota // seconds
	p50Fast
	reached // calls a second
	most
	cpu      // seconds a call
	resident // bytes
	residentLater
	measures
)

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

// serveQuickly answers each GET as a server does that costs as little as possible.
func serveQuickly(l net.Listener) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{}\n")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReaderSize(c, 1024)
			for {
				line, err := in.ReadSlice('\n')
				if err == nil && len(line) == 2 { // the header ends
					_, err = c.Write(answer)
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

// used returns the bytes of memory that the programs of a proxy have now, and the seconds of processors that they have used.
func (r *running) used() (memory, cpu float64) {
	for _, file := range must.Have(filepath.Glob("/proc/[0-9]*/stat")) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(after) // state, parent, group ...: the third of all fields is the first here
		if f[2] == strconv.Itoa(r.Process.Pid) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			pages, _ := strconv.Atoi(f[21])
			memory += float64(pages * os.Getpagesize())
			cpu += float64(user+system) / ticks
		}
	}
	return memory, cpu
}

// ticks of the times in /proc are a second.
const ticks = 100
