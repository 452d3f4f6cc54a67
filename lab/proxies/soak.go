package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A remainder is what a proxy has when nobody calls it.
type remainder struct {
	descriptors, goroutines int
	memory                  float64
}

// runSoak sends many requests through lull. Of a hundred, the server breaks off one connection, and the caller another one. It compares what is
// left after all of them with what is left after a hundredth.
func runSoak(_ context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	t := newTable(out, "", "requests", "answered with 200", "descriptors", "goroutines", "MB", "races")
	for _, n := range []int{options.requests / 100, options.requests} {
		answered, left, races := soak(n)
		t.row("lull", fmt.Sprint(n), fmt.Sprint(answered), fmt.Sprint(left.descriptors), fmt.Sprint(left.goroutines), fmt.Sprintf("%.1f", left.memory/1e6), fmt.Sprint(races))
	}
	return nil
}

func soak(n int) (answered int64, left remainder, races int) {
	const connections = 64
	o, r := behind(peerNamed("lull"))
	defer o.server.Close()
	defer r.close()
	o.quiet = true
	o.next(func(w http.ResponseWriter, r *http.Request, _ int) {
		if rand.IntN(100) == 0 {
			cut(w, r, 1)
		}
		good(w, r, 1)
	})
	var made, good atomic.Int64
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			var c *conn
			for count := made.Add(1); count <= int64(n); count = made.Add(1) {
				if count%100_000 == 0 {
					memory, _ := r.used()
					progress("soak: %d requests, %.0f MB", count, memory/1e6)
				}
				var err error
				if c == nil {
					if c, err = dial(r.url(0)); err != nil {
						c = nil
						continue
					}
				}
				if rand.IntN(100) == 0 {
					c.Write(getRequest)
					c.Close()
					c = nil
					continue
				}
				if err := c.call(); err == nil {
					good.Add(1)
				} else {
					c.Close()
					c = nil
				}
			}
			if c != nil {
				c.Close()
			}
		})
	}
	group.Wait()
	o.server.Close() // so that the connections to it end
	time.Sleep(5 * time.Second)
	left.memory, _ = r.used()
	left.descriptors = len(must.Have(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.Process.Pid))))
	r.Process.Signal(syscall.SIGQUIT) // a program in Go then prints its goroutines
	<-r.Ended
	text := string(must.Have(os.ReadFile(filepath.Join(r.folder, "stderr"))))
	left.goroutines = strings.Count(text, "\ngoroutine ")
	return good.Load(), left, strings.Count(text, "DATA RACE")
}
