package proxy

import (
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

// errTunnelled is for httputil.ReverseProxy: the response has been answered.
var errTunnelled = errors.New("tunnelled")

// upgradeOf returns the protocol that a header asks to switch to, or "".
func upgradeOf(h http.Header) string {
	for _, line := range h["Connection"] {
		for one := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(one), "upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// tunnel answers with a response that switches protocols, and passes bytes until both sides have ended. Unlike
// httputil.ReverseProxy it passes on what the client has sent before the response came (golang.org/issue/80875).
func tunnel(resp *http.Response) error {
	c := callOf(resp.Request.Context())
	asked, got := upgradeOf(resp.Request.Header), upgradeOf(resp.Header)
	if !strings.EqualFold(asked, got) {
		return fmt.Errorf("the upstream switched to protocol %q when %q was asked for", got, asked)
	}
	to, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return errors.New("the upstream's connection cannot be written to")
	}
	from, buffered, err := http.NewResponseController(c.writer).Hijack()
	if err != nil {
		return err
	}
	defer from.Close()
	c.Status = resp.StatusCode
	h := resp.Header
	removeHopByHop(h)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", got)
	head := http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if err := head.Write(from); err == nil {
		c.door.proxy.join(resp.Request.Context(), from, buffered.Reader, to)
	}
	return errTunnelled
}

// join passes bytes between a client and what it is connected to, until both directions have ended or ctx has. An end of
// one direction is passed on, and the other continues.
func (p *Proxy) join(ctx context.Context, from net.Conn, buffered io.Reader, to io.ReadWriteCloser) {
	_ = from.SetDeadline(time.Time{})
	done := p.tunnels.add(func() { from.Close(); to.Close() })
	defer done()
	stop := context.AfterFunc(ctx, func() { from.Close(); to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pass(to, buffered) })
	both.Go(func() { pass(from, to) })
	both.Wait()
}

// pass copies from one side to the other, and passes the end on.
func pass(to io.WriteCloser, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		if c, ok := from.(io.Closer); ok {
			c.Close()
		}
	}
}

// tunnels are the connections that http.Server does not know any more.
type tunnels struct {
	mu   sync.Mutex
	open map[*func()]struct{}
	all  sync.WaitGroup
}

// add returns what is to be called at the end.
func (t *tunnels) add(end func()) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*func()]struct{}{}
	}
	t.open[&end] = struct{}{}
	t.all.Add(1)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, &end)
		t.all.Done()
	}
}

// drain waits for the tunnels until ctx ends, and ends those that are left.
func (t *tunnels) drain(ctx context.Context) {
	ended := make(chan struct{})
	go func() { t.all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		t.mu.Lock()
		for end := range t.open {
			(*end)()
		}
		t.mu.Unlock()
		<-ended
	}
}
