package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/proxy"
)

// seen is what an upstream was sent.
type seen struct {
	mu       sync.Mutex
	requests []*http.Request // whole ones
	bodies   []string
	broken   int // requests that broke off
}

func (s *seen) take() (requests []*http.Request, bodies []string, broken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, bodies, broken = s.requests, s.bodies, s.broken
	s.requests, s.bodies, s.broken = nil, nil, 0
	return
}

// record serves connections at address, and records what they bring. answer may be nil: 200.
func record(address, answer string) (*seen, io.Closer) {
	if answer == "" {
		answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	}
	s := new(seen)
	l := must.Have(memnet.ListenOn(address))
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err == io.EOF {
						return
					}
					var body []byte
					if err == nil {
						body, err = io.ReadAll(r.Body)
					}
					s.mu.Lock()
					if err != nil {
						s.broken++
						s.mu.Unlock()
						return
					}
					s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
					s.mu.Unlock()
					if _, err := io.WriteString(conn, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return s, l
}

// address returns where a door listens in memory.
func address(door string) string {
	return map[string]string{"app": "127.0.0.1:9001", "forward": "127.0.0.1:9002", "ingress": "127.0.0.1:9003"}[door]
}

// front is a proxy whose doors listen in memory. All of them lead to one upstream, "app:80".
type front struct {
	*seen
	stop func()
}

func newFront(t *testing.T, c proxy.Config, answer string, wiring ...proxy.Wiring) *front {
	if c.Upstreams == nil {
		c.Upstreams = map[string]proxy.Upstream{"app": {Listen: address("app"), To: []string{"http://app"}}}
		c.Forward = proxy.Forward{Listen: address("forward"), Hosts: []string{"app"}}
		c.Ingress = proxy.Ingress{Listen: address("ingress"), To: "http://app"}
	}
	var w proxy.Wiring
	if len(wiring) > 0 {
		w = wiring[0]
	}
	p, err := proxy.InMemory(c, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx) }()
	s, upstream := record("app:80", answer)
	synctest.Wait()
	return &front{s, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		upstream.Close()
		time.Sleep(5 * time.Minute) // idle connections end
	}}
}

// inBubble returns f as a test in a bubble.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// send sends pieces to a door, one after the other has been read, and returns all that is answered.
func send(door string, pieces ...string) string {
	conn := must.Have(memnet.Dial(context.Background(), "tcp", address(door)))
	defer conn.Close()
	for _, p := range pieces {
		if _, err := io.WriteString(conn, p); err != nil {
			break
		}
		synctest.Wait()
	}
	must.Succeed(conn.SetReadDeadline(time.Now().Add(30 * time.Second)))
	answers, _ := io.ReadAll(conn)
	return string(answers)
}

// statuses returns the statuses of answers.
func statuses(t *testing.T, answers string) string {
	var all []string
	in := bufio.NewReader(strings.NewReader(answers))
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return strings.Join(all, " ")
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Errorf("a broken answer: %v in %q", err, answers)
		}
		if resp.StatusCode == 400 && !resp.Close {
			t.Errorf("the connection is kept after %q", answers)
		}
		all = append(all, fmt.Sprint(resp.StatusCode))
	}
}

const head = "Host: app\r\n"

// ambiguous are requests that two parsers may read in two ways, or that are none.
var ambiguous = map[string]string{
	"CL and TE":                   "POST / HTTP/1.1\r\n" + head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"TE and CL":                   "POST / HTTP/1.1\r\n" + head + "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
	"TE and a CL of 0":            "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
	"two CL":                      "POST / HTTP/1.1\r\n" + head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
	"two equal CL":                "POST / HTTP/1.1\r\n" + head + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
	"a list in CL":                "POST / HTTP/1.1\r\n" + head + "Content-Length: 3, 3\r\n\r\nabc",
	"CL with a sign":              "POST / HTTP/1.1\r\n" + head + "Content-Length: +3\r\n\r\nabc",
	"negative CL":                 "POST / HTTP/1.1\r\n" + head + "Content-Length: -3\r\n\r\nabc",
	"CL in hex":                   "POST / HTTP/1.1\r\n" + head + "Content-Length: 0x3\r\n\r\nabc",
	"empty CL":                    "POST / HTTP/1.1\r\n" + head + "Content-Length:\r\n\r\nabc",
	"CL in two words":             "POST / HTTP/1.1\r\n" + head + "Content-Length: 3 3\r\n\r\nabc",
	"CL overflows":                "POST / HTTP/1.1\r\n" + head + "Content-Length: 18446744073709551619\r\n\r\nabc",
	"CL above int64":              "POST / HTTP/1.1\r\n" + head + "Content-Length: 9223372036854775808\r\n\r\nabc",
	"two TE":                      "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"TE identity":                 "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: identity\r\n\r\n",
	"TE gzip, chunked":            "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"TE chunked, identity":        "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
	"TE xchunked":                 "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"TE chunk":                    "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunk\r\n\r\n0\r\n\r\n",
	"TE with a parameter":         "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
	"TE in quotes":                "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
	"empty TE":                    "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding:\r\n\r\n0\r\n\r\n",
	"TE with a vertical tab":      "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"TE in HTTP/1.0":              "POST / HTTP/1.0\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"a folded line":               "GET / HTTP/1.1\r\n" + head + "A: b\r\n c\r\n\r\n",
	"a folded line with a tab":    "GET / HTTP/1.1\r\n" + head + "A: b\r\n\tc\r\n\r\n",
	"a folded TE":                 "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	"a folded blank line":         "GET / HTTP/1.1\r\n" + head + "A: b\r\n \r\n\r\n",
	"a blank before the first":    "GET / HTTP/1.1\r\n Host: app\r\n\r\n",
	"LF alone":                    "GET / HTTP/1.1\nHost: app\n\n",
	"LF alone after a header":     "GET / HTTP/1.1\r\nHost: app\nA: b\r\n\r\n",
	"LF alone at the end":         "GET / HTTP/1.1\r\n" + head + "\n",
	"LF in a value":               "GET / HTTP/1.1\r\n" + head + "A: b\nTransfer-Encoding: chunked\r\n\r\n",
	"CR alone":                    "GET / HTTP/1.1\r\n" + head + "A: b\rB: c\r\n\r\n",
	"two CR":                      "GET / HTTP/1.1\r\r\n" + head + "\r\n",
	"CR alone at the end":         "GET / HTTP/1.1\r\n" + head + "\rx\r\n\r\n",
	"NUL in a value":              "GET / HTTP/1.1\r\n" + head + "A: b\x00c\r\n\r\n",
	"NUL in a name":               "GET / HTTP/1.1\r\n" + head + "A\x00: b\r\n\r\n",
	"NUL in the target":           "GET /\x00 HTTP/1.1\r\n" + head + "\r\n",
	"DEL in the target":           "GET /\x7f HTTP/1.1\r\n" + head + "\r\n",
	"an empty target":             "GET  HTTP/1.1\r\n" + head + "\r\n",
	"TE in two words":             "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chun ked\r\n\r\n0\r\n\r\n",
	"DEL in a value":              "GET / HTTP/1.1\r\n" + head + "A: \x7f\r\n\r\n",
	"blank before the colon":      "GET / HTTP/1.1\r\n" + head + "A : b\r\n\r\n",
	"TE, blank before the colon":  "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"no colon":                    "GET / HTTP/1.1\r\n" + head + "A\r\n\r\n",
	"no name":                     "GET / HTTP/1.1\r\n" + head + ": b\r\n\r\n",
	"a name in Latin-1":           "GET / HTTP/1.1\r\n" + head + "Content-L\xe4ngth: 3\r\n\r\n",
	"a name in parentheses":       "GET / HTTP/1.1\r\n" + head + "(A): b\r\n\r\n",
	"no target":                   "GET HTTP/1.1\r\n" + head + "\r\n",
	"two blanks":                  "GET  / HTTP/1.1\r\n" + head + "\r\n",
	"a blank in the target":       "GET /a b HTTP/1.1\r\n" + head + "\r\n",
	"a tab in the request line":   "GET\t/ HTTP/1.1\r\n" + head + "\r\n",
	"a blank at the end":          "GET / HTTP/1.1 \r\n" + head + "\r\n",
	"a fragment":                  "GET /a#b HTTP/1.1\r\n" + head + "\r\n",
	"a method in parentheses":     "(GET) / HTTP/1.1\r\n" + head + "\r\n",
	"no method":                   " / HTTP/1.1\r\n" + head + "\r\n",
	"no version":                  "GET /\r\n" + head + "\r\n",
	"version 1.2":                 "GET / HTTP/1.2\r\n" + head + "\r\n",
	"version 2.0":                 "GET / HTTP/2.0\r\n" + head + "\r\n",
	"version 0.9":                 "GET / HTTP/0.9\r\n" + head + "\r\n",
	"version 1.10":                "GET / HTTP/1.10\r\n" + head + "\r\n",
	"version in lower case":       "GET / http/1.1\r\n" + head + "\r\n",
	"the preface of HTTP/2, half": "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
	"TLS":                         "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
	"a blank line first":          "\r\nGET / HTTP/1.1\r\n" + head + "\r\n",
	"two Host":                    "GET / HTTP/1.1\r\n" + head + head + "\r\n",
	"two different Host":          "GET / HTTP/1.1\r\n" + head + "Host: evil\r\n\r\n",
	"no Host":                     "GET / HTTP/1.1\r\n\r\n",
	"an empty Host":               "GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"a Host with a path":          "GET / HTTP/1.1\r\nHost: app/evil\r\n\r\n",
	"a Host with a user":          "GET / HTTP/1.1\r\nHost: evil@app\r\n\r\n",
	"a Host with a list":          "GET / HTTP/1.1\r\nHost: app, evil\r\n\r\n",
	"a Host with a bad port":      "GET / HTTP/1.1\r\nHost: app:80x\r\n\r\n",
	"a Host with port 99999":      "GET / HTTP/1.1\r\nHost: app:99999\r\n\r\n",
	"a Host in Latin-1":           "GET / HTTP/1.1\r\nHost: \xe4pp\r\n\r\n",
	"an absolute form with user":  "GET http://me:pw@app/ HTTP/1.1\r\n" + head + "\r\n",
	"an absolute form, no host":   "GET http:///x HTTP/1.1\r\n" + head + "\r\n",
	"an opaque target":            "GET app:80 HTTP/1.1\r\n" + head + "\r\n",
	"a relative target":           "GET x HTTP/1.1\r\n" + head + "\r\n",
	"another scheme":              "GET ftp://app/ HTTP/1.1\r\n" + head + "\r\n",
	"* of GET":                    "GET * HTTP/1.1\r\n" + head + "\r\n",
	"a bad escape":                "GET /%zz HTTP/1.1\r\n" + head + "\r\n",
	"CONNECT with a body":         "CONNECT app:443 HTTP/1.1\r\n" + head + "Content-Length: 3\r\n\r\nabc",
	"401 headers":                 "GET / HTTP/1.1\r\n" + head + strings.Repeat("a:b\r\n", 401) + "\r\n",
}

// lastWords is for how long a refused client may read its answer.
const lastWords = 500 * time.Millisecond

// Nothing of a request that two parsers may read in two ways reaches the upstream: it is answered with 400, and the
// connection ends. Requests that came before it are answered first.
func TestAmbiguousRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		for name, text := range ambiguous {
			for _, door := range []string{"app", "ingress"} {
				start := time.Now()
				check.Equal(t, statuses(t, send(door, text)), "400", "%s at %s", name, door)
				if took := time.Since(start); took > lastWords {
					t.Errorf("%s at %s: the answer took %v", name, door, took)
				}
				check.Equal(t, statuses(t, send(door, strings.Split(text, "")...)), "400", "%s at %s, byte by byte", name, door)
				check.Equal(t, statuses(t, send(door, text+"GET /smuggled HTTP/1.1\r\n"+head+"\r\n")), "400", "%s at %s, before another", name, door)
				if requests, _, broken := f.take(); len(requests)+broken > 0 {
					t.Errorf("%s at %s: the upstream saw %d requests, and %d that broke off", name, door, len(requests), broken)
				}
				for i, pieces := range [][]string{{"GET /first HTTP/1.1\r\n" + head + "\r\n" + text}, {"POST /first HTTP/1.1\r\n" + head + "Content-Length: 3\r\n\r\nab", "c" + text}} {
					check.Equal(t, statuses(t, send(door, pieces...)), "200 400", "%s at %s, behind another (%d)", name, door, i)
					requests, _, broken := f.take()
					check.Equal(t, len(requests), 1, "%s at %s: requests of the upstream", name, door)
					check.Equal(t, broken, 0, "%s at %s: broken requests of the upstream", name, door)
				}
			}
		}
	})
}

const chunked = "POST /chunked HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n"

// brokenBodies are requests whose header is in order, but not the framing of their body.
var brokenBodies = map[string]string{
	"no size":                        chunked + "\r\nabc\r\n0\r\n\r\n",
	"no size at the end":             chunked + "3\r\nabc\r\n\r\n\r\n",
	"no size, but an extension":      chunked + ";a\r\n\r\n",
	"a size that is not hex":         chunked + "g\r\nabc\r\n0\r\n\r\n",
	"a size with 0x":                 chunked + "0x3\r\nabc\r\n0\r\n\r\n",
	"a size with a sign":             chunked + "+3\r\nabc\r\n0\r\n\r\n",
	"a negative size":                chunked + "-3\r\nabc\r\n0\r\n\r\n",
	"a blank before a size":          chunked + " 3\r\nabc\r\n0\r\n\r\n",
	"a blank behind a size":          chunked + "3 \r\nabc\r\n0\r\n\r\n",
	"a size of 65 bits":              chunked + "10000000000000003\r\nabc\r\n0\r\n\r\n",
	"a size of 64 bits":              chunked + "8000000000000003\r\nabc\r\n0\r\n\r\n",
	"a size with 17 digits":          chunked + "00000000000000003\r\nabc\r\n0\r\n\r\n",
	"LF alone behind a size":         chunked + "3\nabc\r\n0\r\n\r\n",
	"LF alone behind the last size":  chunked + "3\r\nabc\r\n0\n\r\n",
	"CR alone behind a size":         chunked + "3\rabc\r\n0\r\n\r\n",
	"LF alone behind a chunk":        chunked + "3\r\nabc\n0\r\n\r\n",
	"nothing behind a chunk":         chunked + "3\r\nabc0\r\n\r\n",
	"two bytes behind a chunk":       chunked + "3\r\nabcXX0\r\n\r\n",
	"LF in an extension":             chunked + "3;a\nb\r\nabc\r\n0\r\n\r\n",
	"CR in an extension":             chunked + "3;a\rb\r\nabc\r\n0\r\n\r\n",
	"NUL in an extension":            chunked + "3;a\x00\r\nabc\r\n0\r\n\r\n",
	"a long extension":               chunked + "3;" + strings.Repeat("a", 300) + "\r\nabc\r\n0\r\n\r\n",
	"a long extension at the end":    chunked + "3\r\nabc\r\n0;" + strings.Repeat("a", 300) + "\r\n\r\n",
	"LF alone at the end":            chunked + "3\r\nabc\r\n0\r\n\n",
	"a folded trailer":               chunked + "3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n",
	"LF alone in a trailer":          chunked + "3\r\nabc\r\n0\r\nA: b\nB: c\r\n\r\n",
	"NUL in a trailer":               chunked + "3\r\nabc\r\n0\r\nA: \x00\r\n\r\n",
	"a trailer without a name":       chunked + "3\r\nabc\r\n0\r\n: b\r\n\r\n",
	"a Content-Length as trailer":    chunked + "3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n",
	"a Transfer-Encoding as trailer": chunked + "3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
	"a Trailer as trailer":           chunked + "3\r\nabc\r\n0\r\nTrailer: Sum\r\n\r\n",
	"a Host as trailer":              chunked + "3\r\nabc\r\n0\r\nHost: evil\r\n\r\n",
	"401 trailers":                   chunked + "3\r\nabc\r\n0\r\n" + strings.Repeat("a:b\r\n", 401) + "\r\n",
}

// A body whose framing is broken is answered with 400, and the upstream sees no whole request, nor the next one.
func TestBrokenBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		for name, text := range brokenBodies {
			for _, door := range []string{"app", "ingress"} {
				for i, pieces := range [][]string{{text}, strings.Split(text, ""), {text + "GET /smuggled HTTP/1.1\r\n" + head + "\r\n"}} {
					check.Equal(t, statuses(t, send(door, pieces...)), "400", "%s at %s (%d)", name, door, i)
					if requests, _, _ := f.take(); len(requests) > 0 {
						t.Errorf("%s at %s: the upstream saw %d requests", name, door, len(requests))
					}
				}
				check.Equal(t, statuses(t, send(door, "GET /first HTTP/1.1\r\n"+head+"\r\n"+text)), "200 400", "%s at %s, behind another", name, door)
				requests, _, _ := f.take()
				check.Equal(t, len(requests), 1, "%s at %s: requests of the upstream", name, door)
			}
		}
	})
}

// clean are requests in unusual spellings that are in order, and the bodies that the upstream gets.
var clean = map[string]struct {
	sent, body string
}{
	"HTTP/1.0":                   {"GET / HTTP/1.0\r\n\r\n", ""},
	"HTTP/1.0 with a body":       {"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "abc"},
	"blanks around values":       {"POST / HTTP/1.1\r\nHost: \t app \t \r\nContent-Length:\t 03 \r\n\r\nabc", "abc"},
	"blanks around chunked":      {"POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: \tChunked \r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"},
	"empty values":               {"GET / HTTP/1.1\r\n" + head + "A:\r\nB: \r\n\r\n", ""},
	"values in UTF-8":            {"GET /\xc3\xa4 HTTP/1.1\r\n" + head + "A: \xc3\xa4\r\n\r\n", ""},
	"names like those of length": {"POST / HTTP/1.1\r\n" + head + "Content-Length-X: 9\r\nX-Content-Length: 9\r\nContent_Length: 9\r\nTransfer-Encodings: x\r\nContent-Length: 3\r\n\r\nabc", "abc"},
	"GET with a body":            {"GET / HTTP/1.1\r\n" + head + "Content-Length: 3\r\n\r\nabc", "abc"},
	"a body of requests":         {"POST / HTTP/1.1\r\n" + head + "Content-Length: 27\r\n\r\nGET /x HTTP/1.1\nHost: a\r\n\r\n", "GET /x HTTP/1.1\nHost: a\r\n\r\n"},
	"chunks":                     {chunked + "00000003;a=\"b c\";d\r\nabc\r\nA\r\n0123456789\r\n000;x\r\n\r\n", "abc0123456789"},
	"a chunk of a request":       {chunked + "5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"},
	"no chunk":                   {chunked + "0\r\n\r\n", ""},
	"a trailer":                  {chunked + "3\r\nabc\r\n0\r\nSum: 1\r\nExpires: never\r\n\r\n", "abc"},
	"an absolute form":           {"GET http://app/x HTTP/1.1\r\nHost: other\r\n\r\n", ""},
	"a port":                     {"GET / HTTP/1.1\r\nHost: app:80\r\n\r\n", ""},
	"an IPv6 address":            {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", ""},
	"a path in the Host":         {"GET / HTTP/1.1\r\nHost: %2Frun%2Fapp.sock\r\n\r\n", ""},
	"a method of its own":        {"M-SEARCH / HTTP/1.1\r\n" + head + "\r\n", ""},
	"many headers and trailers":  {"POST / HTTP/1.1\r\n" + head + strings.Repeat("a:b\r\n", 200) + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + strings.Repeat("a:b\r\n", 200) + "\r\n", "abc"},
	"a length behind h2c":        {"POST / HTTP/1.1\r\n" + head + "Upgrade: h2c \r\nContent-Length:3\r\n\r\nabc", "abc"},
	"h2c is not switched to":     {"GET / HTTP/1.1\r\n" + head + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", ""},
}

// Requests in unusual spellings arrive, each of them once and clean, in one piece, byte by byte, and one behind the other.
func TestUnusualRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		for name, one := range clean {
			for _, door := range []string{"app", "ingress"} {
				times := 2
				if strings.Contains(one.sent, "HTTP/1.0") {
					times = 1
				}
				for i, pieces := range [][]string{{strings.Repeat(one.sent, times)}, strings.Split(strings.Repeat(one.sent, times), "")} {
					check.Equal(t, statuses(t, send(door, pieces...)), strings.TrimSuffix(strings.Repeat("200 ", times), " "), "%s at %s (%d)", name, door, i)
					requests, bodies, broken := f.take()
					check.Equal(t, len(requests), times, "%s at %s (%d): requests of the upstream", name, door, i)
					check.Equal(t, broken, 0, "%s at %s (%d): broken requests of the upstream", name, door, i)
					for j, r := range requests {
						check.Equal(t, bodies[j], one.body, "%s at %s (%d): body", name, door, i)
						if name == "an absolute form" {
							check.Equal(t, r.Host, "app", "%s at %s (%d): Host", name, door, i)
							check.Equal(t, r.RequestURI, "/x", "%s at %s (%d): target", name, door, i)
						}
						for _, name := range []string{"Upgrade", "Http2-Settings", "Connection"} {
							if v := r.Header[name]; v != nil {
								t.Errorf("%s at %s (%d): the upstream got %s: %q", name, door, i, name, v)
							}
						}
					}
				}
			}
		}
	})
}

// Whatever a client sends, and in whichever pieces it arrives: the upstream sees as many requests as are answered with 200,
// and no more than the guard has seen end.
func TestNothingIsSmuggled(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		draw := seed.Source(t)
		for range 4000 {
			sent := []byte([]string{"POST / HTTP/1.1\r\n" + head, "GET / HTTP/1.1\r\n" + head + "\r\n", ""}[draw()%3])
			for range 2 + draw()%14 {
				sent = append(sent, pieces[draw()%uint64(len(pieces))]...)
			}
			_, ends, _, _ := proxy.Guarded(sent)
			door, half := []string{"app", "ingress"}[draw()%2], draw()%uint64(len(sent))
			answers := send(door, string(sent[:half]), string(sent[half:]))
			requests, _, _ := f.take()
			if len(requests) > len(ends) || len(requests) != strings.Count(statuses(t, answers), "200") {
				t.Errorf("%s: %q has %d requests, the upstream saw %d, and the answers are %q", door, sent, len(ends), len(requests), answers)
			}
		}
	})(t)
}
