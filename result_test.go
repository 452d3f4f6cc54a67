package lull_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

// doFunctions are the two functions that return the result of an operation.
func doFunctions[T any]() map[string]func(context.Context, *lull.Dependency, func(context.Context) (T, error), ...lull.CallOption) (T, error) {
	return map[string]func(context.Context, *lull.Dependency, func(context.Context) (T, error), ...lull.CallOption) (T, error){
		"Do": lull.Do[T], "DoHedged": lull.DoHedged[T],
	}
}

// A response that Do returns can be read to its end, over HTTP/1 and 2, alone and within other
// values.
func TestAResponseIsReadAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) }))
		s.EnableHTTP2 = true
		memnet.StartTLS(s)
		second := s.Client()
		first := &http.Client{Transport: &http.Transport{DialContext: memnet.Dial, TLSClientConfig: second.Transport.(*http.Transport).TLSClientConfig.Clone(), TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}}
		defer first.CloseIdleConnections()
		for proto, client := range map[int]*http.Client{1: first, 2: second} {
			get := func(ctx context.Context) (*http.Response, error) {
				req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
				return client.Do(req)
			}
			for name, do := range doFunctions[*http.Response]() {
				resp, err := do(t.Context(), newDependency(t, hedging(2)), get)
				if err != nil || resp.ProtoMajor != proto {
					t.Fatalf("%s: %v, %v", name, resp, err)
				}
				readAll(t, name, resp.Body, size)
			}
			d := newDependency(t, lull.Policy{})
			body, err := lull.Do(t.Context(), d, func(ctx context.Context) (io.ReadCloser, error) {
				resp, err := get(ctx)
				if err != nil {
					return nil, err
				}
				return resp.Body, nil
			})
			must.Succeed(err)
			readAll(t, "its body", body, size)
			type answer struct {
				*http.Response
				pages int
			}
			byValue, err := lull.Do(t.Context(), d, func(ctx context.Context) (answer, error) {
				resp, err := get(ctx)
				return answer{resp, 1}, err
			})
			if err != nil || byValue.pages != 1 {
				t.Fatal(byValue, err)
			}
			readAll(t, "in a struct", byValue.Body, size)
			box, err := lull.Do(t.Context(), d, func(ctx context.Context) (any, error) {
				resp, err := get(ctx)
				return &struct{ Answer answer }{answer{Response: resp}}, err
			})
			must.Succeed(err)
			readAll(t, "two levels down", box.(*struct{ Answer answer }).Answer.Body, size)
			resp, err := lull.Do(t.Context(), d, func(ctx context.Context) (*http.Response, error) {
				return lull.Do(ctx, newDependency(t, lull.Policy{}), get)
			})
			must.Succeed(err)
			readAll(t, "of a call within a call", resp.Body, size)
		}
	})
}

func readAll(t *testing.T, name string, body io.ReadCloser, size int) {
	t.Helper()
	defer body.Close()
	if n, err := io.Copy(io.Discard, body); int(n) != size || err != nil {
		t.Errorf("%s: %d bytes, %v; want %d", name, n, err, size)
	}
}

// handle is a result that is in use until it is closed.
type handle struct {
	bytes.Buffer
	closed atomic.Int32
}

func (h *handle) Close() error { h.closed.Add(1); return nil }

// reader is a handle as the body of a response is one: it is only read.
type reader struct{ io.ReadCloser }

// response has the fields of an *http.Response that matter.
type response struct {
	Status int
	Body   io.ReadCloser
	Cause  *response // has a body, too, that is none of the caller's business
}

// The context of an attempt lives as long as its result needs it.
func TestHowLongTheContextOfAResultLives(t *testing.T) {
	type seen struct {
		ctx    context.Context
		err    error // of the call
		result any
	}
	call := func(result any, err error, policy lull.Policy) func(t *testing.T, ctx context.Context) seen {
		return func(t *testing.T, ctx context.Context) (s seen) {
			s.result, s.err = lull.Do(ctx, newDependency(t, policy), func(ctx context.Context) (any, error) {
				s.ctx = ctx
				ctx.Done() // somebody watches it
				return result, err
			})
			return s
		}
	}
	second := lull.Policy{AttemptTimeout: time.Second}
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		call  func(t *testing.T, ctx context.Context) seen
		alive bool
		end   func(any) // what ends it
	}{
		"nothing":                  {call(nil, nil, second), false, nil},
		"a number":                 {call(1, nil, second), false, nil},
		"a plain struct":           {call(&struct{ Text string }{"text"}, nil, second), false, nil},
		"a nil response":           {call((*response)(nil), nil, second), false, nil},
		"a response without body":  {call(&response{}, nil, second), false, nil},
		"a response with NoBody":   {call(&response{Body: http.NoBody}, nil, second), false, nil},
		"only its cause has one":   {call(&response{Cause: &response{Body: reader{new(handle)}}}, nil, second), false, nil},
		"a response, closed":       {call(&response{Body: reader{new(handle)}}, nil, second), true, func(r any) { r.(*response).Body.Close() }},
		"a response, at its end":   {call(&response{Body: reader{new(handle)}}, nil, second), true, func(r any) { io.ReadAll(r.(*response).Body) }},
		"a response with an error": {call(&response{Body: reader{new(handle)}}, failed, second), true, func(r any) { r.(*response).Body.Close() }},
		"something to close":       {call(new(handle), nil, second), true, nil},
		"that, with an error":      {call(new(handle), failed, second), false, nil},
		"a connection":             {call(&response{Body: new(handle)}, nil, second), true, nil},
		"two bodies":               {call(&struct{ A, B io.ReadCloser }{reader{new(handle)}, reader{new(handle)}}, nil, second), true, nil},
		"a row":                    {call(new(sql.Row), nil, second), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				s := c.call(t, ctx)
				time.Sleep(time.Minute) // the time of the attempt is for the attempt
				if alive := s.ctx.Err() == nil; alive != c.alive {
					t.Fatalf("after the call: %v, want it alive: %v", s.ctx.Err(), c.alive)
				}
				if c.end != nil {
					c.end(s.result)
				} else {
					time.Sleep(time.Hour) // its caller's time bounds all
				}
				if s.ctx.Err() == nil {
					t.Error("nothing ends it")
				}
				runtime.KeepAlive(s.result)
			})
		})
	}
}

// A result that needs its context, and is forgotten, does not keep the context until the caller's
// ends.
func TestTheContextOfAForgottenResultEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var of context.Context
	func() {
		h, err := lull.Do(ctx, newDependency(t, lull.Policy{}), func(ctx context.Context) (*handle, error) { of = ctx; return new(handle), nil })
		if err != nil || of.Err() != nil {
			t.Fatal(err, of.Err())
		}
		runtime.KeepAlive(h)
	}()
	done := of.Done()
	for {
		runtime.GC()
		select {
		case <-done:
			return
		default:
			runtime.Gosched()
		}
	}
}

// A result that nobody gets is closed: a stream always, another value unless it came with an
// error.
func TestLostResultsAreClosed(t *testing.T) {
	shared := new(handle)
	for name, c := range map[string]struct {
		result func(*handle) any
		err    error
		closed int32
	}{
		"a stream with an error":              {func(h *handle) any { return &response{Body: reader{h}} }, errBlip, 1},
		"something to close, with an error":   {func(h *handle) any { return h }, errBlip, 0},
		"something else in it, with an error": {func(h *handle) any { return &struct{ Shared *handle }{h} }, errBlip, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, n := new(handle), 0
			out, err := lull.Do(t.Context(), newDependency(t, lull.Policy{}), func(context.Context) (any, error) {
				if n++; n == 1 {
					return c.result(h), lull.Transient(c.err)
				}
				return "second", nil
			})
			if out != "second" || err != nil || h.closed.Load() != c.closed {
				t.Errorf("%s: %v, %v, closed %d times; want %d", name, out, err, h.closed.Load(), c.closed)
			}
		})
	}
	for name, c := range map[string]struct {
		result func(*handle) any
		closed int32
	}{
		"a stream":           {func(h *handle) any { return &response{Body: reader{h}} }, 1},
		"something to close": {func(h *handle) any { return h }, 1},
		"something else":     {func(h *handle) any { return &struct{ Shared *handle }{h} }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := new(handle)
			out, err := lull.DoHedged(t.Context(), newDependency(t, hedging(2)), func(ctx context.Context) (any, error) {
				if a, _ := lull.AttemptFrom(ctx); a.Number == 1 {
					time.Sleep(time.Second) // it ignores its context, and loses
					return c.result(h), nil
				}
				return &response{Body: reader{shared}}, nil
			})
			synctest.Wait()
			if r, ok := out.(*response); !ok || err != nil || h.closed.Load() != c.closed || shared.closed.Load() != 0 {
				t.Errorf("%s: %v, %v, closed %d times; want %d", name, r, err, h.closed.Load(), c.closed)
			}
		})
	}
}

// Rows are read after the call.
func TestRowsAreReadAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(numbers{})
		defer db.Close()
		rows, err := lull.Do(t.Context(), newDependency(t, lull.Policy{}), func(ctx context.Context) (*sql.Rows, error) {
			return db.QueryContext(ctx, "")
		})
		must.Succeed(err)
		defer rows.Close()
		n := 0
		for rows.Next() {
			n++
		}
		if n != 100 || rows.Err() != nil {
			t.Errorf("%d rows, %v; want 100", n, rows.Err())
		}
	})
}

// numbers is a database of a hundred rows.
type numbers struct{}

func (numbers) Connect(context.Context) (driver.Conn, error) { return numbers{}, nil }
func (numbers) Driver() driver.Driver                        { return nil }
func (numbers) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (numbers) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (numbers) Close() error                                 { return nil }
func (numbers) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return new(hundred), nil
}

type hundred int

func (*hundred) Columns() []string { return []string{"n"} }
func (*hundred) Close() error      { return nil }
func (n *hundred) Next(to []driver.Value) error {
	if *n++; *n > 100 {
		return io.EOF
	}
	time.Sleep(time.Second) // longer than any timeout of the call, all rows together
	to[0] = int64(*n)
	return nil
}

func TestAResultThatOwnsNothingAllocatesNothing(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	type plain struct {
		Name string
		Of   *int
	}
	p := new(plain)
	for name, call := range map[string]func(){
		"a number":  func() { lull.Do(context.Background(), d, value) },
		"a struct":  func() { lull.Do(context.Background(), d, func(context.Context) (plain, error) { return *p, nil }) },
		"a pointer": func() { lull.Do(context.Background(), d, func(context.Context) (*plain, error) { return p, nil }) },
		"any":       func() { lull.Do(context.Background(), d, func(context.Context) (any, error) { return p, nil }) },
		"a slice":   func() { lull.Do(context.Background(), d, func(context.Context) ([]byte, error) { return nil, nil }) },
	} {
		if got := testing.AllocsPerRun(1000, call); got > 1 { // for the attempt's context
			t.Errorf("%s: %v allocations, want 1", name, got)
		}
	}
}
