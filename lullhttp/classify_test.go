package lullhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

func checkError(t *testing.T, err error, kind engine.VerdictKind, neverSent bool, code string) {
	t.Helper()
	if err == nil {
		t.Fatal("the request succeeded, so there is nothing to classify")
	}
	want := lull.Verdict{Kind: kind, NeverSent: neverSent, Code: code}
	check.Equal(t, ClassifyError(err), want, "ClassifyError(%v)", err)
	// The same through an http.Client.
	check.Equal(t, ClassifyError(&url.Error{Op: "Get", URL: "http://x", Err: err}), want, "ClassifyError(url.Error of %v)", err)
}

// roundTrip makes one request in memory and returns its error.
func roundTrip(t *testing.T, tr *http.Transport, ctx context.Context, method, url string, body io.Reader) error {
	t.Helper()
	defer tr.CloseIdleConnections()
	if tr.DialContext == nil {
		tr.DialContext = memnet.Dial
	}
	req := must.Have(http.NewRequestWithContext(ctx, method, url, body))
	resp, err := tr.RoundTrip(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return err
}

// serve accepts connections in memory and hands each to f, until the test, in a bubble, ends.
func serve(t *testing.T, f func(*memnet.Conn)) (addr string) {
	t.Helper()
	l := memnet.Listen()
	var conns []net.Conn
	t.Cleanup(func() {
		l.Close()
		synctest.Wait()
		for _, c := range conns { // those that net/http has in its pool, or still believes to be in use
			c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			go func() {
				defer c.Close()
				f(c.(*memnet.Conn))
			}()
		}
	}()
	return l.Addr().String()
}

// readRequest takes the whole of a request without a body.
func readRequest(c net.Conn) {
	if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		io.Copy(io.Discard, req.Body)
	}
}

// What http.Transport returns when a server fails in each way. (Package neterr tests the types, and
// TestWhatWasNeverSentIsRepeated what fails before the request is sent.)
func TestErrorsOfConnections(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"
	hangUp := func(answer string) func(*memnet.Conn) {
		return func(c *memnet.Conn) {
			readRequest(c)
			io.WriteString(c, answer)
		}
	}
	mute := func(c *memnet.Conn) { io.Copy(io.Discard, c) }
	for name, c := range map[string]struct {
		scheme    string
		serve     func(*memnet.Conn) // nil: nobody
		set       func(*http.Transport)
		kind      engine.VerdictKind
		neverSent bool
		code      string
	}{
		"refused":               {"http", nil, nil, lull.KindTransient, true, "connection_refused"},
		"reset":                 {"http", func(c *memnet.Conn) { readRequest(c); c.SetLinger(0) }, nil, lull.KindTransient, false, "connection_reset"},
		"no answer":             {"http", hangUp(""), nil, lull.KindTransient, false, "unexpected_eof"},
		"half a header":         {"http", hangUp(answer), nil, lull.KindTransient, false, "unexpected_eof"},
		"half a body":           {"http", hangUp(answer + "\r\nhalf"), nil, lull.KindTransient, false, "unexpected_eof"},
		"not HTTP":              {"http", hangUp("I do not speak HTTP\r\n\r\n"), nil, lull.KindUnclassified, false, engine.CodeUnclassified},
		"SSH":                   {"http", hangUp("SSH-2.0-OpenSSH_9.6\r\n"), nil, lull.KindUnclassified, false, engine.CodeUnclassified},
		"no status":             {"http", hangUp("HTTP/1.1 two hundred\r\n\r\n"), nil, lull.KindUnclassified, false, engine.CodeUnclassified},
		"no such scheme":        {"gopher", nil, nil, lull.KindUnclassified, false, engine.CodeUnclassified},
		"no header in time":     {"http", mute, func(tr *http.Transport) { tr.ResponseHeaderTimeout = time.Millisecond }, lull.KindTransient, false, "timeout"},
		"the name is not there": {"http", nil, dialFails(&net.DNSError{Name: "x.invalid", IsNotFound: true}), lull.KindPermanent, true, "nxdomain"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				addr, tr := "nobody.test:80", new(http.Transport)
				if c.serve != nil {
					addr = serve(t, c.serve)
				}
				if c.set != nil {
					c.set(tr)
				}
				checkError(t, roundTrip(t, tr, t.Context(), "GET", c.scheme+"://"+addr, nil), c.kind, c.neverSent, c.code)
			})
		})
	}
}

func dialFails(err error) func(*http.Transport) {
	return func(tr *http.Transport) {
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
}

func TestErrorsOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		addr := serve(t, func(c *memnet.Conn) {
			readRequest(c)
			cancel()
			io.Copy(io.Discard, c)
		})
		checkError(t, roundTrip(t, &http.Transport{}, ctx, "GET", "http://"+addr, nil), lull.KindUnclassified, false, "canceled")
		client := &http.Client{Timeout: time.Millisecond, Transport: &http.Transport{DialContext: memnet.Dial}}
		defer client.CloseIdleConnections()
		_, err := client.Get("http://" + serve(t, func(c *memnet.Conn) { io.Copy(io.Discard, c) }))
		checkError(t, err, lull.KindTransient, false, "timeout")
	})
}

func TestErrorTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secure := memnet.NewUnstartedServer(t, http.NotFoundHandler())
		secure.Config.ErrorLog = quiet
		memnet.StartTLS(secure)
		plain := memnet.NewServer(t, http.NotFoundHandler())
		pool := x509.NewCertPool()
		pool.AddCert(secure.Certificate())
		with := func(c *tls.Config) *http.Transport { return &http.Transport{TLSClientConfig: c} }
		do := func(tr *http.Transport, url string) error {
			return roundTrip(t, tr, context.Background(), "GET", url, nil)
		}

		for _, c := range []*tls.Config{
			{}, // an unknown authority
			{RootCAs: pool, ServerName: "other.test"},
			{RootCAs: pool, Time: func() time.Time { return time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		} {
			checkError(t, do(with(c), secure.URL), lull.KindPermanent, true, "certificate")
		}
		checkError(t, do(&http.Transport{}, "https"+strings.TrimPrefix(plain.URL, "http")), lull.KindPermanent, true, "not_tls")
		checkError(t, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, lull.KindPermanent, true, "not_tls")
		checkError(t, http.ErrSchemeMismatch, lull.KindPermanent, true, "not_tls")
		picky := memnet.NewUnstartedServer(t, http.NotFoundHandler())
		picky.Config.ErrorLog = quiet
		picky.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		memnet.StartTLS(picky)
		old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
		checkError(t, do(with(old), picky.URL), lull.KindUnclassified, false, "tls_alert")
		for _, err := range []error{
			x509.UnknownAuthorityError{}, x509.HostnameError{Certificate: &x509.Certificate{}}, x509.CertificateInvalidError{}, x509.SystemRootsError{},
			&tls.CertificateVerificationError{Err: errors.New("refused by VerifyConnection")},
		} {
			checkError(t, fmt.Errorf("wrapped: %w", err), lull.KindPermanent, true, "certificate")
		}
	})
}

// A text is no evidence, and nothing is known of other errors of net/http.
func TestErrorUnclassified(t *testing.T) {
	for _, err := range []error{
		errors.New("connection reset by peer"), errors.New("EOF"),
		http.ErrUseLastResponse, http.ErrSkipAltProtocol, http.ErrHandlerTimeout, http.ErrBodyReadAfterClose, http.ErrNotSupported,
		&http.MaxBytesError{Limit: 1},
	} {
		checkError(t, err, lull.KindUnclassified, false, engine.CodeUnclassified)
	}
}

func TestErrorClosedByThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := make(chan net.Conn, 1)
		tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := memnet.Dial(ctx, network, addr)
			conns <- c
			return c, err
		}}
		addr := serve(t, func(c *memnet.Conn) {
			readRequest(c)
			(<-conns).Close()
			io.Copy(io.Discard, c)
		})
		checkError(t, roundTrip(t, tr, context.Background(), "GET", "http://"+addr, nil), lull.KindTransient, false, "connection_closed")
	})
}

func TestErrorNilAndMarked(t *testing.T) {
	if got := ClassifyError(nil); got != (lull.Verdict{Kind: lull.KindSuccess}) {
		t.Errorf("ClassifyError(nil) = %+v", got)
	}
	// A transport below may mark its errors; a mark wins.
	if got := ClassifyError(lull.Permanent(io.ErrUnexpectedEOF)); got.Kind != lull.KindPermanent {
		t.Errorf("an error marked permanent is %+v", got)
	}
	if got := ClassifyError(lull.Transient(errors.New("x"))); got.Kind != lull.KindTransient {
		t.Errorf("an error marked transient is %+v", got)
	}
}

// A Transport that New has not made returns an error that names it, as a RoundTripper must,
// and closes the body.
func TestZeroTransport(t *testing.T) {
	for name, tr := range map[string]*Transport{"nil": nil, "zero": {}} {
		body := &closeCounter{}
		req, _ := http.NewRequest("POST", "http://127.0.0.1:1/", body)
		resp, err := tr.RoundTrip(req)
		if resp != nil || err == nil || !strings.Contains(err.Error(), "lullhttp.New") || body.closed != 1 {
			t.Errorf("%s: %v, body closed %d times", name, err, body.closed)
		}
		if _, err := (&http.Client{Transport: tr}).Get("http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "lullhttp.New") {
			t.Errorf("%s, through a client: %v", name, err)
		}
	}
}

type closeCounter struct{ closed int }

func (c *closeCounter) Read([]byte) (int, error) { return 0, io.EOF }
func (c *closeCounter) Close() error             { c.closed++; return nil }

// What http.Client puts in front of an error, host and method, is not in its text again; and
// lull's own classifier is refused, by the name of ours.
func TestErrorTextsOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := NewClient(lull.Policy{}, With(lull.WithClassifier(lull.Classify))); err == nil || !strings.Contains(err.Error(), "use lullhttp.WithClassifier") {
			t.Errorf("lull.WithClassifier: %v", err)
		}
		broken := errors.New("broken")
		base := tripper(func(*http.Request) (*http.Response, error) { return nil, broken })
		client := must.Have(NewClient(lull.Policy{}, WithBase(base)))
		_, err := client.Get("http://example.com/a")
		var e *lull.Error
		if !errors.As(err, &e) || e.Dependency != "example.com" || e.Operation != "GET" || !errors.Is(err, broken) || !errors.Is(err, lull.ErrPermanent) {
			t.Errorf("%#v", err)
		}
		text := err.Error()
		if !strings.HasPrefix(text, `Get "http://example.com/a": failed after 1 attempt (`) || !strings.HasSuffix(text, "; not repeated, because nothing is known of this error (lull.Transient, lullhttp.WithClassifier): broken") {
			t.Error(text)
		}
		named, _ := NewClient(lull.Policy{}, WithBase(base), WithOperation(func(*http.Request) string { return "orders" }))
		if _, err := named.Get("http://example.com/a"); !strings.HasPrefix(err.Error(), `Get "http://example.com/a": orders: failed`) {
			t.Error(err)
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A new release of Go may change how its errors come about: then this fails, and
// references has to learn it.
func TestReferencesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refs := references()
		if refs.closedIdle == nil || refs.statusLine == "" || refs.statusCode == "" || refs.statusLine == refs.statusCode ||
			refs.lostPing == "" || refs.goAwayPrefix == "" || refs.lostPing == refs.goAwayPrefix {
			t.Errorf("net/http has shown only %+v", refs)
		}
		for range 10 { // they are found in virtual time, too, and leave nothing behind
			if err := provokeClosedIdle(); err != refs.closedIdle {
				t.Fatalf("%v, and then %v", refs.closedIdle, err)
			}
			if text := lostPingText(); text != refs.lostPing || goAwayPrefix() != refs.goAwayPrefix {
				t.Fatalf("%q, and %q; want %+v", text, goAwayPrefix(), refs)
			}
		}
	})
}
