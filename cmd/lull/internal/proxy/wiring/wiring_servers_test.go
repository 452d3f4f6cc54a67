//go:build servers

package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/proxy"
)

// startRedis starts a Redis on the port, or a free one.
func startRedis(t *testing.T, port int) (c *child.Child, address string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		dbserver.Need(t, fmt.Errorf("%w: redis-server: apt-get install redis-server", dbserver.ErrAbsent))
	}
	if port == 0 {
		must.Succeed(ports.Free(&port))
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c = must.Have(child.Start(exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", "secret")))
	t.Cleanup(c.Kill)
	client := redis.NewClient(&redis.Options{Addr: at, Password: "secret", MaxRetries: -1})
	defer client.Close()
	must.Succeed(c.Await(func() error { return client.Ping(context.Background()).Err() }, 25*time.Millisecond, time.Minute))
	return c, "redis://:secret@" + at + "/1"
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// retries makes n calls that all fail, and returns how many retries the budget has paid for.
func retries(d *lull.Dependency, n int) (paid int) {
	for range n {
		tries := 0
		lull.Run(context.Background(), d, func(context.Context) error { tries++; return lull.Transient(errors.New("down")) })
		paid += tries - 1
	}
	return paid
}

// A proxy starts without Redis. When that has come, all proxies together have the fleet's floor, whatever their number; what one
// gives back at its end is there for another.
func TestFleet(t *testing.T) {
	var port int
	must.Succeed(ports.Free(&port))
	f := &file.File{Fleet: file.Fleet{Redis: fmt.Sprintf("redis://:secret@127.0.0.1:%d/1", port)}}
	must.Succeed(Check(f))
	var all []*Wiring
	var calls []*lull.Dependency
	said := make(chan any, 100)
	for range 5 {
		w := must.Have(Start(t.Context(), f, none, func(what any) { said <- what }))
		policy := lull.Policy{Attempts: 2}
		policy.Backoff.Base, policy.Breaker.Off = time.Millisecond, true
		all, calls = append(all, w), append(calls, must.Have(lull.NewDependency("payments", policy, w.dependency("payments")...)))
	}
	for _, d := range calls {
		check.Equal(t, retries(d, 3), 0, "retries before Redis has come")
	}
	if !strings.Contains(page(all[0]), "\nproxy_fleet_in_step 0\n") {
		t.Error("the metrics do not show that Redis is away")
	}
	if is := fmt.Sprint(<-said); !strings.HasPrefix(is, "fleet: redis://127.0.0.1:") || strings.Contains(is, "secret") {
		t.Errorf("said: %s", is)
	}
	began := time.Now()
	startRedis(t, port)
	for _, w := range all {
		until(t, "in step", func() bool { return strings.Contains(page(w), "\nproxy_fleet_in_step 1\n") })
	}
	paid := 0
	until(t, "retries", func() bool {
		for _, d := range calls {
			paid += retries(d, 5)
		}
		return paid >= 3
	})
	if most := 10 + int(time.Since(began)/time.Second) + 1; paid > most {
		t.Errorf("%d retries by five proxies: want at most %d", paid, most)
	}
	for _, w := range all {
		must.Succeed(w.Close(t.Context()))
	}
	check.Equal(t, retries(calls[0], 3), 0, "retries after Close")
	for i := range maxBudgets {
		all[0].fleet.options(fmt.Sprint(i))
	}
	check.Equal(t, len(all[0].fleet.names), maxBudgets, "budgets")
}

func TestMain(m *testing.M) {
	defer databases.Close()
	m.Run()
}

var databases = dbserver.Shared{Start: func() (*dbserver.Server, error) {
	return dbserver.Postgres(func(addr string) error {
		conn, err := pgx.Connect(context.Background(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
		if err == nil {
			err = conn.Close(context.Background())
		}
		return err
	})
}}

// Each store has what another proxy has written: memory in this process alone.
func TestStores(t *testing.T) {
	_, cache := startRedis(t, 0)
	for _, address := range []string{"memory", "bolt:" + filepath.Join(t.TempDir(), "keys"), cache, "postgres://postgres:secret@" + databases.Addr(t) + "/postgres"} {
		name, _, _ := strings.Cut(address, ":")
		t.Run(name, func(t *testing.T) {
			claim := idempotency.Claim{Key: "k", Token: idempotency.FencingToken{1}, Lease: time.Minute, Retention: time.Hour}
			must.Succeed(Check(keys(address)))
			for i, want := range []idempotency.KeyState{idempotency.Claimed, idempotency.Replay} {
				if name == "memory" {
					want = idempotency.Claimed
				}
				w := must.Have(Start(t.Context(), keys(address), none, nobody))
				check.Equal(t, must.Have(w.store.Claim(t.Context(), claim)).State, want, "claim %d", i)
				if want == idempotency.Claimed {
					must.Succeed(w.store.Complete(t.Context(), "k", claim.Token, []byte("done"), time.Hour))
				}
				must.Succeed(w.Close(t.Context()))
			}
		})
	}
}

// A store that cannot be opened ends the start, with its address and without its password.
func TestStoresThatFail(t *testing.T) {
	var port int
	must.Succeed(ports.Free(&port))
	busy := "bolt:" + filepath.Join(t.TempDir(), "keys")
	w := must.Have(Start(t.Context(), keys(busy), none, nobody))
	defer w.Close(t.Context())
	for _, address := range []string{busy, fmt.Sprintf("postgres://user:secret@127.0.0.1:%d/db", port)} {
		_, err := Start(t.Context(), keys(address), none, nobody)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), shown(address)) {
			t.Errorf("%s: %v", shown(address), err)
		}
	}
}

// A collector receives OTLP over HTTP. Its first answer is 503.
type collector struct {
	*httptest.Server
	requests atomic.Int64
	mu       sync.Mutex
	spans    []*tracepb.Span
	services []string
}

func startCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var all tracepb.TracesData
		body, err := io.ReadAll(r.Body)
		if err = errors.Join(err, proto.Unmarshal(body, &all)); err != nil || r.Method+r.URL.Path+r.Header.Get("Content-Type") != "POST/v1/tracesapplication/x-protobuf" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range all.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					c.services = append(c.services, a.Value.GetStringValue())
				}
			}
			for _, s := range of.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// A request through a proxy: the collector gets the spans of the call and of its two attempts under the application's, and
// the upstream has got the traceparent of each attempt. The metrics have the request.
func TestProxy(t *testing.T) {
	collects := startCollector(t)
	var sent []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent = append(sent, r.Header.Get("Traceparent")); len(sent) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer upstream.Close()
	f := &file.File{Traces: file.Traces{OTLP: collects.URL}}
	must.Succeed(Check(f))
	w := must.Have(Start(t.Context(), f, none, nobody))
	p := must.Have(proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{"payments": {Listen: "127.0.0.1:0", To: []string{upstream.URL}}},
		Ingress: proxy.Ingress{Listen: "127.0.0.1:0", To: upstream.URL}}, w.Proxy()))
	w.Watch(p)
	w.Watch(p)
	door, ingress := httptest.NewServer(p.Handler("payments")), httptest.NewServer(p.Handler(proxy.IngressDoor))
	defer door.Close()
	defer ingress.Close()
	for _, at := range []string{door.URL, ingress.URL} {
		req := must.Have(http.NewRequest(http.MethodGet, at+"/charges", nil))
		req.Header.Set("Traceparent", parent+"01")
		resp := must.Have(http.DefaultClient.Do(req))
		resp.Body.Close()
		check.Equal(t, resp.StatusCode, 200, "status")
	}
	var is string
	until(t, "counted", func() bool {
		is = page(w)
		return strings.Contains(is, `proxy_requests_total{door="ingress",status="2xx"} 1`)
	})
	for _, want := range []string{`proxy_requests_total{door="payments",status="2xx"} 1`, `retry_calls_total{dependency="payments",operation="GET",outcome="success_retry"} 1`,
		`retry_budget_tokens{dependency="payments"} `, `admission_admitted_total{admission="ingress",attempt_class="first",priority="critical"} 1`, `admission_in_flight{admission="ingress"} 0`} {
		if !strings.Contains(is, "\n"+want) {
			t.Errorf("/metrics has not %s", want)
		}
	}
	must.Succeed(w.Close(t.Context()))
	if !strings.Contains(page(w), "\nproxy_spans_sent_total 3\n") {
		t.Error("the spans are not counted")
	}
	check.Equal(t, len(collects.spans), 3, "spans")
	check.Equal(t, collects.services[0], "lull-proxy", "service")
	call := collects.spans[2]
	check.Equal(t, fmt.Sprintf("%x %x", call.TraceId, call.ParentSpanId), "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331", "the call is under")
	for i, attempt := range collects.spans[:2] {
		check.Equal(t, string(attempt.ParentSpanId), string(call.SpanId), "parent of attempt %d", i)
		check.Equal(t, sent[i], fmt.Sprintf("00-%x-%x-01", attempt.TraceId, attempt.SpanId), "sent by attempt %d", i)
	}
	check.Equal(t, sent[2], parent+"01", "sent to the application")
}

// A collector that is away costs no request anything, and its spans are counted.
func TestWithoutCollector(t *testing.T) {
	var port int
	must.Succeed(ports.Free(&port))
	w := must.Have(Start(t.Context(), &file.File{Traces: file.Traces{OTLP: fmt.Sprintf("http://127.0.0.1:%d", port), Share: 1}}, none, nobody))
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	must.Have(w.attempts(base).RoundTrip(get(http.Header{})))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Succeed(w.Close(ctx))
	if is := page(w); !strings.Contains(is, "\nproxy_spans_ended_total 1\n") || !strings.Contains(is, "\nproxy_spans_sent_total 0\n") {
		t.Error("the span is not counted")
	}
}

// Prometheus reads /metrics, and each panel of the dashboard that is not about queues has something to show.
func TestDashboard(t *testing.T) {
	folder := os.Getenv("LULL_PROMETHEUS")
	if folder == "" {
		folder = filepath.Join(must.Have(os.UserCacheDir()), "lull", "prometheus")
	}
	path, err := exec.LookPath(filepath.Join(folder, "prometheus"))
	if err != nil {
		dbserver.Need(t, fmt.Errorf("%w: prometheus: run .ci/install-prometheus, or have LULL_PROMETHEUS name a folder with it: %w", dbserver.ErrAbsent, err))
	}
	w := must.Have(Start(t.Context(), &file.File{}, none, nobody))
	metrics := httptest.NewServer(w.Metrics())
	defer metrics.Close()
	s := openShop(t, w)

	var port int
	must.Succeed(ports.Free(&port))
	dir, at := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", port)
	must.Succeed(os.WriteFile(filepath.Join(dir, "prometheus.yml"), fmt.Appendf(nil,
		"scrape_configs: [{job_name: proxy, scrape_interval: 250ms, scrape_timeout: 250ms, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(metrics.URL, "http://")), 0o600))
	server := must.Have(child.Start(exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)))
	defer server.Kill()
	ask := func(expr string) (n int, err error) {
		resp, err := http.PostForm("http://"+at+"/api/v1/query", url.Values{"query": {expr}})
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var answer struct{ Data struct{ Result []any } }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		return len(answer.Data.Result), err
	}
	must.Succeed(server.Await(func() error { _, err := ask("1"); return err }, 50*time.Millisecond, time.Minute))

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must.Succeed(json.Unmarshal(must.Have(os.ReadFile("../../../../../docs/dashboards/lull.json")), &dashboard))
	variables := strings.NewReplacer("$dependency", ".*", "$admission", ".*", "$__rate_interval", "30s")
	missing := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			if !strings.Contains(q.Expr, "consumer_") {
				missing[variables.Replace(q.Expr)] = p.Title
			}
		}
	}
	if len(missing) < 25 {
		t.Errorf("%d queries", len(missing))
	}
	for began := time.Now(); len(missing) > 0 && time.Since(began) < time.Minute; {
		s.round()
		for expr := range missing {
			if must.Have(ask(expr)) > 0 {
				delete(missing, expr)
			}
		}
	}
	for expr, title := range missing {
		t.Errorf("%s has nothing to show: %s", title, expr)
	}
}
