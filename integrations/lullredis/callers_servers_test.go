//go:build servers

package lullredis

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
)

// An untouched budget counts what a dependency's failures would take.
type untouched struct {
	budget.Budget
	taken atomic.Int64
}

func (b *untouched) Failed(now time.Duration) { b.taken.Add(1); b.Budget.Failed(now) }

func (b *untouched) Withdraw(now time.Duration, c budget.Class, rnd func() uint64) budget.Grant {
	b.taken.Add(1)
	return b.Budget.Withdraw(now, c, rnd)
}

// withTLS starts a server with a certificate for 127.0.0.1, which asks its clients for theirs.
func withTLS(t *testing.T) (addr string, trusted *x509.CertPool, own tls.Certificate) {
	t.Helper()
	key := must.Have(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der := must.Have(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	secret := must.Have(x509.MarshalPKCS8PrivateKey(key))
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	own = must.Have(tls.X509KeyPair(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	dir := t.TempDir()
	must.Succeed(os.WriteFile(filepath.Join(dir, "cert"), cert, 0o600))
	must.Succeed(os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	addr = freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	needServer(t, "--tls-port", port, "--tls-cert-file", filepath.Join(dir, "cert"), "--tls-key-file", filepath.Join(dir, "key"), "--tls-ca-cert-file", filepath.Join(dir, "cert"))
	trusted = x509.NewCertPool()
	trusted.AppendCertsFromPEM(cert)
	return addr, trusted, own
}

// A hook of the caller's own.
type process func(context.Context, redis.Cmder) error

func (f process) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (f process) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return redis.ProcessHook(f) }
func (f process) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return f(ctx, cmds[0]) }
}

type refusing struct{}

func (refusing) Allow() error       { return errors.New("the caller's limit") }
func (refusing) ReportResult(error) {}

type subscribing struct{}

func (subscribing) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, errors.New("no credentials")
}

// A failure of the caller's own side says nothing about the server: it opens no circuit, and takes nothing from a
// budget.
func TestTheCallersOwnSide(t *testing.T) {
	t.Parallel()
	nobody := freeAddr(t)
	hold := func(t *testing.T, c *redis.Client) { // the only connection
		ctx, cancel := context.WithCancel(context.Background())
		held := make(chan error, 1)
		go func() { held <- c.BLPop(ctx, 0, "none").Err() }()
		t.Cleanup(func() { cancel(); c.Close(); <-held })
		await(t, "held", func() bool { s := c.PoolStats(); return s.TotalConns == 1 && s.IdleConns == 0 })
	}
	token := func(ctx context.Context) (string, string, error) { // of a service that is not there
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+nobody, nil)
		if err != nil {
			return "", "", err
		}
		_, err = http.DefaultClient.Do(req)
		return "", "", err
	}
	secure, trusted, own := withTLS(t)
	plain := needServer(t).addr
	one := func(timeout time.Duration) redis.Options {
		return redis.Options{Addr: plain, PoolSize: 1, PipelinePoolSize: -1, PoolTimeout: timeout, ReadTimeout: -1}
	}
	for name, x := range map[string]struct {
		options redis.Options
		set     func(*testing.T, *redis.Client)
		unsent  bool // it is certain
		code    string
		waits   bool // until the attempt's time is over
	}{
		"the pool is full":                 {options: one(time.Millisecond), set: hold, unsent: true, code: "redis_pool_timeout"},
		"the pool is full, and time is up": {options: one(time.Minute), set: hold, unsent: true, code: "redis_pool_timeout", waits: true},
		"the pool may not grow":            {options: redis.Options{Addr: plain, PoolSize: 2, MaxActiveConns: 1, PipelinePoolSize: -1, ReadTimeout: -1}, set: hold, unsent: true, code: "redis_pool_timeout"},
		"the client is closed":             {options: redis.Options{Addr: plain}, set: func(_ *testing.T, c *redis.Client) { c.Close() }},
		"no free file": {options: redis.Options{Addr: plain, Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}}, unsent: true, code: "local_resources"},
		"a limiter refuses": {options: redis.Options{Addr: plain, Limiter: refusing{}}},
		"a certificate that is not trusted": {
			options: redis.Options{Addr: secure, TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}},
		},
		"a certificate for another name": {
			options: redis.Options{Addr: secure, TLSConfig: &tls.Config{RootCAs: trusted, ServerName: "redis.test", Certificates: []tls.Certificate{own}}},
		},
		"no certificate of the client's": {options: redis.Options{Addr: secure, TLSConfig: &tls.Config{RootCAs: trusted, MaxVersion: tls.VersionTLS12}}}, // with 1.3 the server breaks the connection later, and why may be lost
		"an address that is none":        {options: redis.Options{Addr: "127.0.0.1:many"}, unsent: true},
		"no credentials": {options: redis.Options{Addr: plain, CredentialsProviderContext: func(context.Context) (string, string, error) {
			return "", "", errors.New("no credentials")
		}}},
		"no credentials, streaming": {options: redis.Options{Addr: plain, StreamingCredentialsProvider: subscribing{}}},
		"the service that issues tokens is down": {
			options: redis.Options{Addr: plain, CredentialsProviderContext: token}, unsent: true, code: "another_host",
		},
		"a failing callback": {options: redis.Options{Addr: plain, OnConnect: func(context.Context, *redis.Conn) error {
			return errors.New("the caller's mistake")
		}}},
		"a dialer that panics": {options: redis.Options{Addr: plain, Dialer: func(context.Context, string, string) (net.Conn, error) {
			panic("the caller's mistake")
		}}},
		"a hook that panics": {options: redis.Options{Addr: plain}, set: func(_ *testing.T, c *redis.Client) {
			c.AddHook(process(func(context.Context, redis.Cmder) error { panic("the caller's mistake") }))
		}},
	} {
		for how, do := range map[string]func(context.Context, *redis.Client) error{
			"read":  func(ctx context.Context, c *redis.Client) error { return c.Get(ctx, "k").Err() },
			"write": func(ctx context.Context, c *redis.Client) error { return c.Incr(ctx, "k").Err() },
			"pipeline": func(ctx context.Context, c *redis.Client) error {
				return second(c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "k"); p.Incr(ctx, "k"); return nil }))
			},
			"tx": func(ctx context.Context, c *redis.Client) error {
				return second(c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "k"); return nil }))
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				timeout, calls := 10*time.Second, 5
				if x.waits {
					timeout, calls = 200*time.Millisecond, 3
				}
				d, spared := sparing(t, timeout)
				c := under(t, d, x.options)
				if x.set != nil {
					x.set(t, c)
				}
				for range calls {
					err := func() (err error) {
						defer func() {
							if p := recover(); p != nil {
								err = fmt.Errorf("panic: %v", p)
							}
						}()
						return do(t.Context(), c)
					}()
					e, ok := errors.AsType[*lull.Error](err)
					if err == nil || ok && (e.Verdict.NeverSent != x.unsent || x.code != "" && e.Verdict.Code != x.code) {
						t.Error(err)
					}
				}
				spared(t)
			})
		}
	}
}

// sparing returns a dependency whose circuit opens at the second failure, and a function that fails the test if it
// has, or if something was taken from the budget.
func sparing(t *testing.T, timeout time.Duration) (d *lull.Dependency, spared func(t *testing.T)) {
	t.Helper()
	account := must.Have(budget.New(budget.Config{}))
	b := &untouched{Budget: account}
	policy := patient
	policy.AttemptTimeout, policy.Breaker = timeout, breaker.Config{Consecutive: 2}
	d = newDependency(t, policy, lull.WithBudget(func() budget.Budget { return b }))
	return d, func(t *testing.T) {
		t.Helper()
		if n := b.taken.Load(); n > 0 || d.Breaker().State(d.Now()) != breaker.Closed {
			t.Errorf("%d times something was taken from the budget; the circuit is %v", n, d.Breaker().State(d.Now()))
		}
	}
}

// The service that issues tokens hangs until the time is over. It is known whose that is if the dial before took less.
func TestTokensThatDoNotCome(t *testing.T) {
	t.Parallel()
	policy := patient
	policy.AttemptTimeout = 200 * time.Millisecond
	c := under(t, newDependency(t, policy), redis.Options{Addr: needServer(t).addr, CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
		<-ctx.Done()
		return "", "", ctx.Err()
	}})
	for how, do := range map[string]func() error{
		"command": func() error { return c.Incr(t.Context(), "k").Err() },
		"pipeline": func() error {
			return second(c.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Incr(t.Context(), "k"); return nil }))
		},
	} {
		await(t, how+" judged", func() bool {
			e, ok := errors.AsType[*lull.Error](do())
			return ok && e.Verdict.CallerSide() && e.Verdict.NeverSent
		})
	}
}

// The same of a pool of a client that has one for each of its servers.
func TestThePoolOfOneOfSeveralServersIsFull(t *testing.T) {
	t.Parallel()
	cluster, plain := oneNode(t), needServer(t)
	for wait, timeout := range map[string]time.Duration{"for a while": time.Millisecond, "until time is up": time.Minute} {
		for name, c := range map[string]redis.UniversalClient{
			"cluster": redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{cluster.addr}, PoolSize: 1, PipelinePoolSize: -1, PoolTimeout: timeout, ReadTimeout: -1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			}),
			"ring": redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"one": plain.addr}, HeartbeatFrequency: time.Hour,
				PoolSize: 1, PipelinePoolSize: -1, PoolTimeout: timeout, ReadTimeout: -1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			}),
		} {
			t.Run(name+" "+wait, func(t *testing.T) {
				t.Parallel()
				d, spared := sparing(t, 10*time.Second)
				must.Succeed(AddTo(c, d))
				must.Succeed(c.Set(t.Context(), "k", 1, 0).Err())
				p := d.Policy()
				p.AttemptTimeout = 200 * time.Millisecond
				must.Succeed(d.Update(p))
				held := make(chan error, 1)
				go func() { held <- c.BLPop(context.Background(), 0, "none").Err() }()
				await(t, "held", func() bool { s := c.PoolStats(); return s.TotalConns == 1 && s.IdleConns == 0 })
				for range 3 {
					err := c.Incr(t.Context(), "k").Err()
					if e, ok := errors.AsType[*lull.Error](err); !ok || !e.Verdict.NeverSent || e.Verdict.Code != "redis_pool_timeout" || !errors.Is(err, redis.ErrPoolTimeout) {
						t.Errorf("%v", err)
					}
					_, err = c.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Incr(t.Context(), "k"); return nil })
					if e, ok := errors.AsType[*lull.Error](err); !ok || !e.Verdict.CallerSide() {
						t.Errorf("a pipeline: %v", err)
					}
				}
				spared(t)
				c.Close()
				<-held
			})
		}
	}
}

// The answer goes to a writer of the caller's, which fails.
func TestAnAnswerThatNobodyTakes(t *testing.T) {
	t.Parallel()
	s, ctx := needServer(t), t.Context()
	must.Succeed(s.client(t).Set(ctx, "k", strings.Repeat("x", 1<<20), 0).Err())
	d, spared := sparing(t, 10*time.Second)
	c := under(t, d, redis.Options{Addr: s.addr})
	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	defer lis.Close()
	for range 5 {
		w := must.Have(net.Dial("tcp", lis.Addr().String()))
		peer := must.Have(lis.Accept())
		peer.(*net.TCPConn).SetLinger(0)
		peer.Close()
		err := c.DoRawWriteTo(ctx, w, "get", "k").Err()
		w.Close()
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || e.Verdict.NeverSent {
			t.Errorf("%v", err)
		}
	}
	spared(t)
}
