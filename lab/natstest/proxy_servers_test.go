//go:build servers

package natstest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy is between a client and the server. It cuts a connection off when the client sends a word,
// before or after the server has received it.
type proxy struct {
	l     net.Listener
	to    string
	word  []byte
	heard bool

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t testing.TB, url, word string, heard bool) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{l: l, to: strings.TrimPrefix(url, "nats://"), word: []byte(word), heard: heard}
	t.Cleanup(p.close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", p.to)
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, s)
			p.mu.Unlock()
			go p.pass(c, s, p.word, func() { c.Close() })
			go p.pass(s, c, nil, nil)
		}
	}()
	return p
}

// over is b over a connection of its own, through p.
func (b *bench) over(p *proxy) *bench {
	b.Helper()
	nc, js, err := dial(p.url())
	b.ok(err)
	b.Cleanup(nc.Close)
	o := &bench{TB: b.TB, r: b.r, js: js, c: b.c}
	o.open()
	return o
}

func (p *proxy) url() string { return fmt.Sprint("nats://", p.l.Addr()) }

func (p *proxy) pass(from, to net.Conn, word []byte, cut func()) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		said := word != nil && bytes.Contains(buf[:n], word)
		if said {
			if cut(); !p.heard {
				return
			}
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		if said {
			to.(*net.TCPConn).CloseWrite() // it reads to the end
			io.Copy(io.Discard, to)
			return
		}
	}
}

func (p *proxy) close() {
	p.l.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}
