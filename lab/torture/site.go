package torture

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A site is the server of one case: it listens at an address of its own, does what the case
// says, and records what it sees.
type site struct {
	c        Case
	log      *log
	run      string // a part of its addresses; others are not answered. Empty: any
	base     string // scheme and authority
	listener net.Listener
	held     net.Conn // it holds the port at which nobody listens
	server   *http.Server
	ended    chan struct{} // closed when the case ends
	round    roundBarrier
	// callLayer makes a call to a deeper layer with the client that is being graded, and reports
	// whether it succeeded.
	callLayer func(call, depth int) bool
}

func openSite(c Case, a *authority, l *log) (*site, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{c: c, log: l, ended: make(chan struct{}), listener: listener}
	address := listener.Addr().String()
	if c.door == doorClosed {
		// Nobody listens at the near end of a connection, and nobody else can be given its port.
		held, err := net.Dial("tcp", address)
		if err != nil {
			listener.Close()
			return nil, err
		}
		s.base, s.held = "http://"+held.LocalAddr().String(), held
		return s, nil
	}
	gate := &gate{Listener: listener, c: c, log: l}
	s.server = newServer(s)
	if c.door == doorPlain {
		s.base = "http://" + address
		go s.server.Serve(gate)
		return s, nil
	}
	s.base = "https://" + address
	config := &tls.Config{Certificates: []tls.Certificate{a.leaf(c.door)}, NextProtos: []string{"h2", "http/1.1"}}
	if c.door == doorFrames {
		go s.server.Serve(framedGate{gate, s, config})
		return s, nil
	}
	s.server.TLSConfig = config
	s.server.Protocols.SetHTTP2(true)
	s.server.ConnState = func(conn net.Conn, state http.ConnState) {
		if t, ok := conn.(*tls.Conn); ok && state == http.StateActive && t.ConnectionState().HandshakeComplete {
			s.noteHandshake(conn)
		}
	}
	go s.server.ServeTLS(gate, "", "")
	return s, nil
}

// newServer returns one of HTTP/1.1 and, with prior knowledge, HTTP/2.
func newServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:     h,
		ErrorLog:    stdlog.New(io.Discard, "", 0), // what clients do wrong is in the time line
		ConnContext: withConnection,
		Protocols:   new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

func (s *site) noteHandshake(conn net.Conn) {
	if n, ok := withoutTLS(conn).(*countedConn); ok && n.greeted.CompareAndSwap(false, true) {
		s.log.note(0, "TLS is agreed on connection %d", n.number)
	}
}

func (s *site) url(call, depth int) string {
	url := fmt.Sprintf("%s/t/%s/%s/%d", s.base, s.c.Name, s.run, call)
	if depth > 0 {
		url += "/" + strconv.Itoa(depth)
	}
	return url
}

// close ends the case: what hangs is let go.
func (s *site) close() {
	close(s.ended)
	if s.server != nil {
		s.server.Close()
	}
	if s.held != nil {
		s.held.Close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
}

// A gate accepts connections, counts them, and turns those away that the case says.
type gate struct {
	net.Listener
	c   Case
	log *log
}

type countedConn struct {
	*net.TCPConn
	number  int
	greeted atomic.Bool
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if passing, ok := err.(interface{ Temporary() bool }); ok && passing.Temporary() {
			time.Sleep(5 * time.Millisecond) // there are too many files just now: the next one may end
			continue
		}
		if err != nil {
			return nil, err
		}
		g.log.mu.Lock()
		g.log.firstContact()
		g.log.accepted++
		c := &countedConn{TCPConn: conn.(*net.TCPConn), number: g.log.accepted}
		fate := arriveGood
		if c.number <= len(g.c.doors) {
			fate = g.c.doors[c.number-1]
		}
		g.log.noteLocked(0, "connection %d %s", c.number, fate)
		g.log.mu.Unlock()
		switch fate {
		case arriveReset:
			reset(c)
		case arriveClose:
			c.Close()
		case arriveHello:
			go func() {
				c.SetReadDeadline(time.Now().Add(5 * time.Second))
				c.Read(make([]byte, 1))
				reset(c)
			}()
		default:
			return c, nil
		}
	}
}

// reset ends a connection with RST instead of FIN.
func reset(conn net.Conn) {
	conn = withoutTLS(conn)
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		c.SetLinger(0)
	}
	conn.Close()
}

type connKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, withoutTLS(conn))
}

func withoutTLS(conn net.Conn) net.Conn {
	switch c := conn.(type) {
	case *framedConn:
		return c.tls.NetConn()
	case *tls.Conn:
		return c.NetConn()
	}
	return conn
}

// ServeHTTP answers an attempt as the case says.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.run != "" && !strings.HasPrefix(r.URL.Path, "/t/"+s.c.Name+"/"+s.run+"/") {
		// A client of another case, which had this port before, is no part of this one.
		http.NotFound(w, r)
		return
	}
	call, depth := callAndLayer(r.URL.Path)
	conn, _ := r.Context().Value(connKey{}).(*countedConn)
	a := Attempt{Call: call, Method: r.Method, Proto: r.Proto, Header: r.Header.Clone()}
	if conn != nil {
		a.Conn = conn.number
	}
	if depth < s.c.plan.layers {
		s.serveLayer(w, r, call, depth)
		return
	}
	index, number, reused := s.log.arrive(a)
	if r.ProtoMajor == 2 {
		s.log.update(index, func(*Attempt) { s.log.proto2 = true })
	}
	ans := s.answer(call, number)
	if s.c.door == doorFrames && r.ProtoMajor != 2 {
		s.log.note(call, "it speaks %s; the case is about HTTP/2", r.Proto)
		ans = good
	}
	if ans.rest && r.Header.Get("Range") == "" {
		ans = good
	}
	switch ans.fault {
	case faultEarly:
	case faultMidBody:
		s.readBody(io.LimitReader(r.Body, int64(s.c.body/2)), index, false)
	default:
		s.readBody(r.Body, index, true)
	}
	if ans.gather > 0 {
		s.waitForRound(r.Context(), ans.gather)
	}
	if (ans.fault == faultSilent || ans.delay > 0) && s.holdBack(r.Context(), ans, index, call, number) {
		return
	}
	var until time.Duration
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	for _, line := range ans.header {
		name, value, _ := strings.Cut(line, ": ")
		value, at := withDates(value, time.Now())
		if !at.IsZero() {
			until = at.Sub(s.log.began) // at has no monotonic reading: neither may be stepped meanwhile
		}
		header.Add(name, value)
	}
	s.log.update(index, func(a *Attempt) {
		a.Answered, a.Status = s.log.now(), ans.status
		a.Good = ans.status/100 == 2 && (ans.fault == nil || ans.fault == faultHints || ans.fault == faultIdle && !reused)
		switch {
		case until != 0:
			a.NotBefore = until
		case ans.wait > 0:
			a.NotBefore = a.Answered + ans.wait
		}
		s.log.noteLocked(call, "attempt %d is answered: %s", number, ans.describe(header))
	})
	s.write(w, header, ans, reused)
}

// describe returns what an answer is, for the time line.
func (a answer) describe(header http.Header) string {
	var b strings.Builder
	switch a.fault {
	case nil, faultIdle, faultHints, faultTrickle:
		fmt.Fprintf(&b, "%d", a.status)
	case faultEarly:
		fmt.Fprintf(&b, "%d, before its body was read", a.status)
	default:
		fmt.Fprintf(&b, "with a fault (%s)", a.fault.name)
	}
	for _, line := range a.header {
		name, _, _ := strings.Cut(line, ": ")
		fmt.Fprintf(&b, ", %s: %s", name, strings.Join(header.Values(name), " and "))
	}
	return b.String()
}

// holdBack holds an answer back. It reports whether the client, or the case, is gone.
func (s *site) holdBack(ctx context.Context, ans answer, index, call, number int) bool {
	var due <-chan time.Time
	if ans.fault != faultSilent {
		timer := time.NewTimer(ans.delay)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return false
	case <-s.ended:
		panic(http.ErrAbortHandler)
	case <-ctx.Done():
	}
	s.log.update(index, func(a *Attempt) {
		a.Gone = s.log.now()
		s.log.noteLocked(call, "the client leaves attempt %d before it is answered", number)
	})
	return true
}

// A roundBarrier is where answers wait until all of a round have come.
type roundBarrier struct {
	mu       sync.Mutex
	arrived  int
	complete chan struct{}
}

// longestRound is how long a round waits for those that do not come.
const longestRound = 5 * time.Second

func (s *site) waitForRound(ctx context.Context, size int) {
	m := &s.round
	m.mu.Lock()
	if m.complete == nil {
		m.complete = make(chan struct{})
	}
	all := m.complete
	m.arrived++
	if m.arrived == size {
		close(all)
		m.arrived, m.complete = 0, nil
	}
	m.mu.Unlock()
	timer := time.NewTimer(longestRound)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	case <-s.ended:
	case <-ctx.Done():
	}
}

func (s *site) readBody(body io.Reader, index int, whole bool) {
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	s.log.update(index, func(a *Attempt) {
		a.Length, a.Sum, a.Whole = n, hex.EncodeToString(sum.Sum(nil)), whole && err == nil
	})
}

func (s *site) answer(call, number int) answer {
	ans := s.c.script[min(number, len(s.c.script))-1]
	switch now := s.log.now(); {
	case ans.until > 0 && (now < ans.from || now >= ans.until),
		ans.only > 0 && call != ans.only-1,
		ans.share > 0 && fixedDraw(call, number) >= ans.share:
		return answer{status: 200, delay: s.c.usualDelay}
	}
	return ans
}

// fixedDraw returns a number from 0 to 1 that is always the same for an attempt.
func fixedDraw(call, number int) float64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d/%d", call, number)
	return float64(h.Sum32()%1000) / 1000
}

// write writes an answer with its fault, on a connection that may have carried another.
func (s *site) write(w http.ResponseWriter, header http.Header, ans answer, reused bool) {
	body := "{}\n"
	if ans.body > 0 {
		body = strings.Repeat("x", ans.body)
	}
	if ans.fault == nil || ans.fault == faultHints || ans.fault == faultTrickle || ans.fault == faultIdle && !reused {
		if ans.fault == faultHints {
			writeHints(w)
		}
		maps.Copy(w.Header(), header)
		if ans.fault == faultTrickle {
			s.trickle(w)
			return
		}
		w.WriteHeader(ans.status)
		io.WriteString(w, body)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 cannot: the stream is reset
	}
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if ans.fault == faultEarly {
		writeEarly(conn, ans.status, header, body)
		return
	}
	if ans.fault.part != "" {
		io.WriteString(conn, ans.fault.part)
		if ans.fault.reset {
			pause()
		}
	}
	if ans.fault.reset {
		reset(conn)
		return
	}
	conn.Close()
}

// pause lets bytes be read before a reset discards them.
func pause() { time.Sleep(20 * time.Millisecond) }

// serveLayer answers as a service between the caller and the last one: it makes a call with the
// client that is graded, and fails if that fails.
func (s *site) serveLayer(w http.ResponseWriter, r *http.Request, call, depth int) {
	s.log.note(call, "a request arrives at layer %d", depth+1)
	io.Copy(io.Discard, r.Body)
	if !s.callLayer(call, depth+1) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	io.WriteString(w, "{}\n")
}

// callAndLayer returns the number of the call and the layer in a path. A missing number is 0.
func callAndLayer(path string) (call, depth int) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, to := range []*int{3: &call, 4: &depth} {
		if to == nil || i >= len(parts) {
			continue
		}
		if n, err := strconv.Atoi(parts[i]); err == nil && n >= 0 && n <= 1<<20 {
			*to = n
		}
	}
	return call, depth
}

var datePlaceholder = regexp.MustCompile(`\{(imf|rfc850|asctime|epoch)([+-]\d{1,9})\}`)

// withDates replaces {imf+3} in the value of a header by a date in three seconds, likewise
// {rfc850+3}, {asctime+3} and {epoch+3}. It returns the time that the value now names, and
// the zero time if it names none.
func withDates(value string, now time.Time) (string, time.Time) {
	m := datePlaceholder.FindStringSubmatch(value)
	if m == nil {
		return value, time.Time{}
	}
	seconds, _ := strconv.Atoi(m[2])
	at := now.Truncate(time.Second).Add(time.Duration(seconds) * time.Second).UTC().Round(0)
	text := strconv.FormatInt(at.Unix(), 10)
	if layout := map[string]string{"imf": http.TimeFormat, "rfc850": "Monday, 02-Jan-06 15:04:05 GMT", "asctime": time.ANSIC}[m[1]]; layout != "" {
		text = at.Format(layout)
	}
	if seconds < 0 {
		at = time.Time{} // a date that is past asks for nothing
	}
	return strings.Replace(value, m[0], text, 1), at
}
