package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// Outliving is a store that outlives the processes that use it.
type Outliving struct {
	// Place makes or starts what the store is kept in, and returns where a process
	// finds it: a path, an address. It is called once, and only in the process of the
	// test. It must also do everything else that the test needs: the servers execute
	// what stands before the call of Matrix, too.
	Place func(t *testing.T) string
	// Open opens the store there. It is called by each server.
	Open func(t *testing.T, place string) idempotency.Store

	// Address returns the host and port in place, and a function that returns place with another host
	// and port: Matrix puts a gate in between. Nil: the store is not on a network.
	Address func(place string) (addr string, through func(addr string) string)

	Exclusive bool // one process at a time may have it open

	// Transactional: the servers have Config.Transactional set. Effect then carries
	// out something in the transaction of ctx, under a name that is new for each key,
	// and Effects returns how many such effects others see.
	Transactional bool
	Effect        func(ctx context.Context, s idempotency.Store, name string) error
	Effects       func(t *testing.T, place, name string) int
}

// Matrix starts the test binary again as a server with the middleware, the store, and
// a handler whose effect can be counted, kills it (SIGKILL) at each step of the
// protocol in turn, and sends the same requests to a second server, with and without
// Config.Resume. There must never be two effects, and none that is denied. Then it
// sends 200 requests with one key to two servers at once: one is carried out, and the
// others get its response. With Address it also lets the store stand still at each packet
// of a request, and then answer: no outcome is unknown. It logs what happened (go test -v).
func Matrix(t *testing.T, o Outliving) {
	if o.Transactional && o.Effect == nil {
		t.Fatal("storetest: Transactional needs an Effect and Effects")
	}
	in := os.Getenv(childEnv)
	var c childConfig
	if in == "" {
		c.Dir = t.TempDir()
	} else {
		must.Succeed(json.Unmarshal([]byte(in), &c))
	}
	if o.Effect == nil {
		o.Effect = func(_ context.Context, _ idempotency.Store, name string) error { return appendLine(c.Dir, name) }
		o.Effects = func(t *testing.T, _, name string) int { return countLines(t, c.Dir, name) }
	}
	if in != "" {
		serveChild(t, o, c) // does not return
	}
	if testing.Short() {
		t.Skip("storetest: the matrix of killed processes is not short")
	}
	m := matrix{T: t, o: o, place: o.Place(t), dir: c.Dir}
	m.w = tabwriter.NewWriter(&m.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(m.w, "killed\tresume\teffects before\tretry\teffects after\tonce more")
	points := []point{beforeClaim, afterClaim, beforeEffect, afterEffect, afterHandler, afterComplete, afterResponse}
	for _, resume := range []bool{false, true} {
		all := choice.Each(points, func(at point) killed { return m.kill(at, resume) }) // their leases end beside each other
		second := m.start("", resume, idempotency.DefaultLease)
		for _, k := range all {
			m.row(second, k)
		}
		second.stop(t)
	}
	m.w.Flush()
	t.Logf("killed at each step:\n%s", m.out.String())
	m.many()
	if o.Address != nil {
		m.out.Reset()
		m.stalls()
		t.Logf("the store stood still at each packet:\n%s", m.out.String())
	}
}

type matrix struct {
	*testing.T
	o     Outliving
	place string
	dir   string
	out   bytes.Buffer
	w     *tabwriter.Writer
}

// deadLease is the lease of servers that are killed; that of those that are not is the
// default, so that a slow machine does not make them look dead.
const deadLease = 500 * time.Millisecond

func (m *matrix) start(kill point, resume bool, lease time.Duration) *server {
	m.Helper()
	return startServer(m.T, childConfig{Place: m.place, Dir: m.dir, Kill: kill, Resume: resume, Lease: lease})
}

func (m *matrix) effects(name string) int { return m.o.Effects(m.T, m.place, name) }

// killed is a server that was killed while it worked on a request.
type killed struct {
	at     point
	resume bool
	name   string // the request's key
	before int    // how many effects the request had by then
}

// kill starts a server, sends it a request, and waits until it has killed itself.
func (m *matrix) kill(at point, resume bool) killed {
	m.Helper()
	first := m.start(at, resume, deadLease)
	var name string
	for deadline := time.Now().Add(time.Minute); ; {
		name = rand.Text()
		got, err := post(first.url, name, name)
		if err == nil && got.asksToWait() && time.Now().Before(deadline) {
			continue // the store was too slow for it, so it has not come that far
		}
		if err == nil && at != afterResponse {
			m.Errorf("killed %s: there is a response nevertheless: %v", at, got)
		}
		break
	}
	first.wait(m.T, true)
	return killed{at, resume, name, m.effects(name)}
}

func (m *matrix) row(second *server, k killed) {
	m.Helper()
	got := m.final(second.url, k.name)
	after := m.effects(k.name)
	more := m.final(second.url, k.name)
	again := m.effects(k.name)
	fmt.Fprintf(m.w, "%s\t%v\t%d\t%v\t%d\t%v\n", k.at, k.resume, k.before, got, after, more)

	if after > 1 || again > 1 {
		m.Errorf("killed %s, resume %v: %d effects after the retry, %d after another", k.at, k.resume, after, again)
	}
	// What each must get.
	var want, wantMore string
	const ran, resumed, replayed, unknown = "201 ran", "201 resumed", "201 replayed", "409 outcome-unknown"
	effects := 1
	switch {
	case k.at == afterComplete || k.at == afterResponse:
		want, wantMore = replayed, replayed
	case k.at == beforeClaim || m.o.Transactional:
		want, wantMore = ran, replayed
	case k.resume:
		want, wantMore = resumed, replayed
	default:
		want, wantMore = unknown, unknown
		effects = k.before
	}
	if m.o.Transactional && want == ran && k.before != 0 {
		m.Errorf("killed %s: the effect of a transaction that was not committed is to be seen", k.at)
	}
	if got.String() != want || more.String() != wantMore || again != effects {
		m.Errorf("killed %s, resume %v: the retry gets %v and another %v, with %d effects; want %s, %s, %d", k.at, k.resume, got, more, again, want, wantMore, effects)
	}
}

// many sends requests with one key to two servers at once.
func (m *matrix) many() {
	const n = 200
	servers := []*server{m.start("", false, idempotency.DefaultLease)}
	if !m.o.Exclusive {
		servers = append(servers, m.start("", false, idempotency.DefaultLease))
	}
	name := rand.Text()
	var mu sync.Mutex
	counts := map[string]int{}
	conflicts := 0
	var wg sync.WaitGroup
	for i := range n {
		url := servers[i%len(servers)].url
		wg.Go(func() {
			var a answer
			busy := 0
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
				var err error
				if a, err = post(url, name, name); err == nil && !a.asksToWait() {
					break
				}
				busy++
				time.Sleep(20 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[a.String()]++
			conflicts += busy
		})
	}
	wg.Wait()
	effects := m.effects(name)
	other, err := post(servers[0].url, name, name+" and more")
	for _, s := range servers {
		s.stop(m.T)
	}
	m.Logf("%d requests with one key to %d processes: %v after %d answers of 409 in flight or 503; %d effect; with another body: %v", n, len(servers), counts, conflicts, effects, other)
	if counts["201 ran"] != 1 || counts["201 replayed"] != n-1 || effects != 1 {
		m.Errorf("%d requests with one key: %v, and %d effects; want one that ran, the others replayed, and one effect", n, counts, effects)
	}
	if err != nil || other.String() != "422 key-reused" {
		m.Errorf("with another body: %v, %v; want 422 key-reused", other, err)
	}
}

// final returns the last answer to a request that is sent again as long as the answers ask for it.
func (m *matrix) final(url, name string) answer {
	m.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		a, err := post(url, name, name)
		if err == nil && !a.asksToWait() {
			return a
		}
		if time.Now().After(deadline) {
			m.Fatalf("after a minute still %v, %v", a, err)
		}
	}
}

// answer is the part of a response that the test looks at.
type answer struct {
	status   int
	kind     string // last part of the problem type, "ran" or "resumed"
	replayed bool
}

// asksToWait reports whether the server asks to come again.
func (a answer) asksToWait() bool {
	return a.kind == "in-flight" || a.status == http.StatusServiceUnavailable
}

func (a answer) String() string {
	return choice.Either(a.replayed, fmt.Sprint(a.status, " replayed"), fmt.Sprint(a.status, " ", a.kind))
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func post(url, key, body string) (a answer, err error) {
	defer must.Catch(&err)
	req := must.Have(http.NewRequest(http.MethodPost, url, strings.NewReader(body)))
	req.Header.Set("Idempotency-Key", `"`+key+`"`)
	resp := must.Have(client.Do(req))
	defer resp.Body.Close()
	b := must.Have(io.ReadAll(resp.Body))
	a = answer{status: resp.StatusCode, kind: string(b), replayed: resp.Header.Get("Idempotency-Replayed") == "true"}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Type string }
		must.Succeed(json.Unmarshal(b, &p))
		_, a.kind, _ = strings.Cut(p.Type, "idempotency-")
	}
	return a, nil
}

func countLines(t *testing.T, dir, name string) int {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

func appendLine(dir, name string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("done\n")
	return errors.Join(err, f.Close())
}
