//go:build servers

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/server/proxy"
)

const (
	upgrade  = "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
	switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
)

// ways are the tunnels: an upgrade through an upstream and through an ingress door, and CONNECT. open returns a
// connection to the server; early was sent with the request.
var ways = map[string]func(t *testing.T, server func(*wire)) (r *running, open func(early string) *wire){
	"upstream": func(t *testing.T, server func(*wire)) (*running, func(string) *wire) {
		r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, afterUpgrade(t, server))}})
		return r, func(early string) *wire { return upgraded(t, r.dial("service", upgrade+"\r\n"+early)) }
	},
	"ingress": func(t *testing.T, server func(*wire)) (*running, func(string) *wire) {
		r := run(t, proxy.Config{Ingress: proxy.Ingress{Listen: "127.0.0.1:0", To: "http://" + raw(t, afterUpgrade(t, server)), MaxTimeout: pace.Stretch(2 * time.Second)}})
		return r, func(early string) *wire { return upgraded(t, r.dial(proxy.IngressDoor, upgrade+"\r\n"+early)) }
	},
	"connect": func(t *testing.T, server func(*wire)) (*running, func(string) *wire) {
		to := raw(t, server)
		r := run(t, proxy.Config{Forward: proxy.Forward{Listen: "127.0.0.1:0", Hosts: []string{to}}})
		return r, func(early string) *wire {
			w := r.dial(proxy.ForwardDoor, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n"+early)
			check.Equal(t, w.head()[0], "HTTP/1.1 200 Connection established", "answer to CONNECT")
			return w
		}
	},
}

func afterUpgrade(t *testing.T, server func(*wire)) func(*wire) {
	return func(w *wire) {
		head := strings.Join(w.head(), "\n")
		for _, want := range []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-Websocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version: 13"} {
			if !strings.Contains(head, want) {
				t.Errorf("no %q in %q", want, head)
			}
		}
		w.send(switched + "\r\n")
		server(w)
	}
}

func upgraded(t *testing.T, w *wire) *wire {
	t.Helper()
	head := w.head()
	check.Equal(t, head[0], "HTTP/1.1 101 Switching Protocols", "status line")
	for _, want := range []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="} {
		if !strings.Contains(strings.Join(head, "\n"), want) {
			t.Errorf("no %q in %q", want, head)
		}
	}
	return w
}

func everyWay(t *testing.T, server func(*wire), test func(t *testing.T, r *running, open func(string) *wire)) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			r, open := way(t, server)
			test(t, r, open)
		})
	}
}

// What the client sends with its request, before the answer, reaches the server.
func TestTunnelPassesEarlyData(t *testing.T) {
	everyWay(t, func(w *wire) {
		w.send("welcome")
		w.expect("early")
		w.expect("later")
		w.send("bye")
	}, func(t *testing.T, r *running, open func(string) *wire) {
		w := open("early")
		w.expect("welcome")
		w.send("later")
		w.expect("bye")
		if rest, err := io.ReadAll(w); len(rest) > 0 || err != nil {
			t.Errorf("at the end: %q, %v", rest, err)
		}
		w.Conn.Close()
		one := r.record()
		check.Equal(t, one.BytesIn, 10, "BytesIn")
		check.Equal(t, one.BytesOut, 10, "BytesOut")
		check.Equal(t, one.Own, false, "Own")
		check.Equal(t, len(one.Attempts), map[bool]int{true: 1}[one.Door != proxy.IngressDoor], "attempts of the record")
		r.noMore()
	})
}

// The end of one direction reaches the other side, and the other direction continues.
func TestTunnelHalfClose(t *testing.T) {
	everyWay(t, func(w *wire) {
		if got := string(must.Have(io.ReadAll(w))); got != "question" {
			t.Errorf("the server read %q", got)
		}
		io.WriteString(w.Conn, strings.Repeat("answer", 100_000))
	}, func(t *testing.T, r *running, open func(string) *wire) {
		w := open("")
		w.send("question")
		w.closeWrite()
		check.Equal(t, len(must.Have(io.ReadAll(w))), 600_000, "bytes of the answer")
		check.Equal(t, r.record().BytesOut, 600_000, "BytesOut")
	})
}

func TestTunnelHalfCloseOfTheServer(t *testing.T) {
	done := make(chan string, 1)
	everyWay(t, func(w *wire) {
		w.send("answer")
		w.closeWrite()
		got, _ := io.ReadAll(w)
		done <- fmt.Sprint(len(got))
	}, func(t *testing.T, r *running, open func(string) *wire) {
		w := open("")
		check.Equal(t, string(must.Have(io.ReadAll(w))), "answer", "answer")
		for range 100 {
			w.send(strings.Repeat("question", 1000))
		}
		w.closeWrite()
		check.Equal(t, wait(t, done, "the server's end"), "800000", "bytes that the server read")
	})
}

// A side that breaks off ends the tunnel for the other.
func TestTunnelEndsWithEitherSide(t *testing.T) {
	ended := make(chan bool, 1)
	everyWay(t, func(w *wire) {
		line, _ := w.ReadString('\n')
		if line == "leave\n" {
			return
		}
		io.Copy(io.Discard, w)
		ended <- true
	}, func(t *testing.T, r *running, open func(string) *wire) {
		w := open("leave\n")
		if got, err := io.ReadAll(w); len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
		w.Conn.Close()
		r.record()
		w = open("stay\n")
		w.Conn.Close()
		wait(t, ended, "the server's end")
		r.record()
	})
}

// The time of a request is that until its answer: a tunnel outlives it.
func TestTunnelOutlivesTheTimeout(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, afterUpgrade(t, func(w *wire) {
		time.Sleep(200 * time.Millisecond)
		w.send("still here")
	}))}})
	for _, header := range []string{"Lull-Timeout: 100", "X-Envoy-Upstream-Rq-Timeout-Ms: 100"} {
		upgraded(t, r.dial("service", upgrade+header+"\r\n\r\n")).expect("still here")
	}
}

// A switch may follow a retry, and says so; and a refusal has its body.
func TestUpgradeRetriedAndRefused(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, func(w *wire) {
		for {
			if _, err := w.Peek(1); err != nil {
				return
			}
			head := w.head()
			switch {
			case strings.HasPrefix(head[0], "GET /chat"):
				if n.Add(1)%2 == 1 {
					w.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
					continue
				}
				w.send(switched + "\r\nhello")
				return
			case strings.HasPrefix(head[0], "GET /426"):
				w.send("HTTP/1.1 426 Upgrade Required\r\nUpgrade: h9\r\nConnection: upgrade\r\nContent-Length: 6\r\n\r\nnot so")
			default:
				w.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
			}
		}
	})}})
	w := r.dial("service", upgrade+"\r\n")
	head := strings.Join(upgradedHead(t, w), "\n")
	if !strings.Contains(head, "Lull-Attempts: 2") {
		t.Errorf("no Lull-Attempts: 2 in %q", head)
	}
	w.expect("hello")
	w.Conn.Close()
	one := r.record()
	check.Equal(t, one.Status, 101, "status")
	check.Equal(t, len(one.Attempts), 2, "attempts of the record")

	for _, c := range []struct {
		path, body string
		status     int
	}{{"/426", "not so", 426}, {"/403", "no", 403}, {"/426", "not so", 426}} {
		resp := r.dial("service", strings.Replace(upgrade, "/chat", c.path, 1)+"\r\n").response("GET")
		check.Equal(t, resp.StatusCode, c.status, "status")
		check.Equal(t, string(must.Have(io.ReadAll(resp.Body))), c.body, "body")
	}
}

func upgradedHead(t *testing.T, w *wire) []string {
	t.Helper()
	head := w.head()
	check.Equal(t, head[0], "HTTP/1.1 101 Switching Protocols", "status line")
	return head
}

// An upstream that switches without being asked, or to another protocol, is no success.
func TestUnaskedSwitch(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, func(w *wire) {
		w.head()
		w.send(strings.Replace(switched, "Upgrade: websocket", "Upgrade: other", 1) + "\r\n")
	})}})
	for _, request := range []string{upgrade + "\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		resp := r.dial("service", request).response("GET")
		check.Equal(t, resp.StatusCode, http.StatusBadGateway, "status")
		check.Equal(t, resp.Header.Get("Proxy-Status"), "lull; error=http_upgrade_failed", "Proxy-Status")
		check.Equal(t, r.record().Own, true, "Own")
	}
}

// At the drain tunnels have the time of the drain, and end then.
func TestTunnelAtDrain(t *testing.T) {
	everyWay(t, func(w *wire) {
		io.Copy(w.Conn, w)
	}, func(t *testing.T, r *running, open func(string) *wire) {
		w := open("")
		w.send("a")
		w.expect("a")
		r.stop()
		eventually(t, r.proxy.Draining, "the drain")
		w.send("b")
		w.expect("b")
		if rest, err := io.ReadAll(w); len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		<-r.ended
		r.record()
		r.noMore()
	})
}
