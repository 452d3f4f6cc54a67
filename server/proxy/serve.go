package proxy

import (
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
	d, ok := c.(*doorConn)
	if !ok {
		return
	}
	for _, count := range [...]struct {
		is  *bool
		now bool
		of  *atomic.Int64
	}{{&d.fresh, state == http.StateNew, &s.fresh}, {&d.busy, state == http.StateActive, &s.busy}} {
		switch {
		case *count.is == count.now:
		case count.now:
			count.of.Add(1)
		default:
			count.of.Add(-1)
		}
		*count.is = count.now
	}
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
func (p *Proxy) openDoors(doors map[string]*door) (err error) {
	opened := map[string]*server{}
	defer func() {
		if err != nil {
			for _, s := range opened {
				s.listener.Listener.Close()
			}
		}
	}()
	for name, d := range doors {
		files := tlsFiles{}
		if d.tls != nil {
			files = *d.tls
		}
		if s := p.servers[name]; s != nil && s.address == d.address {
			if s.limits != d.limits || s.tls != files {
				return fmt.Errorf("%s: limits and TLS files change with a restart only, which refuses no connection", name)
			}
			continue
		}
		s := &server{address: d.address, limits: d.limits, tls: files}
		l, err := p.wiring.Listen(d.address)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.listener = newDoorListener(l, d.limits.Connections)
		s.listener.refused = func(why string) {
			if p.wiring.Record != nil {
				p.wiring.Record(&Record{Time: time.Now(), Door: name, Status: http.StatusBadRequest, Own: true, Error: why})
			}
		}
		opened[name] = s
		s.http = p.newServer(name, d)
		s.http.ConnState = s.follow
		if d.tls != nil {
			if s.listener.tls, err = d.tls.config(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, s := range opened {
		if old := p.servers[name]; old != nil {
			go p.endLater(old) // its address has changed
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

// closeDoors ends the servers of doors that are gone. The lock is held.
func (p *Proxy) closeDoors(doors map[string]*door) {
	for name, s := range p.servers {
		if doors[name] == nil {
			delete(p.servers, name)
			go p.endLater(s)
		}
	}
}

// endLater ends a server whose door is gone.
func (p *Proxy) endLater(s *server) {
	ctx, cancel := context.WithTimeout(context.Background(), p.wiring.Drain)
	defer cancel()
	_ = s.end(ctx)
}

// newServer returns the server of a door, with limits on what a client can hold. It does not know of TLS, which stands
// below the guard: HTTP/2 is what begins with its preface.
func (p *Proxy) newServer(name string, d *door) *http.Server {
	s := &http.Server{
		Handler:           p.Handler(name),
		ReadHeaderTimeout: d.limits.HeaderTime,
		IdleTimeout:       d.limits.IdleTime,
		MaxHeaderBytes:    d.limits.HeaderBytes,
		ErrorLog:          quiet,
		Protocols:         new(http.Protocols),
		// The forward door's OPTIONS * is for the proxy itself.
		DisableGeneralOptionsHandler: true,
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	if d.tls != nil {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		}
	}
	return s
}

type connKey struct{}

// tlsOf returns what a connection of a door that speaks TLS has agreed on.
func tlsOf(ctx context.Context) *tls.ConnectionState {
	c, ok := ctx.Value(connKey{}).(*doorConn)
	if !ok {
		return nil
	}
	return c.state()
}

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
	var all sync.WaitGroup
	errs := make(chan error, len(servers))
	for name, s := range servers {
		all.Go(func() {
			if s.end(ctx) != nil {
				errs <- fmt.Errorf("%s: requests were cut off after %v", name, p.wiring.Drain)
			}
		})
	}
	all.Wait()
	p.tunnels.drain(ctx)
	p.updating.Lock()
	for _, base := range p.bases {
		base.CloseIdleConnections()
	}
	p.updating.Unlock()
	close(errs)
	var joined error
	for err := range errs {
		joined = errors.Join(joined, err)
	}
	return joined
}

// A doorListener bounds how many connections are open, and takes those that wait when it is closed.
type doorListener struct {
	net.Listener
	tls     *tls.Config      // nil: no TLS
	refused func(why string) // is called when the guard has refused a request
	slots   chan struct{}
	ending  chan struct{} // closed by Close
	ended   chan struct{} // closed when the last connection has been taken
	once    sync.Once
	last    []net.Conn // that waited when it was closed; of the goroutine that accepts
}

func newDoorListener(l net.Listener, most int) *doorListener {
	return &doorListener{Listener: l, slots: make(chan struct{}, most), ending: make(chan struct{}), ended: make(chan struct{})}
}

func (l *doorListener) closing() bool {
	select {
	case <-l.ending:
		return true
	default:
		return false
	}
}

func (l *doorListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ending: // the last connections may be more than the slots
	}
	c, err := l.accept()
	if err != nil {
		if l.closing() {
			err = net.ErrClosed
		} else {
			<-l.slots
		}
		return nil, err
	}
	d := &doorConn{Conn: c, report: l.refused, release: sync.OnceFunc(func() {
		select {
		case <-l.slots:
		default:
		}
	})}
	if l.tls != nil {
		secure := tls.Server(c, l.tls)
		d.Conn = secure
		d.state = sync.OnceValue(func() *tls.ConnectionState { s := secure.ConnectionState(); return &s })
	}
	return d, nil
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
	l.once.Do(func() {
		close(l.ending)
		if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
			l.Listener.Close()
		}
	})
	return nil
}

// A doorConn is a connection of a door.
type doorConn struct {
	net.Conn
	fresh   bool // of server.follow
	busy    bool
	release func()
	report  func(why string)
	state   func() *tls.ConnectionState // of TLS, when it has been agreed on
	guard   guard                       // of what is read
	midway  atomic.Bool                 // in the body of a request
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

func (c *doorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// tlsFiles are those of a door that speaks TLS.
type tlsFiles struct{ cert, key, clientCA string }

// config returns the configuration of TLS. The certificate is read again when its file has changed.
func (f *tlsFiles) config() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	if f.clientCA != "" {
		if c.ClientCAs, err = certificates(f.clientCA); err != nil {
			return nil, err
		}
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	latest := &reloaded{files: *f, pair: &pair, changed: changedAt(f.cert)}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return latest.get(), nil }
	return c, nil
}

// reloaded is a certificate that follows its file.
type reloaded struct {
	files   tlsFiles
	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time
}

func (r *reloaded) get() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := changedAt(r.files.cert); at != r.changed {
		if pair, err := tls.LoadX509KeyPair(r.files.cert, r.files.key); err == nil {
			r.pair, r.changed = &pair, at
		}
	}
	return r.pair
}

func changedAt(file string) time.Time {
	if info, err := os.Stat(file); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// withDefaults returns l with the defaults for zero fields.
func (l Limits) withDefaults() Limits {
	if l.HeaderBytes == 0 {
		l.HeaderBytes = defaultHeaderBytes
	}
	if l.HeaderTime == 0 {
		l.HeaderTime = defaultHeaderTime
	}
	if l.IdleTime == 0 {
		l.IdleTime = defaultIdleTime
	}
	if l.Connections == 0 {
		l.Connections = defaultConnections
	}
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
