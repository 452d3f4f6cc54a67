package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A server serves one door.
type server struct {
	address  string
	limits   Limits
	tls      tlsFiles
	listener *doorListener
	http     *http.Server
	fresh    atomic.Int64 // connections without a request so far
	busy     atomic.Int64 // connections with a request
}

// follow counts the connections.
func (s *server) follow(c net.Conn, state http.ConnState) {
	if d, ok := c.(*doorConn); ok {
		count(&s.fresh, &d.fresh, state == http.StateNew)
		count(&s.busy, &d.busy, state == http.StateActive)
	}
}

// count adds what has become true, and takes away what has become false.
func count(n *atomic.Int64, is *bool, now bool) {
	if now && !*is {
		n.Add(1)
	} else if *is && !now {
		n.Add(-1)
	}
	*is = now
}

// end ends the server when its requests have ended, or ctx has: then it returns an error. http.Server.Shutdown drops a request that
// arrives while it begins, so it comes last.
func (s *server) end(ctx context.Context) error {
	s.listener.Close()
	select {
	case <-s.listener.ended:
	case <-ctx.Done():
	}
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for since, quiet := time.Now(), 0; quiet < 3 && ctx.Err() == nil; quiet++ {
		<-ticks.C
		if s.busy.Load() > 0 || s.fresh.Load() > 0 && time.Since(since) < firstRequest {
			quiet = 0
		}
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return err
}

// firstRequest is for how long the first request of a connection is waited for, when its listener has been closed.
const firstRequest = time.Second

// listen is the default of Wiring.Listen. "unix:/path" is a Unix socket.
func listen(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", address)
}

// Listen opens the addresses of all doors. Serve does so, too, if it has not been called.
func (p *Proxy) Listen() error {
	p.updating.Lock()
	defer p.updating.Unlock()
	if p.serving {
		return nil
	}
	if err := p.openDoors(*p.doors.Load()); err != nil {
		return err
	}
	p.serving = true
	return nil
}

// Address returns the address at which a door listens, or nil.
func (p *Proxy) Address(door string) net.Addr {
	p.updating.Lock()
	defer p.updating.Unlock()
	if s := p.servers[door]; s != nil {
		return s.listener.Addr()
	}
	return nil
}

// Serve takes requests until ctx ends or a listener fails. Then it drains: requests in flight end, for at most
// Wiring.Drain, and what is left is cut off. Doors stay open for the first part of that time, since clients still know them;
// they close each connection after its next response. Serve returns nil if everything has ended in time.
func (p *Proxy) Serve(ctx context.Context) error {
	if err := p.Listen(); err != nil {
		return err
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-p.failed:
	}
	return errors.Join(failed, p.drain())
}

// openDoors opens what is not open yet. The lock is held.
func (p *Proxy) openDoors(doors map[string]*door) error {
	opened := map[string]*server{}
	for name, d := range doors {
		s := p.servers[name]
		if s != nil && s.address == d.address && s.limits == d.limits && s.tls == d.tls {
			continue
		}
		var err error
		if s != nil && s.address == d.address {
			err = errors.New("limits and TLS files change with a restart only, which refuses no connection")
		} else {
			opened[name], err = p.newServer(d)
		}
		if err != nil {
			for _, s := range opened {
				if s != nil {
					s.listener.Listener.Close()
				}
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, s := range opened {
		if old := p.servers[name]; old != nil {
			go p.endLater(old)
		}
		p.servers[name] = s
		go func() {
			if err := s.http.Serve(s.listener); !s.listener.closing() {
				select {
				case p.failed <- fmt.Errorf("%s: %w", name, err):
				default:
				}
			}
		}()
	}
	return nil
}

// endLater ends a server whose door is gone, or has another address.
func (p *Proxy) endLater(s *server) {
	ctx, cancel := context.WithTimeout(context.Background(), p.wiring.Drain)
	defer cancel()
	_ = s.end(ctx)
}

// newServer opens the address of a door, and returns the server for it, with limits on what a client can hold. It does not know
// of TLS, which stands below the guard: HTTP/2 is what begins with its preface.
func (p *Proxy) newServer(d *door) (*server, error) {
	secure, err := d.tls.config(p.wiring.Warn)
	if err != nil {
		return nil, err
	}
	l, err := p.wiring.Listen(d.address)
	if err != nil {
		return nil, err
	}
	s := &server{address: d.address, limits: d.limits, tls: d.tls}
	s.listener = &doorListener{Listener: l, tls: secure, slots: make(chan struct{}, d.limits.Connections), ended: make(chan struct{})}
	s.listener.open, s.listener.close = context.WithCancel(context.Background())
	s.listener.refused = func(why string) {
		if p.wiring.Record != nil {
			p.wiring.Record(&Record{Time: time.Now(), Door: d.name, Status: http.StatusBadRequest, Own: true, Error: why})
		}
	}
	s.http = &http.Server{
		Handler:           p.Handler(d.name),
		ReadHeaderTimeout: d.limits.HeaderTime,
		IdleTimeout:       d.limits.IdleTime,
		MaxHeaderBytes:    d.limits.HeaderBytes,
		ErrorLog:          quiet,
		Protocols:         new(http.Protocols),
		ConnState:         s.follow,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		// The forward door's OPTIONS * is for the proxy itself.
		DisableGeneralOptionsHandler: true,
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	return s, nil
}

type connKey struct{}

// lingering is for how long a draining door takes connections: a part of the drain, and at most this.
const lingering = 2 * time.Second

func (p *Proxy) drain() error {
	p.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), p.wiring.Drain)
	defer cancel()
	p.updating.Lock()
	servers := p.servers
	p.servers = map[string]*server{}
	p.serving = false
	p.updating.Unlock()
	select {
	case <-time.After(min(p.wiring.Drain/4, lingering)):
	case <-ctx.Done():
	}
	ends := make(chan error)
	for name, s := range servers {
		go func() {
			err := s.end(ctx)
			if err != nil {
				err = fmt.Errorf("%s: requests were cut off after %v", name, p.wiring.Drain)
			}
			ends <- err
		}()
	}
	var err error
	for range servers {
		err = errors.Join(err, <-ends)
	}
	p.tunnels.drain(ctx)
	p.updating.Lock()
	defer p.updating.Unlock()
	for _, base := range p.bases {
		base.CloseIdleConnections()
	}
	return err
}

// A doorListener bounds how many connections are open, and takes those that wait when it is closed.
type doorListener struct {
	net.Listener
	tls     *tls.Config      // nil: no TLS
	refused func(why string) // is called when the guard has refused a request
	slots   chan struct{}
	open    context.Context // until Close
	close   context.CancelFunc
	ended   chan struct{} // closed when the last connection has been taken
	last    []net.Conn    // that waited when it was closed; of the goroutine that accepts
}

func (l *doorListener) closing() bool { return l.open.Err() != nil }

func (l *doorListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.open.Done(): // the last connections may be more than the slots
	}
	c, err := l.accept()
	if err != nil {
		if !l.closing() {
			<-l.slots
		}
		return nil, err
	}
	if l.tls != nil {
		c = tls.Server(c, l.tls)
	}
	return &doorConn{Conn: c, report: l.refused, release: sync.OnceFunc(func() {
		select {
		case <-l.slots:
		default:
		}
	})}, nil
}

func (l *doorListener) accept() (net.Conn, error) {
	if !l.closing() {
		if c, err := l.Listener.Accept(); err == nil || !l.closing() {
			return c, err
		}
	}
	select {
	case <-l.ended:
	default:
		l.last = takeLast(l.Listener)
		l.Listener.Close()
		close(l.ended)
	}
	if len(l.last) == 0 {
		return nil, net.ErrClosed
	}
	c := l.last[0]
	l.last = l.last[1:]
	return c, nil
}

// Close ends the listener when it has taken the connections that wait.
func (l *doorListener) Close() error {
	l.close()
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
		l.Listener.Close()
	}
	return nil
}

// A doorConn is a connection of a door.
type doorConn struct {
	net.Conn
	fresh   bool // of server.follow
	busy    bool
	release func()
	report  func(why string)
	guard   guard       // of what is read
	midway  atomic.Bool // in the body of a request
	refused bool
	poison  string // what is left of it
}

// Close closes the connection. In the middle of a request it first lets the client read the answer to that: a connection
// that is closed with unread bytes is reset, and the answer may be lost.
func (c *doorConn) Close() error {
	if c.midway.Swap(false) && c.CloseWrite() == nil {
		go func() {
			defer c.release()
			_ = c.Conn.SetReadDeadline(time.Now().Add(lastWords))
			_, _ = io.Copy(io.Discard, c.Conn)
			c.Conn.Close()
		}()
		return nil
	}
	defer c.release()
	return c.Conn.Close()
}

// tls returns what a connection has agreed on; nil without TLS.
func (c *doorConn) tls() *tls.ConnectionState {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	return &state
}

func (c *doorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// tlsFiles are those of a door that speaks TLS.
type tlsFiles struct{ cert, key, clientCA string }

// config returns the configuration of TLS; nil without files. The certificate is read again when its files have changed; warn
// learns of those that are wrong.
func (f tlsFiles) config(warn func(error)) (*tls.Config, error) {
	if f == (tlsFiles{}) {
		return nil, nil
	}
	latest := &certificate{files: f, warn: warn}
	if _, err := latest.get(nil); err != nil {
		return nil, err
	}
	c := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12, GetCertificate: latest.get}
	if f.clientCA != "" {
		var err error
		c.ClientCAs, err = certificates(f.clientCA)
		c.ClientAuth = tls.VerifyClientCertIfGiven
		return c, err
	}
	return c, nil
}

// A certificate follows its files.
type certificate struct {
	files tlsFiles
	warn  func(error)
	mu    sync.Mutex
	pair  *tls.Certificate // the latest that was good
	read  [2]time.Time     // when the files had changed that were read last
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := [2]time.Time{changedAt(c.files.cert), changedAt(c.files.key)}
	if c.pair != nil && changed == c.read {
		return c.pair, nil
	}
	c.read = changed
	pair, err := tls.LoadX509KeyPair(c.files.cert, c.files.key)
	switch {
	case err == nil:
		c.pair = &pair
	case c.pair == nil:
		return nil, err
	case c.warn != nil:
		c.warn(fmt.Errorf("the certificate stays as it was: %w", err))
	}
	return c.pair, nil
}

// changedAt returns when a file has changed, or the zero time if nobody knows.
func changedAt(file string) (t time.Time) {
	if info, err := os.Stat(file); err == nil {
		t = info.ModTime()
	}
	return t
}

// withDefaults returns l with the defaults for zero fields.
func (l Limits) withDefaults() Limits {
	l.HeaderBytes = cmp.Or(l.HeaderBytes, defaultHeaderBytes)
	l.HeaderTime = cmp.Or(l.HeaderTime, defaultHeaderTime)
	l.IdleTime = cmp.Or(l.IdleTime, defaultIdleTime)
	l.Connections = cmp.Or(l.Connections, defaultConnections)
	return l
}

// privateAddresses reads addresses such as that of an admin listener.
func privateAddresses(addresses []string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range addresses {
		if at, err := net.ResolveTCPAddr("tcp", a); err == nil && !strings.HasPrefix(a, "unix:") {
			all = append(all, at.AddrPort())
		}
	}
	return all
}
