package lullhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

// onlySeeker is an io.ReadSeeker that http.NewRequest does not know.
type onlySeeker struct {
	io.ReadSeeker
	reads atomic.Int64
}

func (s *onlySeeker) Read(p []byte) (int, error) {
	n, err := s.ReadSeeker.Read(p)
	s.reads.Add(int64(n))
	return n, err
}

// Rule 6: a body that is a ReadSeeker, or no longer than a bound, is sent again whole, if
// that was asked for. Others are sent once.
func TestRule06Replay(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("skipped"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		body     func() io.Reader
		length   int64 // 0: unknown
		options  []lullhttp.Option
		attempts int
	}{
		{"off", func() io.Reader { return &onlySeeker{ReadSeeker: strings.NewReader(text)} }, 300_000, nil, 1},
		{"seeker", func() io.Reader { return &onlySeeker{ReadSeeker: strings.NewReader(text)} }, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 3},
		{"seeker of unknown length", func() io.Reader { return &onlySeeker{ReadSeeker: strings.NewReader(text)} }, 0, []lullhttp.Option{lullhttp.WithReplay(0)}, 3},
		{"seeker, not at its beginning", func() io.Reader {
			s := strings.NewReader("skipped" + text)
			s.Seek(7, io.SeekStart)
			return &onlySeeker{ReadSeeker: s}
		}, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 3},
		{"file", func() io.Reader {
			f := must(os.Open(file))
			f.Seek(7, io.SeekStart)
			return f
		}, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 3},
		{"stream", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 1},
		{"stream within the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(300_000)}, 3},
		{"stream beyond the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(299_999)}, 1},
		{"stream of unknown length", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 0, []lullhttp.Option{lullhttp.WithReplay(1 << 30)}, 3},
		{"stream of unknown length at the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, -1, []lullhttp.Option{lullhttp.WithReplay(300_000)}, 3},
		{"stream of unknown length beyond the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, -1, []lullhttp.Option{lullhttp.WithReplay(299_999)}, 1},
		{"stream of unknown length without a bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, -1, []lullhttp.Option{lullhttp.WithReplay(0)}, 1},
	} {
		run(t, c.name, func(t *testing.T) {
			var n atomic.Int64
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 1 && c.name == "seeker" {
					w.WriteHeader(503) // before the body has come
					return
				}
				b, err := io.ReadAll(r.Body)
				if err != nil || string(b) != text {
					t.Errorf("attempt %d: %d bytes, %v", n.Load(), len(b), err)
				}
				if n.Load() < 3 {
					w.WriteHeader(503)
				}
			})
			p := eager
			p.Attempts = 5
			req, _ := http.NewRequest("PUT", s.URL, c.body())
			req.ContentLength = c.length
			resp, err := client(t, p, c.options...).Do(req)
			if err != nil && c.attempts == 1 { // the server hung up while the body was on its way
				if n.Load() > 1 {
					t.Errorf("%d attempts", n.Load())
				}
				return
			}
			read(t, resp, err)
			if o := lullhttp.OutcomeOf(resp); o.Attempts != c.attempts || (o.Reason == engine.NotReplayable) != (c.attempts == 1) {
				t.Errorf("%+v; want %d attempts", o, c.attempts)
			}
		})
	}
}

// Rule 6: a body is not touched for the next attempt before the base transport has closed
// that of the last, and the caller's is closed once, when nobody reads it any more.
func TestRule06ReplayWaitsForTheTransport(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Int64
			source := &slowBody{r: strings.NewReader("0123456789"), closed: &closed}
			var body io.ReadCloser = source
			if limit == 0 {
				body = seekable{source}
			}
			n := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				n++
				if n < 3 {
					var p [3]byte
					io.ReadFull(req.Body, p[:])
					go func() { // it reads on after it has returned
						req.Body.Read(p[:])
						req.Body.Close()
						if _, err := req.Body.Read(p[:]); err == nil {
							t.Error("a closed body is read")
						}
					}()
					return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
				}
				got, err := io.ReadAll(req.Body)
				if string(got) != "0123456789" || err != nil {
					t.Errorf("attempt %d: %q, %v", n, got, err)
				}
				go func() {
					time.Sleep(time.Second)
					check.Equal(t, closed.Load(), 0, "how often the caller's body was closed while the transport held it")
					req.Body.Close()
					req.Body.Close()
				}()
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})
			cl := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(limit))
			req, _ := http.NewRequest("PUT", "http://example.test/", body)
			req.ContentLength = 10
			if _, err := cl.Do(req); err != nil || n != 3 {
				t.Errorf("%d attempts, %v", n, err)
			}
			time.Sleep(2 * time.Second)
			check.Equal(t, closed.Load(), 1, "how often the caller's body was closed")
		})
	}
}

// slowBody takes a while for each read, and notices two at a time.
type slowBody struct {
	r      *strings.Reader
	inside atomic.Int64
	closed *atomic.Int64
}

func (s *slowBody) Read(p []byte) (int, error) {
	if s.inside.Add(1) > 1 {
		panic("two reads at a time")
	}
	time.Sleep(100 * time.Millisecond)
	defer s.inside.Add(-1)
	return s.r.Read(p)
}

func (s *slowBody) Close() error { s.closed.Add(1); return nil }

type seekable struct{ *slowBody }

func (s seekable) Seek(offset int64, whence int) (int64, error) {
	if s.inside.Load() > 0 {
		panic("set back while it is read")
	}
	return s.r.Seek(offset, whence)
}

// A base transport that never closes a ReadSeeker ends the call: it is not read by two. What is kept needs no Close.
func TestRule06ReplayOfABodyThatIsNotClosed(t *testing.T) {
	for name, c := range map[string]struct {
		body io.Reader
		took time.Duration
		want string
	}{
		"seeker": {&onlySeeker{ReadSeeker: strings.NewReader("x")}, time.Second, "has not closed the body"},
		"kept":   {io.MultiReader(strings.NewReader("x")), 0, ""},
	} {
		run(t, name, func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})
			cl := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(10))
			req, _ := http.NewRequest("PUT", "http://example.test/", c.body)
			req.ContentLength = 1
			began := time.Now()
			resp, err := cl.Do(req)
			if c.want == "" {
				check.Equal(t, lullhttp.OutcomeOf(resp).Reason, engine.AttemptsExhausted, "reason")
			} else if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 2 || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			check.Equal(t, time.Since(began), c.took, "how long it took")
		})
	}
}

// A source of a body of unknown length, which the test writes to.
func pipe(t *testing.T) (*http.Request, *io.PipeWriter) {
	r, w := io.Pipe()
	req, _ := http.NewRequest("PUT", host, r)
	req.ContentLength = -1
	t.Cleanup(func() { w.Close() })
	return req, w
}

func answered(status int) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}, nil
}

func readBytes(t *testing.T, r io.Reader, n int) string {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	return string(b)
}

// Rule 6: a body of unknown length is sent again with what was kept and the rest of it, until more than the limit was read.
// Then the call ends with what the server said last.
func TestRule06ReplayOfUnknownLength(t *testing.T) {
	const text, limit = "0123456789abcdef", 10
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for name, c := range map[string]struct {
		reads    []int // by each attempt, before it fails; the last one succeeds with all
		err      error // nil: 503
		attempts int
		reason   engine.Reason
	}{
		"little was read":        {[]int{3, 0, 10, 16}, nil, 4, engine.Success},
		"little, and a reset":    {[]int{3, 7, 16}, reset, 3, engine.Success},
		"too much at once":       {[]int{11, 16}, nil, 1, engine.NotReplayable},
		"too much, and a reset":  {[]int{11, 16}, reset, 1, engine.NotReplayable},
		"too much at the second": {[]int{4, 12, 16}, nil, 2, engine.NotReplayable},
	} {
		for _, limited := range []bool{true, false} {
			run(t, name, func(t *testing.T) {
				made := 0
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					defer req.Body.Close()
					made++
					n := c.reads[made-1]
					check.Equal(t, readBytes(t, req.Body, n), text[:n], "attempt %d", made)
					switch {
					case made == len(c.reads):
						if rest, err := io.ReadAll(req.Body); len(rest) > 0 || err != nil {
							t.Errorf("%q, %v after the body", rest, err)
						}
						return answered(200)
					case c.err != nil:
						return nil, c.err
					}
					return answered(503)
				})
				p := eager
				p.Attempts = 5
				if !limited {
					p.AttemptTimeout = lull.NoTimeout
				}
				req, w := pipe(t)
				go func() {
					for i := range text {
						w.Write([]byte(text[i : i+1]))
					}
					w.Close()
				}()
				var last lull.Event
				o := lullhttp.WithObserver(observe(func(e lull.Event) { last = e }))
				resp, err := client(t, p, lullhttp.WithBase(base), lullhttp.WithReplay(limit), o).Do(req)
				if last.Reason != c.reason || made != c.attempts || last.Verdict.CallerSide() {
					t.Errorf("%v after %d attempts, %+v, %v", last.Reason, made, last.Verdict, err)
				}
				switch {
				case c.reason == engine.Success:
					check.Equal(t, resp.StatusCode, 200, "status")
				case c.err == nil:
					check.Equal(t, resp.StatusCode, 503, "status")
				case !errors.Is(err, lull.ErrNotReplayable) || !errors.Is(err, syscall.ECONNRESET):
					t.Error(err)
				}
			})
		}
	}
}

// Rule 6: a Read that is under way, or comes, when an attempt has failed takes nothing from the next one, and makes no
// body too long that was not. The next attempt may be answered before that Read ends.
func TestRule06ReplayWhileTheTransportReads(t *testing.T) {
	const never = -1
	for name, c := range map[string]struct {
		first string        // what the attempt reads
		then  string        // what the source has after that
		reads time.Duration // when the transport goes on reading after the failure
		want  engine.Reason
	}{
		"under way":                         {"0123", "45", never, engine.Success},
		"under way, up to the limit":        {"0123", "456789ab", never, engine.Success},
		"under way at the limit":            {"0123456789", "ab", never, engine.NotReplayable}, // it may be lost already
		"before the decision":               {"0123", "45", 2 * time.Millisecond, engine.Success},
		"before the decision, at the limit": {"0123456789", "ab", 2 * time.Millisecond, engine.Success},
		"during the wait":                   {"0123", "45", 100 * time.Millisecond, engine.Success},
		"during the wait, at the limit":     {"0123456789", "ab", 100 * time.Millisecond, engine.Success},
	} {
		run(t, name, func(t *testing.T) {
			req, w := pipe(t)
			made := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				if made++; made > 1 {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: req.Body}, nil
				}
				go func() {
					io.WriteString(w, c.first)
					time.Sleep(200 * time.Millisecond)
					if c.reads == never {
						time.Sleep(time.Minute) // the second attempt waits for it as well
					}
					io.WriteString(w, c.then+"rest")
					w.Close()
				}()
				readBytes(t, req.Body, len(c.first))
				go func() {
					time.Sleep(c.reads)
					io.Copy(io.Discard, req.Body)
					req.Body.Close()
				}()
				if c.reads == never {
					synctest.Wait()
				}
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
			})
			slowly := observe(func(e lull.Event) {
				if e.Kind == event.RetryScheduled {
					time.Sleep(10 * time.Millisecond)
				}
			})
			resp, err := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(10), lullhttp.WithObserver(slowly)).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			check.Equal(t, lullhttp.OutcomeOf(resp).Reason, c.want, "reason")
			if c.want == engine.Success {
				check.Equal(t, read(t, resp, nil), c.first+c.then+"rest", "what was sent")
			}
			time.Sleep(time.Hour)
		})
	}
}

// A base transport that repeats a refused stream by itself gets the body again, or the call ends without another attempt.
func TestRule06ReplayInTheBaseTransport(t *testing.T) {
	for n, want := range map[int]engine.Reason{10: engine.Success, 11: engine.NotReplayable} {
		run(t, fmt.Sprint(n), func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				readBytes(t, req.Body, n)
				req.Body.Close()
				body, err := req.GetBody()
				if err != nil {
					return nil, err
				}
				check.Equal(t, string(must(io.ReadAll(body))), strings.Repeat("x", 20), "the body")
				body.Close()
				return answered(200)
			})
			req, _ := http.NewRequest("PUT", host, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 20))})
			req.ContentLength = -1
			var reason engine.Reason
			o := lullhttp.WithObserver(observe(func(e lull.Event) { reason = e.Reason }))
			_, err := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(10), o).Do(req)
			if reason != want || (err == nil) != (want == engine.Success) {
				t.Errorf("%v, %v", reason, err)
			}
		})
	}
}

// Rule 20: a response may begin while the body is still read, and be the answer to a part of it. From then on nothing is
// kept, and whatever the status, the rest of the body goes on.
func TestRule20ReplayOfAStream(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		for _, before := range []int{4, 10} { // bytes that were read before the response
			run(t, fmt.Sprint(status), func(t *testing.T) {
				p := eager
				p.Attempts = 1
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					readBytes(t, req.Body, before)
					body, w := io.Pipe()
					go func() {
						n, err := io.Copy(w, req.Body)
						if err != nil || n != 1000 {
							t.Errorf("%d bytes, %v after the response", n, err)
						}
						req.Body.Close()
						w.Close()
					}()
					return &http.Response{StatusCode: status, Header: http.Header{}, Body: body}, nil
				})
				req, w := pipe(t)
				go w.Write(make([]byte, before))
				resp, err := client(t, p, lullhttp.WithBase(base), lullhttp.WithReplay(10)).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				for range 100 {
					go w.Write(make([]byte, 10))
					readBytes(t, resp.Body, 10)
				}
				w.Close()
				check.Equal(t, read(t, resp, nil), "", "the rest")
			})
		}
	}
}

// Rule 19: what was kept of a body is free when the response has begun, and never more than the limit.
func TestRule19ReplayForgets(t *testing.T) {
	const limit, calls = 3 << 20, 16
	synctest.Test(t, func(t *testing.T) {
		heap := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before, most := heap(), 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			io.CopyN(io.Discard, req.Body, limit)
			most = max(most, heap())
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: req.Body}, nil
		})
		cl := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(limit))
		var open []io.Closer
		for range calls {
			req, _ := http.NewRequest("PUT", host, struct{ io.Reader }{io.LimitReader(zeros{}, 2*limit)})
			req.ContentLength = -1
			open = append(open, must(cl.Do(req)).Body)
		}
		if held := most - before; held > limit*9/8 {
			t.Errorf("%d bytes at most, for a limit of %d and one call at a time", held, limit)
		}
		for _, c := range open {
			c.Close()
		}
	})
}

// Rule 19: what is kept of a body grows with what has been read of it.
func TestRule19ReplayKeepsWhatHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &recorder{status: 200}
		cl := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(1<<40))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, length := range []int64{1 << 30, 1 << 30, 1 << 30, -1, -1, -1} {
			req, _ := http.NewRequest("PUT", "http://example.test/", io.MultiReader(bytes.NewReader(nil)))
			req.ContentLength = length
			must(cl.Do(req))
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%d bytes for bodies of which nothing came", grown)
		}
	})
}

// An S3 PUT, whose body the SDK hides, is repeated as long as it is small.
func ExampleWithReplay() {
	server := flaky(1)
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithReplay(1<<20))
	if err != nil {
		panic(err)
	}
	req, _ := http.NewRequest("PUT", server.URL, io.MultiReader(strings.NewReader("object")))
	req.ContentLength = 6
	resp, err := client.Do(req)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, lullhttp.OutcomeOf(resp).Attempts)
	// Output: 200 2
}

var refusedDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// A body that can be read once is sent again as long as nothing was read of it, and closed in the end, whatever became of
// the call. What it was not given to any more cannot read it.
func TestABodyThatIsReadOnce(t *testing.T) {
	serve := func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(b)))}, nil
	}
	refuse := func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, refusedDial }
	unavailable := func(r *http.Request) (*http.Response, error) {
		r.Body.Close()
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	}
	type attempt func(*http.Request) (*http.Response, error)
	for name, c := range map[string]struct {
		attempts []attempt // the last one for ever
		cancel   bool      // the caller leaves during the first wait
		before   error     // of WithBeforeRetry
		want     engine.Reason
		made     int
	}{
		"served":                         {attempts: []attempt{serve}, want: engine.Success, made: 1},
		"refused, then served":           {attempts: []attempt{refuse, refuse, serve}, want: engine.Success, made: 3},
		"refused":                        {attempts: []attempt{refuse}, want: engine.AttemptsExhausted, made: 3},
		"refused, and the caller leaves": {attempts: []attempt{refuse, serve}, cancel: true, want: engine.Canceled, made: 1},
		"refused, and not prepared":      {attempts: []attempt{refuse, serve}, before: errors.New("no signature"), want: engine.Permanent, made: 1},
		"not closed at once": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			go func() {
				time.Sleep(time.Minute)
				r.Body.Close()
			}()
			return nil, refusedDial
		}, serve}, want: engine.Success, made: 2},
		"read too late": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			go func() {
				time.Sleep(time.Millisecond)
				if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
					t.Errorf("it was read by an attempt that had ended: %d, %v", n, err)
				}
				r.Body.Close()
			}()
			return nil, refusedDial
		}, serve}, want: engine.Success, made: 2},
		"read, then refused": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			r.Body.Read(make([]byte, 1))
			r.Body.Close()
			return nil, refusedDial
		}, serve}, want: engine.NotReplayable, made: 1},
		"an answer without reading it": {attempts: []attempt{unavailable, serve}, want: engine.NotReplayable, made: 1},
		"never closed":                 {attempts: []attempt{func(*http.Request) (*http.Response, error) { return nil, refusedDial }}, want: engine.AttemptsExhausted, made: 3},
		"a panic":                      {attempts: []attempt{func(r *http.Request) (*http.Response, error) { r.Body.Close(); panic("bug") }}, want: engine.Panicked, made: 1},
	} {
		for _, limit := range []time.Duration{0, lull.NoTimeout} {
			run(t, name, func(t *testing.T) {
				p := eager
				p.AttemptTimeout = limit
				p.Backoff.Base = 10 * time.Millisecond
				made := 0
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					made++
					return c.attempts[min(made, len(c.attempts))-1](r)
				})
				var reason engine.Reason
				options := []lullhttp.Option{lullhttp.WithBase(base), lullhttp.WithObserver(observe(func(e lull.Event) { reason = e.Reason }))}
				if c.before != nil {
					options = append(options, lullhttp.WithBeforeRetry(func(*http.Request, error) error { return c.before }))
				}
				body := &trackedBody{r: strings.NewReader("hello")}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(time.Millisecond, cancel)
				}
				req, _ := http.NewRequestWithContext(ctx, "PUT", host, body)
				rt := client(t, p, options...).Transport
				var resp *http.Response
				err := recovered(func() (err error) { resp, err = rt.RoundTrip(req); return err })
				if reason != c.want || made != c.made {
					t.Errorf("%v after %d attempts: %v", reason, made, err)
				}
				if c.want == engine.Success {
					check.Equal(t, read(t, resp, err), "hello", "what was sent")
				}
				synctest.Wait()
				if body.closed.Load() == 0 || body.late.Load() {
					t.Errorf("closed %d times, read afterwards: %v", body.closed.Load(), body.late.Load())
				}
				time.Sleep(time.Hour)
			})
		}
	}
}

// recovered is the error of f, or that it panicked.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic")
		}
	}()
	return f()
}

// What may have been sent is not repeated, whatever the error says, if the operation is not safe to repeat.
func TestWhatMayHaveBeenSentIsNotRepeated(t *testing.T) {
	cut := errors.New("cut")
	for name, base := range map[string]func(t *testing.T) http.RoundTripper{
		"the connection is cut": func(t *testing.T) http.RoundTripper {
			return handled(func(conn net.Conn, _ int) { conn.Read(make([]byte, 1<<14)) })
		},
		"the server is silent": func(t *testing.T) http.RoundTripper {
			return handled(func(conn net.Conn, _ int) { io.Copy(io.Discard, conn) })
		},
		"a transport that reports nothing": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, io.ErrUnexpectedEOF })
		},
		"a transport that reports and sends by other means": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				httptrace.ContextClientTrace(r.Context()).GetConn("example.test:80")
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				return nil, io.ErrUnexpectedEOF
			})
		},
		"a transport that had a connection once": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("example.test:80")
				trace.GotConn(httptrace.GotConnInfo{})
				trace.GetConn("example.test:80")
				r.Body.Close()
				return nil, io.ErrUnexpectedEOF
			})
		},
		"an unknown error before a connection": func(t *testing.T) http.RoundTripper {
			return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, cut }}
		},
	} {
		run(t, name, func(t *testing.T) {
			made := 0
			inner := base(t)
			counted := roundTripper(func(r *http.Request) (*http.Response, error) { made++; return inner.RoundTrip(r) })
			req, _ := http.NewRequest("POST", host, strings.NewReader("hello"))
			_, err := client(t, eager, lullhttp.WithBase(counted)).Transport.RoundTrip(req)
			if err == nil || made != 1 {
				t.Errorf("%v after %d attempts", err, made)
			}
			if tr, ok := inner.(*http.Transport); ok {
				tr.CloseIdleConnections()
			}
		})
	}
}

// The caller's own trace hears all that it would hear without lull.
func TestTheCallersTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.NewServer(t, http.NotFoundHandler())
		for _, limit := range []int{0, 1} {
			tr := &http.Transport{DialContext: memnet.Dial, MaxConnsPerHost: limit}
			for _, rt := range []http.RoundTripper{tr, client(t, eager, lullhttp.WithBase(tr)).Transport} {
				var heard []string
				note := func(what string) { heard = append(heard, what) }
				trace := &httptrace.ClientTrace{
					GetConn:              func(string) { note("GetConn") },
					ConnectStart:         func(string, string) { note("ConnectStart") },
					GotConn:              func(httptrace.GotConnInfo) { note("GotConn") },
					WroteHeaders:         func() { note("WroteHeaders") },
					GotFirstResponseByte: func() { note("GotFirstResponseByte") },
				}
				req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "POST", s.URL, nil)
				resp, err := rt.RoundTrip(req)
				read(t, resp, err)
				tr.CloseIdleConnections()
				check.Equal(t, strings.Join(heard, " "), "GetConn ConnectStart GotConn WroteHeaders GotFirstResponseByte", "%T, limit %d", rt, limit)
			}
		}
	})
}

// Rule 6, over real connections and with random times: an attempt that reads all of a body has the whole of it, whatever
// became of the attempts before, and what can be repeated is.
func TestRule06ReplayedBodiesAreWhole(t *testing.T) {
	const limit = 20_000
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			random := seed.Source(t)
			draw := func(n int) int { return int(random() % uint64(n)) }
			s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				want := must(strconv.Atoi(r.Header.Get("Length")))
				switch draw(4) {
				case 0: // it answers early
					io.CopyN(io.Discard, r.Body, int64(draw(want+1)))
					w.WriteHeader(503)
				case 1: // it breaks off
					io.CopyN(io.Discard, r.Body, int64(draw(want+1)))
					panic(http.ErrAbortHandler)
				default:
					b, err := io.ReadAll(r.Body)
					if err != nil {
						return // the caller has given up
					}
					if string(b) != pattern(want) {
						t.Errorf("HTTP/2 %v: %d bytes of %d, or others", h2, len(b), want)
					}
				}
			}))
			s.EnableHTTP2 = h2
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			memnet.StartTLS(s)
			p := eager
			p.Attempts, p.Budget, p.Breaker.Off = 8, budget.Config{Stock: 5000}, true
			cl := client(t, p, lullhttp.WithBase(s.Client().Transport), lullhttp.WithReplay(limit))
			failed := 0
			for range 100 {
				length := draw(2 * limit)
				r, w := io.Pipe()
				go func() {
					for rest := pattern(length); rest != ""; {
						n := min(draw(5000)+1, len(rest))
						if _, err := io.WriteString(w, rest[:n]); err != nil {
							return
						}
						rest = rest[n:]
						time.Sleep(time.Duration(draw(3)) * time.Millisecond)
					}
					w.Close()
				}()
				req, _ := http.NewRequest("PUT", s.URL, r)
				req.ContentLength = -1
				req.Header.Set("Length", strconv.Itoa(length))
				resp, err := cl.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				if e, is := errors.AsType[*lull.Error](err); is && e.Reason != engine.NotReplayable && e.Reason != engine.AttemptsExhausted || err != nil && !is {
					t.Errorf("HTTP/2 %v: %v", h2, err)
				}
				if err != nil || resp.StatusCode != 200 {
					if failed++; err == nil && length < limit && lullhttp.OutcomeOf(resp).Reason != engine.AttemptsExhausted {
						t.Errorf("HTTP/2 %v: %+v with %d bytes", h2, lullhttp.OutcomeOf(resp), length)
					}
				}
				w.CloseWithError(io.ErrClosedPipe)
			}
			if failed == 0 || failed > 50 {
				t.Errorf("%d calls failed", failed)
			}
			time.Sleep(time.Hour)
		})
	}
}

// pattern is a text of that length without two pieces that are the same.
func pattern(length int) string {
	var b strings.Builder
	for i := 0; b.Len() < length; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:length]
}
