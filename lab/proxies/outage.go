package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
)

// runOutage has each proxy live through the same outages, with the same calls.
func runOutage(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	const rate, herd = 100, 100
	n := int(rate * options.duration.Seconds())
	fmt.Fprintf(out, "%d calls a second for %s, four of five GET, the others POST; a herd of %d.\n\n", rate, options.duration, herd)
	t := newTable(out, "", "503: requests a GET", "cut: requests a GET", "POSTs carried out twice", "hints: too early", "hints: good calls", "herd: most retries in 10 ms", "three layers: requests a call")
	t.row("no proxy, requests with 3 retries", "", "", "", "", "", "", layers(peer{}, false, 3))
	for _, name := range options.peers {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		progress("outage: %s", name)
		var cells []string
		twice := 0
		for _, bad := range []answer{unavailable, cut} {
			gets, posts := volume(peerNamed(name), bad, n, rate)
			twice += posts
			cells = append(cells, fmt.Sprintf("%.2f", gets))
		}
		early, repeated, succeeded := hints(peerNamed(name))
		cells = append(cells, fmt.Sprintf("%d of %d", twice, 2*n/5), fmt.Sprintf("%d of %d", early, repeated), fmt.Sprintf("%d of %d", succeeded, hinted))
		most, retries := stampede(peerNamed(name), herd)
		cells = append(cells, fmt.Sprintf("%d of %d", most, retries), layers(peerNamed(name), false, 0))
		t.row(name, cells...)
		if name == "lull" {
			t.row("lull, with ingress doors and traces", "", "", "", "", "", "", layers(peerNamed(name), true, 0))
		}
	}
	return nil
}

// volume returns how many requests there are for each GET if all get that answer, and how many POSTs come twice.
func volume(p peer, bad answer, n int, rate float64) (gets float64, posts int) {
	o, r := behind(p)
	defer o.server.Close()
	defer r.close()
	o.next(bad)
	client := caller()
	every(n, rate, func(i int) { call(client, methodOf(i), fmt.Sprintf("%s/%d", r.url(0), i)) })
	requests, _ := o.count(http.MethodGet)
	_, posts = o.count(http.MethodPost)
	return float64(requests) / float64(n*4/5), posts
}

func methodOf(i int) string {
	if i%5 == 4 {
		return http.MethodPost
	}
	return http.MethodGet
}

// behind returns an origin, and a proxy before it.
func behind(p peer) (*origin, *running) {
	o := openOrigin()
	r, err := p.start("", door{to: o.url})
	if err != nil {
		o.server.Close()
		must.Succeed(err)
	}
	return o, r
}

const hinted = 100 // calls

// hints returns how many second requests came before the time that the first answer asked for, how many came at all, and
// how many calls succeeded.
func hints(p peer) (early, repeated, succeeded int) {
	o, r := behind(p)
	defer o.server.Close()
	defer r.close()
	every(1000, 1000, func(i int) { call(http.DefaultClient, "GET", fmt.Sprintf("%s/before/%d", r.url(0), i)) }) // its budget is full
	const wait = 2 * time.Second
	o.next(func(w http.ResponseWriter, r *http.Request, number int) {
		if number == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		good(w, r, number)
	})
	var mu sync.Mutex
	every(hinted, 20, func(i int) {
		if call(http.DefaultClient, "GET", fmt.Sprintf("%s/%d", r.url(0), i)) == http.StatusOK {
			mu.Lock()
			defer mu.Unlock()
			succeeded++
		}
	})
	for _, all := range o.seen {
		if len(all) > 1 {
			repeated++
			if all[1].at-all[0].at < wait {
				early++
			}
		}
	}
	return early, repeated, succeeded
}

// stampede has calls fail at the same moment. It returns how many retries there were, and the most of them in 10 ms.
func stampede(p peer, calls int) (most, retries int) {
	o, r := behind(p)
	defer o.server.Close()
	defer r.close()
	client := caller()
	every(1000, 1000, func(i int) { call(client, "GET", fmt.Sprintf("%s/before/%d", r.url(0), i)) })
	var together sync.WaitGroup
	together.Add(calls)
	o.next(func(w http.ResponseWriter, r *http.Request, number int) {
		if number == 1 {
			together.Done()
			together.Wait()
			unavailable(w, r, 1)
			return
		}
		good(w, r, number)
	})
	every(calls, 1e6, func(i int) { call(client, "GET", fmt.Sprintf("%s/%d", r.url(0), i)) })
	var at []time.Duration
	for _, all := range o.seen {
		for _, a := range all[1:] {
			at = append(at, a.at)
		}
	}
	slices.Sort(at)
	for i := range at {
		j := i
		for j < len(at) && at[j] < at[i]+10*time.Millisecond {
			j++
		}
		most = max(most, j-i)
	}
	return most, len(at)
}

//go:embed layer.py
var layerProgram []byte

// layers returns how many requests come to a server that is down below three services in Python, for each call. Each
// service has a proxy beside it, or makes retries of its own. With ingress the proxy also stands before the service, which passes on
// the traceparent of its caller.
func layers(p peer, ingress bool, retries int) string {
	const rate = 10
	n := int(rate * options.duration.Seconds())
	if p.config == nil {
		n /= 5 // each one has 64 requests
	}
	bottom := openOrigin()
	defer bottom.server.Close()
	bottom.next(unavailable)
	file := filepath.Join(must.Have(os.MkdirTemp("", "lull-proxies-")), "layer.py")
	defer os.RemoveAll(filepath.Dir(file))
	must.Succeed(os.WriteFile(file, layerProgram, 0o600))
	following := bottom.url
	for range 3 {
		var port int
		must.Succeed(ports.Free(&port))
		address := fmt.Sprint("http://127.0.0.1:", port)
		if p.config != nil {
			doors := []door{{to: following}}
			if ingress {
				doors = append(doors, door{to: address, ingress: "trust: everybody"})
			}
			r := must.Have(p.start("", doors...))
			defer r.close()
			following, address = r.url(0), r.url(len(doors)-1)
		}
		service := must.Have(startServer(port, "/usr/bin/python3", file, fmt.Sprint(port), following, fmt.Sprint(retries)))
		defer service.Kill()
		if following = fmt.Sprint("http://127.0.0.1:", port); ingress {
			following = address
		}
	}
	client := caller()
	every(n, float64(n)/options.duration.Seconds(), func(i int) {
		call(client, "GET", fmt.Sprintf("%s/%d", following, i), "Traceparent", fmt.Sprintf("00-%032x-%016x-01", i+1, i+1))
	})
	requests, _ := bottom.count("")
	return fmt.Sprintf("%.2f", float64(requests)/float64(n))
}

// startServer starts a program that listens at a port.
func startServer(port int, name string, args ...string) (*child.Child, error) {
	cmd := exec.Command(name, args...)
	if options.verbose {
		cmd.Stderr = os.Stderr
	}
	c, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	at := &running{doors: []door{{listen: fmt.Sprint("127.0.0.1:", port)}}}
	if err := c.Await(at.ready, 10*time.Millisecond, 30*time.Second); err != nil {
		c.Kill()
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return c, nil
}
