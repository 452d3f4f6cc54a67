package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"github.com/lullgo/lull/internal/must"
)

// bare is the proxy that others are compared with: httputil.ReverseProxy over net/http, without retries. Its arguments are a
// file with a certificate, and the doors: LISTEN=ORIGIN.
func bare(args []string) error {
	pool := x509.NewCertPool()
	if args[0] != "" {
		pool.AppendCertsFromPEM(must.Have(os.ReadFile(args[0])))
	}
	failed := make(chan error)
	for _, arg := range args[1:] {
		listen, to, _ := strings.Cut(arg, "=")
		target := must.Have(url.Parse(to))
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy, transport.TLSClientConfig, transport.MaxIdleConnsPerHost = nil, &tls.Config{RootCAs: pool}, 1000
		transport.MaxIdleConns = 0
		door := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
		go func() { failed <- http.ListenAndServe(listen, door) }()
	}
	return <-failed
}
