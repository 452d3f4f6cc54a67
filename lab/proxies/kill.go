package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
)

// A blow is what happens under load, several times.
type blow struct {
	name   string
	strike func(*origin, *running)
}

var blows = []blow{
	{"kill -9 of the proxy", func(_ *origin, r *running) {
		child.KillGroup(r.Process)
		r.again()
	}},
	{"it drains, and is started again", func(_ *origin, r *running) {
		r.Process.Signal(r.peer.drain)
		r.again()
	}},
	{"reload of a changed file", func(_ *origin, r *running) {
		if r.peer.reload == 0 {
			return
		}
		if len(r.doors) == 1 {
			var port int
			must.Succeed(ports.Free(&port))
			r.doors = append(r.doors, door{to: r.doors[0].to, listen: fmt.Sprint("127.0.0.1:", port)})
		} else {
			r.doors = r.doors[:1]
		}
		text, _ := r.peer.config(r.doors, r.ca, r.folder)
		must.Succeed(os.WriteFile(filepath.Join(r.folder, "config"), []byte(text), 0o600))
		r.Process.Signal(r.peer.reload)
	}},
	{"restart of the server", func(o *origin, _ *running) {
		o.server.Close()
		time.Sleep(100 * time.Millisecond)
		must.Succeed(o.listen())
	}},
}

// again starts a proxy that ends.
func (r *running) again() {
	<-r.Ended
	must.Succeed(r.run())
}

// runKill strikes proxies and servers under load, and counts the POSTs that were carried out twice, and the calls that were lost.
func runKill(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	const rate, strikes = 200, 5
	n := int(rate * options.duration.Seconds())
	fmt.Fprintf(out, "%d calls in %s, half of them POST, each of which takes the server 20 ms; %d times. Calls whose connection is refused while nobody listens are not lost.\n\n", n, options.duration, strikes)
	var names []string
	for _, b := range blows {
		names = append(names, b.name)
	}
	t := newTable(out, "POSTs twice, calls lost, refused", names...)
	for _, name := range options.peers {
		var cells []string
		for _, b := range blows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			progress("kill: %s, %s", name, b.name)
			cells = append(cells, b.try(peerNamed(name), n, rate, strikes))
		}
		t.row(name, cells...)
	}
	return nil
}

func (b blow) try(p peer, n int, rate float64, strikes int) string {
	o, r := behind(p)
	defer func() { o.server.Close() }()
	defer func() { r.close() }()
	o.next(func(w http.ResponseWriter, r *http.Request, number int) {
		time.Sleep(20 * time.Millisecond)
		good(w, r, number)
	})
	var mu sync.Mutex
	lost, denied := 0, 0
	client := caller()
	over := make(chan error)
	go func() {
		over <- func() (err error) {
			defer must.Catch(&err)
			for range strikes {
				time.Sleep(options.duration / time.Duration(strikes+1))
				b.strike(o, r)
			}
			return nil
		}()
	}()
	every(n, rate, func(i int) {
		method := http.MethodGet
		if i%2 == 1 {
			method = http.MethodPost
		}
		status := call(client, method, fmt.Sprintf("%s/%d", r.url(0), i))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case status == refused:
			denied++
		case status != http.StatusOK:
			if lost++; options.verbose {
				progress("%s %d: status %d", method, i, status)
			}
		}
	})
	must.Succeed(<-over)
	_, twice := o.count(http.MethodPost)
	return fmt.Sprintf("%d, %d, %d", twice, lost, denied)
}
