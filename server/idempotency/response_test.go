package idempotency_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// served is h under the middleware on a server, and how to send it a request.
func served(t *testing.T, c idempotency.Config, h http.HandlerFunc) (send func(key string) *http.Response, r *rig) {
	t.Helper()
	r = newRig(t, nil, c)
	s := memnet.NewUnstartedServer(t, r.m.Wrap(h))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	memnet.Start(s)
	return func(key string) *http.Response { return must.Have(s.Client().Do(clientRequest(s, key))) }, r
}

// clientRequest is request for a client of s.
func clientRequest(s *httptest.Server, key string) *http.Request {
	req := request(key)
	req.URL, req.RequestURI = must.Have(url.Parse(s.URL+"/pay")), ""
	return req
}

func TestReplayedHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "text/x-receipt")
			h["X-Many"] = []string{"1", "2"}
			h.Set("Location", "/receipts/1")
			h.Set("Set-Cookie", "session=secret")
			h.Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
			h.Set("Connection", "X-Hop, Keep-Alive")
			h.Set("X-Hop", "1")
			h.Set("Keep-Alive", "timeout=5")
			w.WriteHeader(201)
			h.Set("X-Late", "after the header")
			io.WriteString(w, "receipt")
		})
		for n := range 3 {
			resp := send("k")
			got := resultOf(t, resp)
			first := n == 0
			if got.status != 201 || got.body != "receipt" || got.replayed == first || resp.ContentLength != 7 {
				t.Errorf("time %d: %d %q, replayed %v, length %d", n, got.status, got.body, got.replayed, resp.ContentLength)
			}
			h := got.header
			if h.Get("Content-Type") != "text/x-receipt" || fmt.Sprint(h["X-Many"]) != "[1 2]" || h.Get("Location") != "/receipts/1" || h["X-Late"] != nil {
				t.Errorf("time %d: %v", n, h)
			}
			for _, name := range []string{"Set-Cookie", "X-Hop", "Keep-Alive"} {
				check.Equal(t, (h.Get(name) != ""), first, "time %d: %s is %q", n, name, h.Get(name))
			}
			check.Equal(t, h.Get("Date") == "Mon, 02 Jan 2006 15:04:05 GMT", first, "time %d: Date is %q", n, h.Get("Date"))
		}
	})
}

// What middleware outside has set is each request's own.
func TestOuterHeaderIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, idempotency.Config{})
		h := r.m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Changed", "by the handler")
			w.Write([]byte("x"))
		}))
		for n := range 2 {
			w := httptest.NewRecorder()
			w.Header().Set("X-Request-Id", fmt.Sprint("request ", n))
			w.Header().Set("X-Changed", "by the middleware")
			h.ServeHTTP(w, request("k"))
			if id, c := w.Result().Header.Get("X-Request-Id"), w.Result().Header.Get("X-Changed"); id != fmt.Sprint("request ", n) || c != "by the handler" {
				t.Errorf("time %d: %q, %q", n, id, c)
			}
		}
	})
}

// What is flushed is sent while the handler runs, and replayed if all of it fits.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan bool)
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-goOn
			io.WriteString(w, "second\n")
			check.Equal(t, http.NewResponseController(w).Flush(), nil, "http.NewResponseController(w).Flush()")
			<-goOn
			io.WriteString(w, "third\n")
		})
		resp := send("k")
		lines := bufio.NewReader(resp.Body)
		for _, want := range []string{"first\n", "second\n"} {
			if line, err := lines.ReadString('\n'); line != want {
				t.Fatalf("got %q, %v, want %q before the handler has ended", line, err, want)
			}
			resultOf(t, send("k")).is(t, 409, "in-flight")
			goOn <- true
		}
		rest, err := io.ReadAll(lines)
		if string(rest) != "third\n" || err != nil {
			t.Errorf("the rest is %q, %v", rest, err)
		}
		resultOf(t, send("k")).replays(t, 200, "first\nsecond\nthird\n")
	})
}

// What is too long to keep goes through as it is written, once.
func TestUnbounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunk, chunks = 1000, 50
		send, r := served(t, idempotency.Config{MaxResponse: 10 * chunk}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/reports/7")
			w.Header().Set("X-Other", "x")
			w.WriteHeader(201)
			for i := range chunks {
				n, err := w.Write([]byte(strings.Repeat(string(rune('a'+i%26)), chunk)))
				if n != chunk || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
			}
		})
		got := resultOf(t, send("k"))
		if len(got.body) != chunk*chunks || got.status != 201 {
			t.Errorf("%d bytes of %d, status %d", len(got.body), chunk*chunks, got.status)
		}
		for i := range chunks {
			if got.body[i*chunk] != byte('a'+i%26) || got.body[i*chunk+chunk-1] != byte('a'+i%26) {
				t.Fatalf("chunk %d is not where it should be", i)
			}
		}
		got = resultOf(t, send("k"))
		got.is(t, 409, "response-not-kept")
		if got.details["original_status"] != 201.0 || got.header.Get("Location") != "/reports/7" || got.header.Get("X-Other") != "" || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%v %v", got.details, got.header)
		}
		r.saw("ran", "refused-not-kept")
	})
}

// The limit is for a header and a body together.
func TestMaxResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			header, body int
			kept         bool
		}{{0, 0, true}, {0, 1, true}, {0, 100, true}, {0, 101, false}, {50, 50, true}, {51, 50, false}, {100, 0, true}, {101, 0, false}} {
			h := newRig(t, nil, idempotency.Config{MaxResponse: 100}).m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.header > 0 {
					w.Header().Set("X", strings.Repeat("x", test.header-len("X: \r\n")))
				}
				for range test.body {
					w.Write([]byte("x"))
				}
			}))
			want := strings.Repeat("x", test.body)
			send(t, h, request("k")).ran(t, 200, want)
			if test.kept {
				send(t, h, request("k")).replays(t, 200, want)
			} else {
				send(t, h, request("k")).is(t, 409, "response-not-kept")
			}
		}
	})
}

func TestHijack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			rw.WriteString("HTTP/1.1 299 By hand\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
			rw.Flush()
			if n, err := w.Write([]byte("x")); n != 0 || err != http.ErrHijacked {
				t.Errorf("Write after Hijack: %d, %v", n, err)
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable) // likewise no response: it does not free the key
		})
		resultOf(t, send("k")).ran(t, 299, "hi")
		for range 2 {
			// The client has its response before the handler has ended.
			if got := resultOf(t, send("k")); got.problem != "in-flight" {
				got.is(t, 409, "response-not-kept")
				if _, has := got.details["original_status"]; has {
					t.Errorf("a status is said that nobody knows: %v", got.details)
				}
			}
		}
	})
}

// A response that began with WriteHeader and continues on a hijacked connection is not complete
// here.
func TestHijackAfterHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "by")
			w.(http.Flusher).Flush()
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			rw.WriteString("2\r\nte\r\n0\r\n\r\n") // a chunk, and the last
			rw.Flush()
		})
		resultOf(t, send("k")).ran(t, 200, "byte")
		got := result{problem: "in-flight"}
		for got.problem == "in-flight" {
			got = resultOf(t, send("k"))
		}
		got.is(t, 409, "response-not-kept")
		check.Equal(t, got.details["original_status"], 200.0, "%v", got.details)
	})
}

// A response that a client has is stored: the same request, sent to another server in the
// same instant, gets it.
func TestStoredBeforeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		other := newRig(t, store, idempotency.Config{}).m.Wrap(&counter{})
		w := &onHeader{ResponseRecorder: httptest.NewRecorder()}
		w.do = func() { send(t, other, request("k")).replays(t, 201, "receipt 1") }
		newRig(t, store, idempotency.Config{}).m.Wrap(&counter{}).ServeHTTP(w, request("k"))
		if w.did != 1 || w.Body.String() != "receipt 1" {
			t.Errorf("%d headers, %q", w.did, w.Body)
		}
	})
}

type onHeader struct {
	*httptest.ResponseRecorder
	do  func()
	did int
}

func (w *onHeader) WriteHeader(status int) {
	w.did++
	w.do()
	w.ResponseRecorder.WriteHeader(status)
}

// The client goes away in the middle of a response that is sent as it is written: the
// handler is not disturbed, and the whole response is there for the next attempt.
func TestClientLeavesDuringFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, started := make(chan bool), make(chan bool)
		send, r := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "begin ")
			w.(http.Flusher).Flush()
			close(started)
			<-gone
			for range 64 {
				if n, err := io.WriteString(w, strings.Repeat("x", 1024)); n != 1024 || err != nil {
					t.Errorf("Write: %d, %v", n, err)
					return
				}
				w.(http.Flusher).Flush()
			}
		})
		resp := send("k")
		<-started
		resp.Body.Close()
		close(gone)
		want := "begin " + strings.Repeat("x", 64*1024)
		synctest.Wait() // until the handler has ended
		resultOf(t, send("k")).replays(t, 200, want)
		r.saw("ran", "replayed")
	})
}

// Trailers reach the first client, early hints too; they are not kept.
func TestTrailersAndHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(200)
			io.WriteString(w, "body")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		})
		resp := send("k")
		resultOf(t, resp).ran(t, 200, "body")
		if resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-More") != "43" {
			t.Errorf("trailers: %v", resp.Trailer)
		}
		resp = send("k")
		resultOf(t, resp).replays(t, 200, "body")
		if len(resp.Trailer) != 0 || resp.Header.Get("X-Sum") != "" {
			t.Errorf("replayed trailers: %v %v", resp.Trailer, resp.Header)
		}
		for name := range resp.Header {
			if name != textproto.CanonicalMIMEHeaderKey(name) || strings.HasPrefix(name, "Trailer") {
				t.Errorf("replayed field %q", name)
			}
		}
	})
}

// A response that breaks off is no response to be replayed.
func TestShortResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, _ := served(t, idempotency.Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "half")
		})
		if _, err := io.ReadAll(send("k").Body); err == nil {
			t.Error("a response that is shorter than it says was taken for a whole one")
		}
		resultOf(t, send("k")).is(t, 409, "response-not-kept")
	})
}

// What a handler cannot have is an error, and it answers like any other.
func TestWhatAHandlerCannotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			handler func(w http.ResponseWriter)
			status  int
			body    string
		}{
			{func(w http.ResponseWriter) { // another status than 200 after it has flushed
				check.Equal(t, http.NewResponseController(w).Flush(), nil, "http.NewResponseController(w).Flush()")
				w.WriteHeader(http.StatusTeapot)
				io.WriteString(w, "done")
			}, 200, "done"},
			{func(w http.ResponseWriter) { // a body after 204
				w.WriteHeader(204)
				if n, err := w.Write([]byte("x")); n != 0 || err != http.ErrBodyNotAllowed {
					t.Errorf("Write after 204: %d bytes, %v", n, err)
				}
			}, 204, ""},
			{func(w http.ResponseWriter) { // the connection
				if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
					t.Error("a recorder was hijacked")
				}
				w.Write([]byte("plain"))
			}, 200, "plain"},
		} {
			h := newRig(t, nil, idempotency.Config{}).m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { x.handler(w) }))
			send(t, h, request("k")).ran(t, x.status, x.body)
			send(t, h, request("k")).replays(t, x.status, x.body)
		}
	})
}

// A proxy under the middleware, as it comes: it flushes, and copies what it is given.
func TestReverseProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		backend := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Backend", "yes")
			w.WriteHeader(202)
			fmt.Fprintf(w, "%s of %d bytes, time %d", b, r.ContentLength, n)
		}))
		target, _ := url.Parse(backend.URL)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval, proxy.Transport = -1, backend.Client().Transport
		send, _ := served(t, idempotency.Config{}, proxy.ServeHTTP)
		for i := range 2 {
			got := resultOf(t, send("k"))
			if got.status != 202 || got.body != "100 of 3 bytes, time 1" || got.replayed != (i == 1) || got.header.Get("X-Backend") != "yes" {
				t.Errorf("time %d: %+v", i, got)
			}
		}
	})
}

// The statuses that a ResponseWriter takes are recorded, and those that it does not take
// are not: it panics, as it does without the middleware.
func TestEveryStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, want := range map[int]int{99: 0, 100: 200, 199: 200, 200: 200, 999: 999, 1000: 0} {
			c := &counter{do: func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }}
			h := newRig(t, nil, idempotency.Config{}).m.Wrap(c)
			if want == 0 {
				if panics(t, h, request("k")) == nil {
					t.Errorf("status %d was taken", status)
				}
				send(t, h, request("k")).is(t, 409, "outcome-unknown")
				continue
			}
			h.ServeHTTP(httptest.NewRecorder(), request("k"))
			if got := send(t, h, request("k")); got.status != want || !got.replayed {
				t.Errorf("status %d: later %d, replayed %v; want %d, replayed", status, got.status, got.replayed, want)
			}
			c.times(t, 1)
		}
	})
}

// trickle gives out n bytes, at most step at a time, and notes how much room it was
// offered beyond what it had given.
type trickle struct {
	n, step, given int
	t              *testing.T
}

func (r *trickle) Read(p []byte) (int, error) {
	if limit := 2*r.given + 8<<10; len(p) > limit {
		r.t.Fatalf("after %d bytes have arrived, room is made for %d", r.given, len(p))
	}
	if r.given == r.n {
		return 0, io.EOF
	}
	n := min(len(p), r.step, r.n-r.given)
	for i := range p[:n] {
		p[i] = byte((r.given + i) % 251)
	}
	r.given += n
	return n, nil
}

// A body takes as much memory as has arrived of it, whatever length was announced: a
// thousand connections that announce a MiB and send a byte are not a GiB.
func TestRule19MemoryGrowsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []int{1, 1000, 1 << 20} {
			const size = 100_000
			whole := make([]byte, size)
			for i := range whole {
				whole[i] = byte(i % 251)
			}
			ran := false
			h := newRig(t, nil, idempotency.Config{}).m.Wrap(&counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				ran = err == nil && bytes.Equal(b, whole)
			}})
			req := request("k")
			req.Body = io.NopCloser(&trickle{n: size, step: step, t: t})
			req.ContentLength = size
			h.ServeHTTP(httptest.NewRecorder(), req)
			if !ran {
				t.Errorf("%d bytes at a time: the handler did not get the body", step)
			}
		}
	})
}

// A handler gets a body, or none, as net/http would give it: a proxy that stands there sends
// on what it got.
func TestTheBodyOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, body := range []string{"", "100"} {
			h := newRig(t, nil, idempotency.Config{}).m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				if string(got) != body || err != nil || r.ContentLength != int64(len(body)) || (r.Body == http.NoBody) != (body == "") {
					t.Errorf("of %q the handler gets %q, %v, of length %d; no body: %v", body, got, err, r.ContentLength, r.Body == http.NoBody)
				}
			}))
			send(t, h, requestOf(http.MethodPost, "/pay", "k", body)).ran(t, 200, "")
		}
	})
}
