package storetest

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// stalls lets the store stand still at each packet of a request in turn, on its way there and on its
// way back, until the request is answered. Then everything that was held arrives, and the request is
// sent again. No outcome may be unknown: a claim whose answer was lost has no handler.
func (m *matrix) stalls() {
	addr, through := m.o.Address(m.place)
	g := startGate(m.T, addr)
	store := m.o.Open(m.T, through(g.Addr().String()))
	policy := idempotency.StorePolicy()
	policy.AttemptTimeout, policy.Deadline, policy.Timeouts = time.Second, 2*time.Second, lull.TimeoutsAlways
	policy.Breaker.Off = true // it would answer for the store

	w := tabwriter.NewWriter(&m.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stood still after\tthe request\thandlers\tafterwards\thandlers\teffects\tonce more")
	for packets, held := 0, true; held; packets++ {
		var ran atomic.Int64
		config := idempotency.Config{Store: policy, Transactional: m.o.Transactional}
		keys := must.Have(idempotency.New(store, config, idempotency.WithScope(idempotency.SharedScope)))
		s := httptest.NewServer(keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, err := io.ReadAll(r.Body)
			ran.Add(1)
			if err == nil {
				err = m.o.Effect(r.Context(), store, string(name))
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "ran")
		})))
		m.final(s.URL, rand.Text()) // connections and statements are there
		ran.Store(0)

		name := rand.Text()
		g.hold(packets)
		first := make(chan string, 1)
		go func() {
			a, err := post(s.URL, name, name)
			if err != nil {
				first <- err.Error()
				return
			}
			first <- a.String()
		}()
		got := "waited"
		select {
		case got = <-first:
		case <-time.After(policy.WorstCase() + policy.AttemptTimeout): // a handler waits for the store
		}
		before := ran.Load()
		if held = g.release(); got == "waited" {
			got = <-first
		}
		last := m.final(s.URL, name)
		runs, effects := ran.Load(), m.effects(name)
		more := m.final(s.URL, name)
		s.Close()
		fmt.Fprintf(w, "%d packets\t%s\t%d\t%v\t%d\t%d\t%v\n", packets, got, before, last, runs, effects, more)
		if last.status != http.StatusCreated || more.String() != "201 replayed" || effects != 1 || !m.o.Transactional && runs != 1 {
			m.Errorf("the store stood still after %d packets: the request got %s, and later %v and %v, after %d handlers, with %d effects; want 201, 201 replayed, and one", packets, got, last, more, runs, effects)
		}
		if packets == 100 {
			m.Fatal("a request takes more than 100 packets")
		}
	}
	w.Flush()
}

// A gate stands between a store and its server, and can stand still.
type gate struct {
	net.Listener
	to string

	mu   sync.Mutex
	left int           // packets until it stands still; negative: it does not
	held bool          // it has held one
	open chan struct{} // closed when it continues
}

func startGate(t *testing.T, to string) *gate {
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	g := &gate{Listener: l, to: to, left: -1, open: make(chan struct{})}
	t.Cleanup(func() {
		l.Close()
		g.release()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			go g.pass(c, s)
			go g.pass(s, c)
		}
	}()
	return g
}

// hold lets so many packets pass, in either direction, and holds those that follow.
func (g *gate) hold(packets int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.held, g.open = packets, false, make(chan struct{})
}

// release lets all packets pass, and reports whether any was held.
func (g *gate) release() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left >= 0 {
		close(g.open)
	}
	g.left = -1
	return g.held
}

// pass passes on what comes, and then the end.
func (g *gate) pass(from, to net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		open := g.open
		wait := g.left == 0
		if g.left > 0 {
			g.left--
		}
		g.held = g.held || wait
		g.mu.Unlock()
		if wait {
			<-open
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}
