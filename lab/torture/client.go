package torture

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// A Client is graded by Run.
type Client interface {
	// Name returns the client's name for a card.
	Name() string
	// Start returns a session for one case. A session that stays up takes many calls at the same
	// time in one process.
	Start(ctx context.Context, e Env, stayUp bool) (Session, error)
}

// Env is what a client may need to know about the server.
type Env struct {
	CA     []byte // the certificate, as PEM, that signs those of the cases
	CAFile string // a file with the same
}

// A Session makes calls. Call may be called concurrently if the session stays up.
type Session interface {
	Call(ctx context.Context, c Call) Outcome
	// Close ends the session. It returns what was wrong with the end of the client, such as a
	// process that did not exit. Empty means nothing.
	Close() string
}

// A Call is one logical call.
type Call struct {
	ID      int
	Client  int // calls of different clients share nothing: they stand for different processes
	Method  string
	URL     string
	Body    []byte
	File    string        // a file with the same bytes; empty if there is no body
	Timeout time.Duration // the most that the call may take; zero means the client's own timeout
	Key     string        // to be sent as Idempotency-Key; empty for none
}

// An Outcome is what the client reports of a call.
type Outcome struct {
	OK     bool // it got a 2xx, with its body
	Status int  // 0 if it is not known
	Text   string
	Ended  string // why the client was ended from outside; empty if it was not
}

// HTTP returns a client in this process. New makes a Doer that shares nothing with another one,
// as if it were in a process of its own. base trusts the certificates of the cases.
func HTTP(name string, New func(base *http.Transport) (Doer, error)) Client {
	return inProcess{name, New}
}

// A Doer makes a request with all its retries.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

type inProcess struct {
	name string
	new  func(*http.Transport) (Doer, error)
}

func (p inProcess) Name() string { return p.name }

func (p inProcess) Start(_ context.Context, e Env, _ bool) (Session, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(e.CA) {
		return nil, errors.New("there is no certificate in what should be the cases' authority")
	}
	return &inSession{p: p, tls: &tls.Config{RootCAs: pool}, clients: map[int]Doer{}}, nil
}

type inSession struct {
	p   inProcess
	tls *tls.Config

	mu      sync.Mutex
	clients map[int]Doer
	bases   []*http.Transport // theirs
}

func (s *inSession) client(n int) (Doer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if doer := s.clients[n]; doer != nil {
		return doer, nil
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = nil // the cases are on this machine
	base.TLSClientConfig = s.tls.Clone()
	base.ForceAttemptHTTP2 = true
	doer, err := s.p.new(base)
	if err == nil {
		s.clients[n], s.bases = doer, append(s.bases, base)
	}
	return doer, err
}

func (s *inSession) Call(ctx context.Context, c Call) Outcome {
	doer, err := s.client(c.Client)
	if err != nil {
		return Outcome{Text: err.Error()}
	}
	outer := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	var body io.Reader
	if c.Body != nil {
		body = bytes.NewReader(c.Body)
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, body)
	if err != nil {
		return Outcome{Text: err.Error()}
	}
	if c.Key != "" {
		r.Header.Set("Idempotency-Key", c.Key)
	}
	over := make(chan Outcome, 1)
	go func() { over <- do(doer, r) }()
	select {
	case o := <-over:
		return o
	case <-outer.Done(): // a client that does not heed its context is left behind
		return Outcome{Ended: context.Cause(outer).Error()}
	}
}

func do(doer Doer, r *http.Request) Outcome {
	resp, err := doer.Do(r)
	if err != nil {
		return Outcome{Text: err.Error()}
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return Outcome{Status: resp.StatusCode, Text: err.Error()}
	}
	return Outcome{OK: resp.StatusCode/100 == 2, Status: resp.StatusCode, Text: resp.Status}
}

func (s *inSession) Close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, base := range s.bases {
		base.CloseIdleConnections()
	}
	return ""
}

// NetHTTP returns a client that is an http.Client alone.
func NetHTTP() Client {
	return HTTP("net/http", func(base *http.Transport) (Doer, error) { return &http.Client{Transport: base}, nil })
}

// Lull returns a client that is lullhttp with a policy and options.
func Lull(name string, p lull.Policy, opts ...lullhttp.Option) Client {
	return HTTP(name, func(base *http.Transport) (Doer, error) {
		client, err := lullhttp.NewClient(p, append([]lullhttp.Option{lullhttp.WithBase(base)}, opts...)...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return client, nil
	})
}
