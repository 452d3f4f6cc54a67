//go:build servers

package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// zeros is a body of so many bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sides runs a test for HTTP/1.1 and HTTP/2 at the door and at the upstream.
func sides(t *testing.T, h http.HandlerFunc, test func(t *testing.T, r *running, c *http.Client)) {
	to := server(t, h)
	for _, http2 := range []bool{false, true} {
		for _, scheme := range []string{"http", "h2c"} {
			t.Run(fmt.Sprintf("http2=%v to %s", http2, scheme), func(t *testing.T) {
				test(t, upstream(t, proxy.Upstream{To: []string{scheme + "://" + to}}), client(t, http2))
			})
		}
	}
}

// 100 MB pass in both directions in constant memory. This test must not run beside others.
func TestLargeBodiesInConstantMemory(t *testing.T) {
	const size = 100 << 20
	sides(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if n != size || err != nil {
			t.Errorf("upload: %d bytes, %v", n, err)
		}
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		io.Copy(w, zeros(size))
	}, func(t *testing.T, r *running, c *http.Client) {
		for _, path := range []string{"/known", "/unknown"} {
			req := must.Have(http.NewRequest("PUT", r.url()+path, zeros(size)))
			if path == "/known" {
				req.ContentLength = size
			}
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			stop, most := make(chan bool), make(chan uint64)
			go func() {
				var peak uint64
				for {
					select {
					case <-stop:
						most <- peak
						return
					case <-time.After(5 * time.Millisecond):
						runtime.ReadMemStats(&now)
						peak = max(peak, now.HeapAlloc)
					}
				}
			}()
			resp := must.Have(c.Do(req))
			n, err := io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			close(stop)
			peak := <-most
			if n != size || err != nil {
				t.Errorf("download: %d bytes, %v", n, err)
			}
			if peak > before.HeapAlloc+24<<20 {
				t.Errorf("%s: the heap grew by %d MB", path, (peak-before.HeapAlloc)>>20)
			}
			one := r.record()
			check.Equal(t, one.BytesIn, size, "BytesIn")
			check.Equal(t, one.BytesOut, size, "BytesOut")
		}
	})
}

// A response may begin while the request is still being sent, and both go on.
func TestResponseBeginsBeforeTheRequestEnds(t *testing.T) {
	t.Parallel()
	sides(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.WriteHeader(200)
		control.Flush()
		line := make([]byte, 2)
		for {
			if _, err := io.ReadFull(r.Body, line); err != nil {
				return
			}
			w.Write(bytes.ToUpper(line))
			control.Flush()
		}
	}, func(t *testing.T, r *running, c *http.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), patience())
		defer cancel()
		body, write := io.Pipe()
		resp, err := c.Do(must.Have(http.NewRequestWithContext(ctx, "POST", r.url(), body)))
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 2)
		for _, one := range []string{"ab", "cd", "ef"} {
			write.Write([]byte(one))
			if _, err := io.ReadFull(resp.Body, answer); err != nil || string(answer) != strings.ToUpper(one) {
				t.Fatalf("%q came back for %q: %v", answer, one, err)
			}
		}
		write.Close()
		if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
			t.Errorf("at the end: %q, %v", rest, err)
		}
	})
}

// A server that refuses an upload is heard at once, whatever of it is still to be sent.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 413} {
		sides(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // otherwise net/http first reads 256 KB
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Length", "7")
			w.WriteHeader(status)
			io.WriteString(w, "refused")
		}, func(t *testing.T, r *running, c *http.Client) {
			for _, size := range []int64{100 << 10, 50 << 20, -1} {
				// A body that stays open: only the answer can end the request.
				body, write := io.Pipe()
				sent := size - 1
				if size < 0 {
					sent = 1 << 20
				}
				go io.Copy(write, zeros(sent))
				ctx, cancel := context.WithTimeout(t.Context(), patience())
				context.AfterFunc(ctx, func() { write.Close() }) // net/http waits for the Read
				req := must.Have(http.NewRequestWithContext(ctx, "POST", r.url(), body))
				req.ContentLength = size
				resp, err := c.Do(req)
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				text, err := io.ReadAll(resp.Body)
				if resp.StatusCode != status || string(text) != "refused" || err != nil {
					t.Errorf("%d bytes: %d %q, %v", size, resp.StatusCode, text, err)
				}
				body.Close()
				cancel()
				one := r.record()
				check.Equal(t, one.Status, status, "status of the record")
				check.Equal(t, one.Own, false, "Own")
			}
		})
	}
}

// If the client disappears in the middle of an upload, the upstream sees a cut, and never a complete request.
func TestClientDisappears(t *testing.T) {
	t.Parallel()
	ends, begun := make(chan error, 1), make(chan bool, 1)
	sides(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.WriteHeader(200)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			ends <- r.Context().Err()
			return
		}
		io.ReadFull(r.Body, make([]byte, 5))
		begun <- true
		_, err := io.ReadAll(r.Body)
		ends <- err
	}, func(t *testing.T, r *running, c *http.Client) {
		for _, how := range []string{"POST known", "POST unknown", "PUT small", "GET"} {
			ctx, cancel := context.WithCancel(t.Context())
			method, _, _ := strings.Cut(how, " ")
			body, write := io.Pipe()
			req := must.Have(http.NewRequestWithContext(ctx, method, r.url(), body))
			switch how {
			case "POST known":
				req.ContentLength = 5 << 20
			case "PUT small": // kept to be sent again
				req.ContentLength = 1000
			case "GET":
				req.Body = nil
			}
			go func() {
				if resp, err := c.Do(req); err == nil {
					begun <- true
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			if method != "GET" {
				write.Write([]byte("hello"))
			}
			wait(t, begun, how+": the upstream's beginning")
			cancel()
			if err := wait(t, ends, how+": the upstream's end"); err == nil {
				t.Errorf("%s: the upstream got a complete request", how)
			}
			one := r.record()
			check.Equal(t, one.Status, map[bool]int{true: 499, false: 200}[method != "GET"], "%s: status of the record", how)
			check.Equal(t, one.BytesIn, map[bool]int64{true: 5}[method != "GET"], "%s: BytesIn", how)
			write.Close()
		}
	})
}

// If the upstream breaks off in the middle of a response, the client sees a cut, and never a complete response.
func TestUpstreamDisappears(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, func(w *wire) {
			w.head()
			text := "hello"
			if strings.HasPrefix(head, "T") {
				text = "5\r\nhello\r\n"
			}
			w.send("HTTP/1.1 200 OK\r\n" + head + "\r\n\r\n" + text)
		})}})
		for _, http2 := range []bool{false, true} {
			resp := must.Have(client(t, http2).Get(r.url()))
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "hello" || err == nil {
				t.Errorf("%s, http2=%v: %q, %v", head, http2, body, err)
			}
			one := r.record()
			check.Equal(t, one.Status, 200, "status")
			check.Equal(t, one.BytesOut, 5, "BytesOut")
			if one.Error == "" {
				t.Errorf("%s: the record has no error", head)
			}
			r.noMore()
		}
	}
}

// With Expect: 100-continue the client sends its body when the upstream asks for it, and not before.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	asked := make(chan bool)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, func(w *wire) {
		head := strings.Join(w.head(), "\n")
		if !strings.Contains(head, "Expect: 100-continue") {
			t.Errorf("no Expect in %q", head)
		}
		<-asked
		if strings.HasPrefix(head, "PUT /refused") {
			w.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
			return
		}
		w.send("HTTP/1.1 100 Continue\r\n\r\n")
		w.expect("hello")
		w.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})}})
	for _, path := range []string{"/refused", "/taken"} {
		w := r.dial("service", "PUT "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		w.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if got, err := w.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("before the upstream has asked for the body: %q, %v", got, err)
		}
		w.SetReadDeadline(time.Now().Add(patience()))
		asked <- true
		if path == "/refused" {
			resp := w.response("PUT")
			check.Equal(t, resp.StatusCode, 417, "status")
			check.Equal(t, string(must.Have(io.ReadAll(resp.Body))), "no", "body")
			continue
		}
		w.expect("HTTP/1.1 100 Continue\r\n\r\n")
		w.send("hello")
		check.Equal(t, w.response("PUT").StatusCode, 200, "status")
	}
}

// Events, a chunked body without an end, and a body of known length that comes slowly reach the client as they come.
func TestNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	next := make(chan bool)
	sides(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
		case "/known":
			w.Header().Set("Content-Length", "15")
		}
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		for range 3 {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			io.WriteString(w, "data\n")
			http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, r *running, c *http.Client) {
		for _, path := range []string{"/events", "/chunked", "/known"} {
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			resp, err := c.Do(must.Have(http.NewRequestWithContext(ctx, "GET", r.url()+path, nil)))
			if err != nil {
				t.Fatalf("%s: the header: %v", path, err)
			}
			for range 3 {
				next <- true
				line := make([]byte, 5)
				if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "data\n" {
					t.Fatalf("%s: %q, %v", path, line, err)
				}
			}
			resp.Body.Close()
			cancel()
		}
	})
}

// What was set for the final response is still there after an informational one.
func TestInformationalKeepsTheHeader(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	failures.Store(1)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(103)
		w.Header().Del("Link")
		if failures.Add(-1) >= 0 {
			w.WriteHeader(503)
		}
	})}})
	w := r.dial("service", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for i := range 2 {
		if head := strings.Join(w.head(), "\n"); !strings.HasPrefix(head, "HTTP/1.1 103 ") || !strings.Contains(head, "Link: </a.css>") || strings.Contains(head, "Lull") {
			t.Fatalf("informational response %d: %q", i+1, head)
		}
	}
	resp := w.response("GET")
	check.Equal(t, resp.StatusCode, 200, "status")
	check.Equal(t, resp.Header.Get("Link"), "", "Link")
	check.Equal(t, resp.Header.Get("Lull"), "1", "Lull")
	check.Equal(t, resp.Header.Get("Lull-Attempts"), "2", "Lull-Attempts")
	check.Equal(t, r.record().Status, 200, "status of the record")
}

// A body of unknown length is sent again with its trailer when the request is repeated.
func TestBodyIsSentAgain(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 10)
	failures := new(atomic.Int32)
	sides(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bodies <- fmt.Sprint(string(body), r.Trailer.Get("Sum"), err)
		if failures.Add(-1) >= 0 {
			w.WriteHeader(502)
		}
	}, func(t *testing.T, r *running, c *http.Client) {
		failures.Store(2)
		req := must.Have(http.NewRequest("PUT", r.url(), io.MultiReader(strings.NewReader("hello"))))
		req.Trailer = http.Header{"Sum": {"77"}}
		resp, _ := do(t, c, req)
		check.Equal(t, resp.StatusCode, 200, "status")
		for range 3 {
			check.Equal(t, <-bodies, "hello77<nil>", "body")
		}
		check.Equal(t, r.record().BytesIn, 5, "BytesIn")
	})
}
