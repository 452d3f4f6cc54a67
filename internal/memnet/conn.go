package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is one end of a connection. It has the methods of net.TCPConn that tests need.
type Conn struct {
	in, out       *stream
	local, remote addr

	mu           sync.Mutex
	resetOnClose bool // Close resets it: SetLinger(0)
}

// Pipe returns both ends of a connection.
func Pipe(a, b net.Addr) (*Conn, *Conn) {
	x, y := newStream(), newStream()
	la, lb := addr(a.String()), addr(b.String())
	return &Conn{in: x, out: y, local: la, remote: lb}, &Conn{in: y, out: x, local: lb, remote: la}
}

// Read reads what the other end has written: io.EOF when that has closed, ECONNRESET when it was reset.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

// Write writes p. It waits while the buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// Close closes both directions. If the other end has sent what was not read, it is reset, as over TCP.
func (c *Conn) Close() error {
	c.mu.Lock()
	abrupt := c.resetOnClose
	c.mu.Unlock()
	if abrupt {
		c.reset()
		return nil
	}
	unread, again := c.in.closeRead()
	if again {
		return c.opError("close", net.ErrClosed)
	}
	if unread {
		c.out.fail(new(atomic.Bool))
	}
	c.out.closeWrite()
	return nil
}

// CloseWrite ends what is sent; what the other end sends can still be read.
func (c *Conn) CloseWrite() error {
	c.out.closeWrite()
	return nil
}

// SetLinger with zero lets Close reset the connection. Other values change nothing.
func (c *Conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetOnClose = sec == 0
	return nil
}

// reset breaks the connection in both directions.
func (c *Conn) reset() {
	c.in.closeRead()
	once := new(atomic.Bool)
	c.in.fail(once)
	c.out.fail(once)
	c.out.closeWrite()
}

func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

func (c *Conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.reader.set(&c.in.mu, c.in.changed, t)
	return nil
}

func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.writer.set(&c.out.mu, c.out.changed, t)
	return nil
}

func (c *Conn) opError(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// streamBytes is how much is buffered in each direction.
const streamBytes = 64 << 10

// A stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	buffer  []byte
	ended   bool // the writer has closed
	gone    bool // the reader has closed
	// failed is set when the connection was reset. The first call that meets it gets ECONNRESET and sets it to true; later
	// ones read the end, or write into a broken pipe, as on Linux.
	failed *atomic.Bool
	reader deadline
	writer deadline
}

func newStream() *stream {
	s := new(stream)
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case s.reader.passed:
			return 0, os.ErrDeadlineExceeded
		case len(s.buffer) > 0 && len(p) > 0:
			n := copy(p, s.buffer)
			s.buffer = append(s.buffer[:0], s.buffer[n:]...)
			s.changed.Broadcast()
			return n, nil
		case s.failed != nil && s.failed.CompareAndSwap(false, true):
			return 0, syscall.ECONNRESET
		case s.failed != nil:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.failed != nil && s.failed.CompareAndSwap(false, true):
			return written, syscall.ECONNRESET
		case s.failed != nil:
			return written, syscall.EPIPE
		case s.ended:
			return written, net.ErrClosed
		case s.gone:
			return written, syscall.EPIPE
		case s.writer.passed:
			return written, os.ErrDeadlineExceeded
		}
		n := min(len(p), streamBytes-len(s.buffer))
		if n > 0 {
			s.buffer = append(s.buffer, p[:n]...)
			p, written = p[n:], written+n
			s.changed.Broadcast()
		}
		if len(p) == 0 {
			return written, nil
		}
		s.changed.Wait()
	}
}

// closeRead reports whether there was anything that nobody has read, and whether it was closed before.
func (s *stream) closeRead() (unread, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unread, again = len(s.buffer) > 0, s.gone
	s.gone, s.buffer = true, nil
	s.reader.stop()
	s.changed.Broadcast()
	return unread, again
}

func (s *stream) closeWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.writer.stop()
	s.changed.Broadcast()
}

func (s *stream) fail(once *atomic.Bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = once
	}
	s.changed.Broadcast()
}

// A deadline is that of one side of a stream, guarded by the stream's mutex.
type deadline struct {
	timer      *time.Timer
	generation int // counts, so that an old timer changes nothing
	passed     bool
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.generation++
}

func (d *deadline) set(mu *sync.Mutex, changed *sync.Cond, t time.Time) {
	mu.Lock()
	defer mu.Unlock()
	d.stop()
	d.passed = false
	if !t.IsZero() {
		if left := time.Until(t); left <= 0 {
			d.passed = true
		} else {
			mine := d.generation
			d.timer = time.AfterFunc(left, func() {
				mu.Lock()
				defer mu.Unlock()
				if d.generation == mine {
					d.passed = true
					changed.Broadcast()
				}
			})
		}
	}
	changed.Broadcast()
}
