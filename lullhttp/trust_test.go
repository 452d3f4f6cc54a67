package lullhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lullgo/lull/inbound"
	"github.com/lullgo/lull/lullhttp"
)

// The headers of a request are trusted from clients that the option accepts, and from nobody
// else. Without the option they are trusted from everybody.
func TestTrust(t *testing.T) {
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	mutual := lullhttp.WithTrust(lullhttp.TrustMutualTLS)
	for name, c := range map[string]struct {
		opts     []lullhttp.HandlerOption
		tls      *tls.ConnectionState
		believed bool
	}{
		"no option":              {nil, nil, true},
		"nobody":                 {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody)}, verified, false},
		"everybody":              {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustEverybody)}, nil, true},
		"mutual TLS":             {[]lullhttp.HandlerOption{mutual}, verified, true},
		"TLS, no certificate":    {[]lullhttp.HandlerOption{mutual}, &tls.ConnectionState{}, false},
		"TLS, not verified":      {[]lullhttp.HandlerOption{mutual}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, false},
		"no TLS":                 {[]lullhttp.HandlerOption{mutual}, nil, false},
		"nobody, another number": {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody), lullhttp.ReadAttemptWith(func(*http.Request) int { return 3 })}, nil, false},
	} {
		ran := false
		h := newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
			ran = true
			_, bounded := r.Context().Deadline()
			if n := inbound.From(r.Context()).Attempt(); bounded != c.believed || (n == 3) != c.believed {
				t.Errorf("%s: attempt %d, with a deadline: %v; want that it is believed: %v", name, n, bounded, c.believed)
			}
		}, c.opts...)
		r := httptest.NewRequest("GET", "/", nil)
		r.TLS = c.tls
		r.Header.Set("Lull-Attempt", "3")
		r.Header.Set("Lull-Timeout", lullhttp.FormatTimeout(time.Hour))
		h(httptest.NewRecorder(), r)
		if !ran {
			t.Errorf("%s: not run", name)
		}
		ran = false
		r.Header.Set("Lull-Timeout", "0")
		if h(httptest.NewRecorder(), r); ran == c.believed {
			t.Errorf("%s: the client's time is up, and the handler ran: %v", name, ran)
		}
	}
}

// At an edge no request is trusted: this one counts as a first attempt, and the server sets
// its client's time.
func ExampleWithTrust() {
	handler, err := lullhttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		until, _ := r.Context().Deadline()
		fmt.Println("attempt", inbound.From(r.Context()).Attempt(), "with", time.Until(until).Round(2*time.Minute)) //clock: rounded, a minute does not matter
	}), lullhttp.WithTrust(lullhttp.TrustNobody), lullhttp.LimitTimeout(0, 2*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Lull-Attempt", "3")
	r.Header.Set("Lull-Timeout", "5")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: attempt 1 with 2m0s
}
