// Package wiring is what "lull proxy" takes from larger modules: metrics for Prometheus, traces over OTLP, the budget of a
// fleet, and stores for Idempotency-Keys.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/proxy"
)

// Check returns what is wrong with the addresses in f, and with the files that it names. It calls nothing.
func Check(f *file.File) error {
	var l problem.List
	exists := func(field, path string) {
		_, err := os.Stat(path)
		l.Check(path == "" || err == nil, field, fmt.Sprintf("%q", path), fmt.Sprintf("a file that can be read (%v)", err))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		exists(fmt.Sprintf("Upstreams[%q].CA", name), f.Upstreams[name].CA)
	}
	exists("Forward.CA", f.Forward.CA)
	exists("Ingress.Cert", f.Ingress.Cert)
	exists("Ingress.Key", f.Ingress.Key)
	exists("Ingress.ClientCA", f.Ingress.ClientCA)
	if to := f.Log.To; strings.ContainsAny(to, `/\\`) {
		exists("Log.To", filepath.Dir(to))
	}
	if at := f.Traces.OTLP; at != "" {
		u, err := parse(at)
		l.Check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "", "Traces.OTLP", shown(at), "the URL of a collector, such as http://127.0.0.1:4318")
	}
	if at := f.Fleet.Redis; at != "" {
		if _, err := redisOptions(at); err != nil {
			l.Add("Fleet.Redis", shown(at), "redis://, rediss:// or unix:// ("+err.Error()+")")
		}
	}
	if at := f.Ingress.Keys.Store; at != "" {
		if _, err := storeAt(at); err != nil {
			l.Add("Ingress.Keys.Store", shown(at), strings.TrimPrefix(err.Error(), "want "))
		}
	}
	return l.Err()
}

// shown returns address without what may be secret: user, password and the query. Errors print it.
func shown(address string) string {
	u, err := parse(address)
	if err != nil {
		if scheme, _, ok := strings.Cut(address, "://"); ok {
			return scheme + "://..."
		}
		return "(not shown)"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// parse is url.Parse. It refuses what may be a password in the wrong place, and its error has no part of the address.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.User == nil && strings.Contains(address, "@") || u.Fragment != "" || strings.ContainsAny(u.Host+u.Path+u.Opaque, "= ") {
		return nil, errors.New("not a URL: characters of a password other than letters and digits are written as %XX")
	}
	return u, nil
}

// A Wiring is what a proxy is made with and watched by.
type Wiring struct {
	registry          *prometheus.Registry
	requests, reloads *prometheus.CounterVec
	ended, sent       prometheus.Counter // spans
	lull              *lullotel.Telemetry
	tracers           *sdktrace.TracerProvider // nil: no traces
	fleet             *fleet                   // nil: there is none
	store             idempotency.Store        // nil: there is none
	unwatch           func()
	closers           []func(context.Context) error
}

// Start opens what f, which is valid, names. Redis and the collector need not be there yet; PostgreSQL must answer. linesLost is
// how many lines of the access log were lost. say gets what operators should know while the proxy runs, concurrently.
func Start(ctx context.Context, f *file.File, linesLost func() uint64, say func(any)) (*Wiring, error) {
	w := newMetrics(linesLost)
	var err error
	open := func(section, address string, what func() error) {
		if address != "" && err == nil {
			if failed := what(); failed != nil {
				err = fmt.Errorf("%s: %s: %w", section, shown(address), failed)
			}
		}
	}
	open("traces", f.Traces.OTLP, func() error { return w.trace(f.Traces, say) })
	w.observe()
	open("fleet", f.Fleet.Redis, func() error { return w.join(f.Fleet.Redis, say) })
	open("ingress.keys", f.Ingress.Keys.Store, func() error { return w.openStore(ctx, f.Ingress.Keys.Store) })
	if err != nil {
		return nil, errors.Join(err, w.Close(ctx))
	}
	return w, nil
}

// Proxy returns the wiring for proxy.New.
func (w *Wiring) Proxy() proxy.Wiring {
	return proxy.Wiring{Record: w.Count, Options: w.dependency, Calls: w.calls, Attempts: w.attempts, Admission: w.lull.Admission(proxy.IngressDoor), Store: w.store}
}

// dependency returns the options of the dependency of that name.
func (w *Wiring) dependency(name string) []lull.Option {
	opts := w.lull.Options()
	if w.fleet != nil {
		opts = append(opts, w.fleet.options(name)...)
	}
	return opts
}

// Close sends the spans that are left, hands tokens back to the fleet, and closes the store, for as long as ctx allows. Call it
// when the proxy is drained.
func (w *Wiring) Close(ctx context.Context) (err error) {
	for _, end := range w.closers {
		err = errors.Join(err, end(ctx))
	}
	return err
}
