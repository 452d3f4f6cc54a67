package lullhttp_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// plainAndLull runs test with a transport of net/http, and with lull above one.
func plainAndLull(t *testing.T, test func(*testing.T, http.RoundTripper)) {
	for _, name := range []string{"plain", "lull"} {
		run(t, name, func(t *testing.T) {
			base := memnet.Transport(t)
			if name == "plain" {
				test(t, base)
				return
			}
			test(t, client(t, eager, lullhttp.WithBase(base)).Transport)
		})
	}
}

// lastWords switches protocols, and answers what it has read up to the half-close.
func lastWords(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "words")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	heard, _ := io.ReadAll(rw)
	fmt.Fprintf(conn, "heard %q", heard)
}

func upgrade(t *testing.T, url string) *http.Request {
	req := must(http.NewRequest("GET", url, nil))
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "words")
	return req
}

// Rule 20: whoever has switched protocols can end one direction, and hear the last words
// of the other.
func TestRule20AnUpgradeKeepsItsHalfClose(t *testing.T) {
	plainAndLull(t, func(t *testing.T, rt http.RoundTripper) {
		s, _ := server(t, lastWords)
		resp := sent(t, rt, upgrade(t, s.URL))
		rwc, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("the body of a 101, a %T, is no ReadWriteCloser", resp.Body)
		}
		io.WriteString(rwc, "goodbye")
		half, ok := resp.Body.(interface{ CloseWrite() error })
		if !ok {
			t.Fatalf("the body of a 101, a %T, has no CloseWrite", resp.Body)
		}
		if err := half.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, read(t, resp, nil), `heard "goodbye"`, "the server's last words")
	})
}

// halfClosed is a body that is written to, of a connection without a half-close.
type pipeBody struct {
	io.Reader
	io.Writer
	io.Closer
}

// An attempt's context outlives one direction of a connection that switched protocols,
// and CloseWrite is an error where the connection has none, as in net/http.
func TestRule20AnUpgradesContextEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			return &http.Response{StatusCode: 101, Body: pipeBody{strings.NewReader("bye"), io.Discard, io.NopCloser(nil)}}, nil
		})
		resp := sent(t, client(t, eager, lullhttp.WithBase(base)).Transport, upgrade(t, "http://example.test/"))
		if got, err := io.ReadAll(resp.Body); string(got) != "bye" || err != nil || ctx.Err() != nil {
			t.Errorf("read %q, %v; the context is %v", got, err, ctx.Err())
		}
		if err := resp.Body.(interface{ CloseWrite() error }).CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("CloseWrite: %v, want http.ErrNotSupported", err)
		}
		resp.Body.Close()
		if ctx.Err() == nil {
			t.Error("the context goes on after Close")
		}
	})
}

// A response without a body releases its attempt's context at once, since nobody need
// close it; one with a body when that is read or closed.
func TestTheAttemptsContextIsReleased(t *testing.T) {
	http2Empty := struct{ io.ReadCloser }{io.NopCloser(strings.NewReader(""))}
	for name, c := range map[string]struct {
		method string
		resp   http.Response
		after  string // of RoundTrip, EOF, Close
	}{
		"NoBody":              {"GET", http.Response{StatusCode: 200, ProtoMajor: 2, Body: http.NoBody, ContentLength: -1}, "RoundTrip"},
		"HEAD":                {"HEAD", http.Response{StatusCode: 200, ProtoMajor: 1, Body: http2Empty, ContentLength: 10}, "RoundTrip"},
		"204":                 {"DELETE", http.Response{StatusCode: 204, ProtoMajor: 1, Body: http2Empty, ContentLength: -1}, "RoundTrip"},
		"304":                 {"GET", http.Response{StatusCode: 304, ProtoMajor: 1, Body: http2Empty, ContentLength: 10}, "RoundTrip"},
		"Content-Length 0":    {"GET", http.Response{StatusCode: 404, ProtoMajor: 1, Body: http2Empty}, "RoundTrip"},
		"an HTTP/2 stream":    {"GET", http.Response{StatusCode: 204, ProtoMajor: 2, Body: http2Empty}, "EOF"},
		"a body that is read": {"GET", http.Response{StatusCode: 200, ProtoMajor: 1, Body: io.NopCloser(strings.NewReader("body")), ContentLength: 4}, "EOF"},
		"a failure's body":    {"GET", http.Response{StatusCode: 404, ProtoMajor: 1, Body: io.NopCloser(strings.NewReader("body")), ContentLength: 4}, "EOF"},
	} {
		run(t, name, func(t *testing.T) {
			for _, read := range []bool{true, false} {
				var ctx context.Context
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					ctx = r.Context()
					resp := c.resp
					resp.Header = http.Header{}
					if resp.ContentLength == 4 {
						resp.Body = io.NopCloser(strings.NewReader("body"))
					}
					return &resp, nil
				})
				req, _ := http.NewRequest(c.method, "http://example.test/", nil)
				resp := sent(t, client(t, eager, lullhttp.WithBase(base)).Transport, req)
				if released := ctx.Err() != nil; released != (c.after == "RoundTrip") {
					t.Errorf("released with the response: %v", released)
				}
				if read {
					io.Copy(io.Discard, resp.Body)
				} else {
					resp.Body.Close()
				}
				if ctx.Err() == nil {
					t.Errorf("not released after all was read (%v) or closed", read)
				}
			}
		})
	}
}

// A server may answer before it has read the request. What is left of that is sent, though
// there is nothing to read of the answer any more.
func TestAnEarlyAnswerDoesNotCutTheUpload(t *testing.T) {
	for _, response := range []string{"", "body"} {
		run(t, "response "+response, func(t *testing.T) {
			var ctx context.Context
			var upload io.ReadCloser
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				ctx, upload = r.Context(), r.Body
				if response == "" {
					return &http.Response{StatusCode: 204, ProtoMajor: 2, Body: http.NoBody}, nil
				}
				return &http.Response{StatusCode: 200, ProtoMajor: 2, Body: io.NopCloser(strings.NewReader(response)), ContentLength: -1}, nil
			})
			req, _ := http.NewRequest("PUT", "http://example.test/", strings.NewReader("a long body"))
			resp := sent(t, client(t, eager, lullhttp.WithBase(base)).Transport, req)
			io.Copy(io.Discard, resp.Body)
			if sent, err := io.ReadAll(upload); string(sent) != "a long body" || err != nil || ctx.Err() != nil {
				t.Errorf("sent %q, %v; the context is %v", sent, err, ctx.Err())
			}
			upload.Close()
			if ctx.Err() == nil {
				t.Error("the context goes on after all has been sent")
			}
		})
	}
}

// Rule 20: what else http.DefaultTransport carries.
func TestRule20WhatPassesThrough(t *testing.T) {
	t.Run("trailers and gzip", func(t *testing.T) {
		plainAndLull(t, func(t *testing.T, rt http.RoundTripper) {
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Trailer", "X-Sum")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				fmt.Fprint(z, r.Trailer.Get("X-Count"))
				z.Close()
				w.Header().Set("X-Sum", "1")
			})
			body, write := io.Pipe()
			req, _ := http.NewRequest("PUT", s.URL, body)
			req.Trailer = http.Header{"X-Count": nil}
			go func() {
				io.WriteString(write, "content")
				req.Trailer.Set("X-Count", "7")
				write.Close()
			}()
			resp, err := rt.RoundTrip(req)
			if got := read(t, resp, err); got != "7" || resp.Trailer.Get("X-Sum") != "1" || !resp.Uncompressed {
				t.Errorf("body %q, trailer %v, uncompressed %v", got, resp.Trailer, resp.Uncompressed)
			}
		})
	})
	t.Run("informational responses", func(t *testing.T) {
		plainAndLull(t, func(t *testing.T, rt http.RoundTripper) {
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusEarlyHints)
				io.Copy(w, r.Body) // sends 100 Continue first
			})
			var seen []int
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { seen = append(seen, code); return nil },
			})
			req, _ := http.NewRequestWithContext(ctx, "PUT", s.URL, strings.NewReader("body"))
			req.Header.Set("Expect", "100-continue")
			resp, err := rt.RoundTrip(req)
			if got := read(t, resp, err); got != "body" || fmt.Sprint(seen) != "[103 100]" {
				t.Errorf("%q after %v", got, seen)
			}
		})
	})
	t.Run("both directions at once", func(t *testing.T) {
		plainAndLull(t, func(t *testing.T, _ http.RoundTripper) {
			s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				rc.Flush()
				for b := make([]byte, 1); ; rc.Flush() {
					n, err := r.Body.Read(b)
					w.Write(b[:n])
					if err != nil {
						return
					}
				}
			}))
			s.EnableHTTP2 = true
			memnet.StartTLS(s)
			rt := s.Client().Transport
			if strings.HasSuffix(t.Name(), "lull") {
				rt = client(t, eager, lullhttp.WithBase(rt)).Transport
			}
			body, write := io.Pipe()
			req, _ := http.NewRequest("POST", s.URL, body)
			resp := sent(t, rt, req)
			for _, c := range []byte("hello") {
				write.Write([]byte{c})
				var echo [1]byte
				if _, err := io.ReadFull(resp.Body, echo[:]); err != nil || echo[0] != c {
					t.Fatalf("%q, %v; want %q", echo, err, c)
				}
			}
			write.Close()
			read(t, resp, nil)
		})
	})
}

// Rule 7: a shared pool is never flushed, not even when a call gives up. The base transport is found by those who look for
// it, and its pool is closed by those who ask for that.
func TestRule07TheBaseTransportIsInReach(t *testing.T) {
	base := &closable{}
	cl := client(t, eager, lullhttp.WithBase(base))
	wrapper, ok := cl.Transport.(interface{ WrappedRoundTripper() http.RoundTripper })
	if !ok || wrapper.WrappedRoundTripper() != base {
		t.Error("WrappedRoundTripper does not return the base transport")
	}
	if _, err := cl.Get(host); err == nil || base.closed != 0 {
		t.Errorf("closed %d times by a call that ended with %v", base.closed, err)
	}
	cl.CloseIdleConnections()
	check.Equal(t, base.closed, 1, "how often it was closed")
	client(t, eager, lullhttp.WithBase(roundTripper(nil))).CloseIdleConnections() // has nothing to close
}

type closable struct{ closed int }

func (c *closable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("not called")
}
func (c *closable) CloseIdleConnections() { c.closed++ }

// An upload takes as long as it takes: AttemptTimeout bounds how long it stands still, and
// then how long the response takes.
func TestAnUploadThatMakesProgressIsNotTimedOut(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Deadline, p.Attempts = time.Second, 20*time.Second, 1
	for name, c := range map[string]struct {
		length int64 // of 6 pieces of 20 KiB; -1: unknown, 6: pieces of one byte, of unknown length
		every  time.Duration
		answer time.Duration
		ok     bool
		after  time.Duration
	}{
		"flows":                 {-1, 600 * time.Millisecond, 900 * time.Millisecond, true, 4500 * time.Millisecond},
		"flows, length known":   {120 << 10, 600 * time.Millisecond, 900 * time.Millisecond, true, 4500 * time.Millisecond},
		"stands still":          {-1, 1100 * time.Millisecond, 0, false, 1100 * time.Millisecond}, // net/http returns when the body does
		"the answer is slow":    {-1, 600 * time.Millisecond, 1100 * time.Millisecond, false, 4600 * time.Millisecond},
		"flows by single bytes": {6, 600 * time.Millisecond, 900 * time.Millisecond, true, 4500 * time.Millisecond},
		"almost stands still":   {-1, 990 * time.Millisecond, 900 * time.Millisecond, true, 6840 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
				if left, bounded := lullhttp.ParseTimeout(r.Header); bounded {
					t.Errorf("the server is told to answer within %v", left)
				}
				io.Copy(io.Discard, r.Body)
				time.Sleep(c.answer)
			}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				body, write := io.Pipe()
				piece, length := 20<<10, c.length
				if length == 6 {
					piece, length = 1, -1
				}
				go func() {
					for range 6 {
						time.Sleep(c.every)
						if _, err := write.Write(make([]byte, piece)); err != nil {
							return
						}
					}
					write.Close()
				}()
				req, _ := http.NewRequest("PUT", "http://example.test/", body)
				req.ContentLength = length
				start := time.Now()
				resp, err := cl.Do(req)
				if (err == nil) != c.ok || time.Since(start) != c.after {
					t.Errorf("%v after %v; want success: %v, after %v", err, time.Since(start), c.ok, c.after)
				}
				if err == nil {
					read(t, resp, err)
				}
				body.Close()
				time.Sleep(2 * time.Second) // for who still waits in the bubble
			}, sendsTime)
		})
	}
}

// Rule 23: the time in which an attempt waits for the caller's body is not the dependency's, also if the body is short. If the
// body stands still for longer than an attempt may, the call ends, and nothing is repeated.
func TestRule23ASlowSender(t *testing.T) {
	p := lull.Policy{AttemptTimeout: 3 * time.Second, Attempts: 4, Deadline: time.Hour}
	for name, c := range map[string]struct {
		length, replay int64
		every, end     time.Duration // between two bytes, and to the end
		answer         time.Duration
		reason         engine.Reason
	}{
		"short":                          {10, 0, time.Second, 0, 2 * time.Second, engine.Success},
		"short, kept":                    {10, 100, time.Second, 0, 2 * time.Second, engine.Success},
		"unknown":                        {-1, 0, time.Second, 2 * time.Second, 2 * time.Second, engine.Success},
		"unknown, kept":                  {-1, 100, time.Second, 2 * time.Second, 2 * time.Second, engine.Success},
		"short, stands still":            {10, 0, 4 * time.Second, 0, 0, engine.Permanent},
		"short, kept, stands still":      {10, 100, 4 * time.Second, 0, 0, engine.Permanent},
		"unknown, kept, stands still":    {-1, 100, 4 * time.Second, 0, 0, engine.Permanent},
		"unknown, kept, without its end": {-1, 100, time.Second, time.Minute, 0, engine.Permanent},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var n atomic.Int64
					s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						n.Add(1)
						io.Copy(io.Discard, r.Body)
						time.Sleep(c.answer)
					}))
					s.EnableHTTP2 = h2
					memnet.StartTLS(s)
					var last lull.Event
					o := lullhttp.WithObserver(observe(func(e lull.Event) { last = e }))
					options := []lullhttp.Option{lullhttp.WithBase(s.Client().Transport), o}
					if c.replay > 0 {
						options = append(options, lullhttp.WithReplay(c.replay))
					}
					body, write := io.Pipe()
					go func() {
						for range 10 {
							time.Sleep(c.every)
							if _, err := write.Write([]byte("x")); err != nil {
								return
							}
						}
						time.Sleep(c.end)
						write.Close()
					}()
					rt := transport(t, p, options...)
					req, _ := http.NewRequest("PUT", s.URL, body)
					req.ContentLength = c.length
					d := rt.Dependency(req)
					full := d.Budget().Balance(d.Now())
					resp, err := rt.RoundTrip(req)
					if err == nil {
						read(t, resp, err)
					}
					if last.Reason != c.reason || (err == nil) != (c.reason == engine.Success) || n.Load() != 1 || d.Budget().Balance(d.Now()) != full {
						t.Errorf("%v after %d requests, %+v, %v", last.Reason, n.Load(), last.Verdict, err)
					}
					if err != nil && (last.Verdict != lull.Verdict{Kind: engine.KindCallerSide, Code: engine.CodeTimeout}) {
						t.Errorf("%+v", last.Verdict)
					}
					body.Close()
					time.Sleep(time.Minute)
				})
			})
		}
	}
}

// A body that the system takes at once is no upload: what counts is the time for the
// response.
func TestAShortBodyDoesNotExtendTheTimeout(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Attempts = time.Second, 1
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		if left, _ := lullhttp.ParseTimeout(r.Header); left != time.Second {
			t.Errorf("the server is told to answer within %v", left)
		}
		time.Sleep(700 * time.Millisecond)
		io.Copy(io.Discard, r.Body)
		time.Sleep(700 * time.Millisecond)
	}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		start := time.Now()
		req, _ := http.NewRequest("PUT", "http://example.test/", strings.NewReader(strings.Repeat("x", 60<<10)))
		_, err := cl.Do(req)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second) // for the handler
	}, sendsTime)
}

// http.Transport takes another body by GetBody when it repeats a request on a new
// connection. That one's progress counts as well, and so does its end.
func TestTheBodyThatTheBaseTakesMakesProgress(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Attempts = time.Second, 1
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		var body io.ReadCloser
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			ctx = r.Context()
			var err error
			if body, err = r.GetBody(); err != nil {
				return nil, err
			}
			for range 4 {
				time.Sleep(900 * time.Millisecond)
				if _, err := body.Read(make([]byte, 20<<10)); err != nil || ctx.Err() != nil {
					return nil, errors.Join(err, ctx.Err())
				}
			}
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		})
		rt := transport(t, p, lullhttp.WithBase(base))
		req, _ := http.NewRequest("PUT", "http://example.test/", strings.NewReader(strings.Repeat("x", 100<<10)))
		sent(t, rt, req)
		if ctx.Err() != nil {
			t.Error("released while the second body was on its way")
		}
		body.Close()
		if ctx.Err() == nil {
			t.Error("not released with the second body")
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		if _, err := rt.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("GetBody failed, and RoundTrip returned %v", err)
		}
	})
}

// RFC 6265, 3: a user agent heeds the cookies of every answer. Those of answers that were discarded come
// with the answer of the call, before its own.
func TestCookiesOfDiscardedAnswers(t *testing.T) {
	for how, p := range map[string]lull.Policy{"plain": eager, "hedged": hedging} {
		run(t, how, func(t *testing.T) {
			var sent atomic.Int64
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				n := sent.Add(1)
				http.SetCookie(w, &http.Cookie{Name: "lb", Value: fmt.Sprint(n), Path: "/"})
				http.SetCookie(w, &http.Cookie{Name: fmt.Sprint("c", n), Value: "1", Path: "/"})
				if n == 1 {
					w.WriteHeader(503)
				}
			})
			cl := client(t, p)
			cl.Jar, _ = cookiejar.New(nil)
			resp, err := cl.Get(s.URL)
			read(t, resp, err)
			check.Slices(t, resp.Header["Set-Cookie"], []string{"lb=1; Path=/", "c1=1; Path=/", "lb=2; Path=/", "c2=1; Path=/"}, `resp.Header["Set-Cookie"]`)
			u, _ := url.Parse(s.URL)
			var got []string
			for _, c := range cl.Jar.Cookies(u) {
				got = append(got, c.String())
			}
			if slices.Sort(got); !slices.Equal(got, []string{"c1=1", "c2=1", "lb=2"}) {
				t.Errorf("the jar has %q", got)
			}
		})
	}
}

// http.MaxBytesReader behind NewHandler cuts the body, and a 413 closes the connection, as without.
func TestMaxBytesReaderBehindNewHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10))
			if is, ok := errors.AsType[*http.MaxBytesError](err); !ok || is.Limit != 10 {
				t.Errorf("the body ends with %v", err)
				return
			}
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		})
		wrapped := must(lullhttp.NewHandler(limit))
		for name, h := range map[string]http.Handler{"without": limit, "with": wrapped} {
			for _, h2 := range []bool{false, true} {
				s := memnet.NewUnstartedServer(t, h)
				s.EnableHTTP2 = h2
				memnet.StartTLS(s)
				resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1000)))
				read(t, resp, err)
				if resp.StatusCode != 413 || resp.Close == h2 {
					t.Errorf("%s, HTTP/2 %v: %d, closed %v", name, h2, resp.StatusCode, resp.Close)
				}
				s.Close()
			}
		}
	})
}
