package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/proxy"
)

// A mistake is named by its field, and no error has a password, wherever in the address somebody has put it.
func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct {
		file.File
		field string // empty: none
	}{
		{file.File{Traces: file.Traces{}}, ""},
		{file.File{Traces: file.Traces{OTLP: "http://127.0.0.1:4318", Share: 1}}, ""},
		{file.File{Traces: file.Traces{OTLP: "https://user:secret@collector.example/base", Share: -1}}, ""},
		{file.File{Traces: file.Traces{OTLP: "127.0.0.1:4318"}}, "Traces.OTLP"},
		{file.File{Traces: file.Traces{OTLP: "grpc://user:secret@127.0.0.1:4317"}}, "Traces.OTLP"},
		{file.File{Traces: file.Traces{OTLP: "http://"}}, "Traces.OTLP"},
		{file.File{Fleet: file.Fleet{}}, ""},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:secret@127.0.0.1:6379/0"}}, ""},
		{file.File{Fleet: file.Fleet{Redis: "unix:///run/redis.sock?db=1"}}, ""},
		{file.File{Fleet: file.Fleet{Redis: "127.0.0.1:6379"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:secret@127.0.0.1:6379/zero"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:sec#secret@127.0.0.1"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:12/secret@127.0.0.1"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:12?secret@127.0.0.1"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "redis://user:%secret@127.0.0.1"}}, "Fleet.Redis"},
		{file.File{Fleet: file.Fleet{Redis: "postgres://user:secret@127.0.0.1"}}, "Fleet.Redis"},
	} {
		want := []string{c.field}
		if c.field == "" {
			want = nil
		}
		err := Check(&c.File)
		check.Slices(t, problem.Fields(err), want, "%v", err)
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestAddressesOfStores(t *testing.T) {
	for _, right := range []string{"memory", "bolt:/var/lib/keys", "bolt:keys", "redis://:secret@h:6379/1", "rediss://h", "unix:///s", "postgres://u:secret@h/db", "postgresql:///db?host=/run"} {
		if err := Check(keys(right)); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
	for _, wrong := range []string{"memory:", "bolt:", "mysql://u:secret@h/db", "host=h password=secret", "redis://u:secret@h/x", "postgres://u:secret@h:port/db",
		"postgres://u:pw/secret@h/db", "postgres://u:secret@h/db?sslmode=secure", "postgres://h/db?user=u&password=secret&sslmode=secure"} {
		if err := Check(keys(wrong)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// keys is a file with a store of keys.
func keys(store string) *file.File {
	return &file.File{Ingress: proxy.Ingress{Keys: proxy.Keys{Store: store}}}
}

// A shop makes every kind of event that the dashboard shows of HTTP calls.
type shop struct {
	payments, stock *lull.Dependency
	w               *Wiring
	door            http.Handler
}

func openShop(t *testing.T, w *Wiring) *shop {
	opts := append(w.lull.Options(), lull.WithRand(seed.Source(t)))
	policy := lull.Policy{Attempts: 3, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: 2 * time.Millisecond},
		Breaker: breaker.Config{FailureRate: .6, MinCalls: 20, Window: 2 * time.Second, OpenFor: 100 * time.Millisecond, OpenMax: 200 * time.Millisecond}}
	s := &shop{w: w, payments: must.Have(lull.NewDependency("payments", policy, opts...))}
	s.stock = must.Have(lull.NewDependency("stock", lull.Policy{Attempts: 1, Hedge: hedge.Config{Attempts: 2, Delay: time.Millisecond, Share: .5}}, opts...))
	w.lull.WatchAll(func(yield func(*lull.Dependency) bool) { _ = yield(s.payments) && yield(s.stock) })
	gate := admission.NewGate(must.Have(admission.New(admission.Config{Limit: 1, MaxWait: 5 * time.Millisecond}, admission.WithObserver(w.lull.Admission("ingress")))))
	w.lull.WatchGate("ingress", gate)
	s.door = must.Have(gate.Middleware()).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Millisecond) }))
	return s
}

// round is some calls, of which the last open the circuit, and some requests.
func (s *shop) round() {
	ctx := context.Background()
	for i := range 60 {
		first := true
		lull.Run(ctx, s.payments, func(context.Context) error {
			defer func() { first = false }()
			switch {
			case i < 10, i < 20 && !first:
				return nil
			case i == 20:
				return lull.RetryAfter(errors.New("busy"), time.Millisecond)
			}
			return lull.Transient(errors.New("down"))
		}, lull.Operation("charge"))
	}
	for range 5 {
		lull.DoHedged(ctx, s.stock, func(context.Context) (int, error) {
			time.Sleep(3 * time.Millisecond)
			return 1, nil
		}, lull.Operation("count"))
	}
	var requests sync.WaitGroup
	for range 5 {
		requests.Go(func() {
			w := httptest.NewRecorder()
			s.door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			s.w.Count(&proxy.Record{Door: "ingress", Status: w.Code})
		})
	}
	requests.Wait()
	time.Sleep(300 * time.Millisecond) //clock: a bubble's, or the circuit has to close
}

func none() uint64 { return 0 }
func nobody(any)   {}

func page(w *Wiring) string {
	r := httptest.NewRecorder()
	w.Metrics().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return r.Body.String()
}

// The names of metrics in the dashboard and the alerts are those that Prometheus' OTLP receiver gives (docs/dashboards tests
// that). /metrics has the same.
func TestMetricsOfTheDashboard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := must.Have(Start(t.Context(), &file.File{}, none, nobody))
		s := openShop(t, w)
		s.round()
		s.round()
		is := "\n" + page(w)
		n := 0
		for _, file := range []string{"lull.json", "rules.yml"} {
			text := must.Have(os.ReadFile("../../../../../docs/dashboards/" + file))
			for _, name := range regexp.MustCompile(`\b(?:retry|admission|proxy)_\w+`).FindAllString(string(text), -1) {
				if recorded := regexp.MustCompile(`job_dependency:` + name + `\b`); recorded.Match(text) {
					continue // a rule's own
				}
				if n++; !strings.Contains(is, "\n"+name+"{") {
					t.Errorf("%s uses %s, which /metrics does not have", file, name)
				}
			}
		}
		if n < 40 {
			t.Errorf("%d names", n)
		}
		if strings.Contains(is, "otel_scope") || strings.Contains(is, "target_info") {
			t.Error("it has labels or metrics that the receiver does not give")
		}
	})
}

func TestMetricsOfTheProxy(t *testing.T) {
	w := must.Have(Start(t.Context(), &file.File{}, func() uint64 { return 7 }, nobody))
	for _, status := range []int{200, 204, 101, 302, 404, 503, 0, 999} {
		w.Count(&proxy.Record{Door: "payments", Status: status})
	}
	w.Reloaded(nil)
	w.Reloaded(errors.New("wrong"))
	w.Reloaded(errors.New("wrong"))
	is := page(w)
	for _, want := range []string{
		`proxy_requests_total{door="payments",status="1xx"} 1`,
		`proxy_requests_total{door="payments",status="2xx"} 2`,
		`proxy_requests_total{door="payments",status="3xx"} 1`,
		`proxy_requests_total{door="payments",status="4xx"} 1`,
		`proxy_requests_total{door="payments",status="5xx"} 1`,
		`proxy_requests_total{door="payments",status="other"} 2`,
		`proxy_log_lines_lost_total 7`, `proxy_reloads_total{result="ok"} 1`, `proxy_reloads_total{result="refused"} 2`, `proxy_spans_ended_total 0`, `proxy_spans_sent_total 0`,
	} {
		if !strings.Contains(is, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, name := range []string{"go_goroutines ", "go_memstats_heap_alloc_bytes ", "process_open_fds ", "process_resident_memory_bytes "} {
		if !strings.Contains(is, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
}
