package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// errTunnelled says that the response has been answered.
var errTunnelled = errors.New("tunnelled")

var errUpgrade = errors.New("the connection was not switched to another protocol")

// upgradeOf returns the protocol that a header asks to switch to, or "".
func upgradeOf(h http.Header) string {
	for one := range elements(h["Connection"]) {
		if strings.EqualFold(one, "upgrade") {
			return h.Get("Upgrade")
		}
	}
	return ""
}

// tunnel answers with a response that switches protocols, and passes bytes until both sides have ended. Unlike
// httputil.ReverseProxy it passes on what the client has sent before the response came (golang.org/issue/80875).
func (c *call) tunnel(resp *http.Response) error {
	asked, got := upgradeOf(resp.Request.Header), upgradeOf(resp.Header)
	if !strings.EqualFold(asked, got) {
		return fmt.Errorf("%w: the upstream switched to protocol %q when %q was asked for", errUpgrade, got, asked)
	}
	to, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return fmt.Errorf("%w: the upstream's connection cannot be written to", errUpgrade)
	}
	from, buffered, err := http.NewResponseController(c.writer.ResponseWriter).Hijack()
	if err != nil {
		return fmt.Errorf("%w: %w", errUpgrade, err)
	}
	defer from.Close()
	h := resp.Header
	removeHopByHop(h)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", got)
	head := http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if err := head.Write(from); err == nil {
		c.join(resp.StatusCode, from, buffered, to)
	}
	return errTunnelled
}

// join passes bytes between a client and what it is connected to, until both directions have ended or the proxy has. An end
// of one direction is passed on, and the other continues. early has what the client has sent with its request.
func (c *call) join(status int, from net.Conn, early *bufio.ReadWriter, to io.ReadWriteCloser) {
	c.Status = status
	if c.in != nil {
		c.in.Began()
	}
	_ = from.SetDeadline(time.Time{})
	defer c.door.proxy.tunnels.add(func() { from.Close(); to.Close() })()
	var both sync.WaitGroup
	both.Go(func() {
		// Not from the reader itself: net/http takes the end of that for the end of the request.
		first, _ := early.Peek(early.Reader.Buffered())
		c.BytesIn = pass(to, io.MultiReader(bytes.NewReader(first), from), from)
	})
	both.Go(func() { c.BytesOut = pass(from, to, to) })
	both.Wait()
}

// pass copies from one side to the other, and passes the end on.
func pass(to io.WriteCloser, in io.Reader, from io.Closer) int64 {
	n, err := io.Copy(to, in)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
	return n
}

// tunnels are the connections that http.Server does not know any more.
type tunnels struct {
	all sync.WaitGroup
	ctx context.Context // ends when the drain is over
	end context.CancelFunc
}

// add calls end when the drain is over, unless done has been called.
func (t *tunnels) add(end func()) (done func()) {
	t.all.Add(1)
	stop := context.AfterFunc(t.ctx, end)
	return func() {
		stop()
		t.all.Done()
	}
}

// drain waits for the tunnels until ctx ends, and ends those that are left. No request is in flight that may begin another.
func (t *tunnels) drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, t.end)
	defer stop()
	t.all.Wait()
}
