package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// serveAdmin serves h at l until the function that it returns is called.
func serveAdmin(l net.Listener, h http.Handler) (stop func()) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go s.Serve(l) // until stop
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			s.Close()
		}
	}
}

func (r *running) adminHandler(page, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{$}", page)
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "healthy\n") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, req *http.Request) {
		if !r.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "draining\n")
		r.drain()
	})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
		if r.File == "" {
			http.Error(w, "there is no file", http.StatusConflict)
			return
		}
		if err := r.reload(); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		_, _ = io.WriteString(w, "in force\n")
	})
	return onlyLocal(http.NewCrossOriginProtection().Handler(mux))
}

// onlyLocal refuses hosts that are not this machine: a name of somebody else may lead here (DNS rebinding), and so may a door.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, fmt.Sprintf("the host is %q: want localhost or a loopback address", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
