package lullhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
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
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			f.Seek(7, io.SeekStart)
			return f
		}, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 3},
		{"stream", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(0)}, 1},
		{"stream within the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(300_000)}, 3},
		{"stream beyond the bound", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 300_000, []lullhttp.Option{lullhttp.WithReplay(299_999)}, 1},
		{"stream of unknown length", func() io.Reader { return io.MultiReader(strings.NewReader(text)) }, 0, []lullhttp.Option{lullhttp.WithReplay(1 << 30)}, 1},
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
	if _, err := lullhttp.New(lull.Policy{}, lullhttp.WithReplay(-1)); err == nil {
		t.Error("a bound below zero is taken")
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
					if closed.Load() != 0 {
						t.Error("the caller's body was closed while the transport held it")
					}
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
			if closed.Load() != 1 {
				t.Errorf("the caller's body was closed %d times", closed.Load())
			}
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

// A base transport that never closes a body, and one that cannot be set back, end the
// call; the caller's body is not read by two.
func TestRule06ReplayFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		})
		cl := client(t, eager, lullhttp.WithBase(base), lullhttp.WithReplay(10))
		req, _ := http.NewRequest("PUT", "http://example.test/", io.MultiReader(strings.NewReader("x")))
		req.ContentLength = 1
		began := time.Now()
		_, err := cl.Do(req)
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 2 || !strings.Contains(err.Error(), "has not closed the body") {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
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
		for range 10 {
			req, _ := http.NewRequest("PUT", "http://example.test/", io.MultiReader(bytes.NewReader(nil)))
			req.ContentLength = 1 << 30
			if _, err := cl.Do(req); err != nil {
				t.Fatal(err)
			}
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
