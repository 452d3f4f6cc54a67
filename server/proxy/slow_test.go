package proxy_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// heldFor sends text, then more each time step has passed, until the door closes the connection or most has passed. It
// returns how long that took, and what was answered.
func heldFor(door, text, more string, step, most time.Duration) (time.Duration, string) {
	conn := must.Have(memnet.Dial(context.Background(), "tcp", address(door)))
	defer conn.Close()
	start := time.Now()
	_, _ = io.WriteString(conn, text)
	ended := make(chan string, 1)
	go func() {
		answer, _ := io.ReadAll(conn)
		ended <- string(answer)
	}()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case answer := <-ended:
			return time.Since(start), answer
		case <-tick.C:
			if time.Since(start) > most {
				return time.Since(start), ""
			}
			_, _ = io.WriteString(conn, more)
		}
	}
}

// A client holds a connection no longer than the limits allow: with a header that does not end, a body that brings
// nothing, or no request at all. A body that comes slowly, and a stream, may take what they take.
func TestSlowClients(t *testing.T) {
	const length = "POST / HTTP/1.1\r\n" + head + "Content-Length: 1000\r\n\r\n"
	const trickle = 23 * time.Second
	whole := "GET / HTTP/1.1\r\n" + head + "\r\n"
	for name, c := range map[string]struct {
		text, more  string
		step        time.Duration
		least, most time.Duration // the connection ends between; 0: it does not within an hour
		status      string
	}{
		"no byte":                      {"", "", time.Minute, proxy.DefaultHeaderTime, proxy.DefaultHeaderTime, ""},
		"half a request line":          {"GET /", "a", 3 * time.Second, proxy.DefaultHeaderTime, proxy.DefaultHeaderTime, "?"},
		"the preface, byte by byte":    {"P", "", 3 * time.Second, proxy.DefaultHeaderTime, proxy.DefaultHeaderTime, "?"},
		"a header that does not end":   {"GET / HTTP/1.1\r\n" + head, "a: b\r\n", 3 * time.Second, proxy.DefaultHeaderTime, proxy.DefaultHeaderTime, "?"},
		"the same as second request":   {whole + "GET / HTTP/1.1\r\n" + head, "a: b\r\n", 3 * time.Second, proxy.DefaultHeaderTime, proxy.DefaultHeaderTime, "200 ?"},
		"no second request":            {whole, "", time.Minute, proxy.DefaultIdleTime, proxy.DefaultIdleTime, "200"},
		"no body":                      {length, "", time.Minute, proxy.DefaultBodyIdle, proxy.DefaultBodyIdle + time.Second, "408"},
		"a body that stops":            {length + "abc", "", time.Minute, proxy.DefaultBodyIdle, proxy.DefaultBodyIdle + time.Second, "408"},
		"a body that comes slowly":     {length, "abcdefghij", trickle, 0, 0, ""},
		"no body, which is not wanted": {"POST / HTTP/1.1\r\nHost: a@b\r\nContent-Length: 1000\r\n\r\n", "", time.Minute, 0, proxy.DefaultBodyIdle + time.Second, "400"},
		"HTTP/2: nothing more":         {preface, "", time.Minute, 0, 3 * time.Second, ""},
		"HTTP/2: no request":           {preface + frame(settings, 0, 0, ""), "", time.Minute, proxy.DefaultIdleTime, proxy.DefaultIdleTime + 3*time.Second, ""},
		"HTTP/2: half a header":        {preface + frame(settings, 0, 0, "") + frame(headers, endStream, 1, block(request("GET")...)), "", time.Minute, proxy.DefaultHeaderTime, proxy.DefaultIdleTime + 3*time.Second, ""},
		"HTTP/2: no body":              {preface + frame(settings, 0, 0, "") + frame(headers, endHeaders, 1, block(request("POST", "content-length: 3")...)), "", time.Minute, 0, proxy.DefaultIdleTime + proxy.DefaultBodyIdle + 3*time.Second, "408"},
		"a stream":                     {chunked + "3\r\nabc\r\n", "", time.Minute, 0, 0, ""},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFront(t, proxy.Config{}, "")
			defer f.stop()
			for _, door := range []string{"ingress", "app"} {
				if door == "app" && c.step == trickle {
					c.least, c.most, c.status = 10*time.Second, 10*time.Second+trickle+proxy.DefaultBodyIdle, "408" // the attempt's time
				}
				took, answer := heldFor(door, c.text, c.more, c.step, 45*time.Minute)
				got := statuses(t, answer)
				if strings.HasPrefix(c.text, preface) {
					got = answersOf(answer)[1]
				}
				if c.most == 0 {
					if took < 45*time.Minute && !strings.HasPrefix(got, "200") {
						t.Errorf("%s at %s: it was ended after %v with %q", name, door, took, answer)
					}
					continue
				}
				want := c.status
				if begun, ok := strings.CutSuffix(c.status, "?"); ok { // net/http may answer 400 to what has come
					got, want = strings.TrimSuffix(got, "400"), begun
				}
				check.Equal(t, strings.TrimSpace(got), strings.TrimSpace(want), "%s at %s: status", name, door)
				if took < c.least || took > c.most {
					t.Errorf("%s at %s: the connection was held for %v, want %v to %v", name, door, took, c.least, c.most)
				}
			}
		}))
	}
}

// A door has as many connections as its limit allows. Others wait, and get their turn when one ends: nothing is stuck.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{
			Upstreams: map[string]proxy.Upstream{"app": {Listen: address("app"), To: []string{"http://app"}}},
			Limits:    proxy.Limits{Connections: 2},
		}, "")
		defer f.stop()
		const request = "GET / HTTP/1.1\r\n" + head + "\r\n"
		answered := make(chan int, 5)
		var held []io.Closer
		for i := range 5 {
			conn := must.Have(memnet.Dial(context.Background(), "tcp", address("app")))
			held = append(held, conn)
			must.Have(io.WriteString(conn, request))
			go func() {
				if _, err := io.ReadFull(conn, make([]byte, 12)); err == nil {
					answered <- i
				}
			}()
			synctest.Wait()
		}
		check.Equal(t, len(answered), 2, "answers with two connections")
		for i, conn := range held {
			conn.Close()
			synctest.Wait()
			check.Equal(t, len(answered), min(3+i, 5), "answers after %d connections have ended", i+1)
		}
	})
}
