package lulltest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/lullhttp/lulltest"
)

// Any rule is either a mistake that Validate reports, or it can be carried out: at the transport
// and at the handler, without a panic but http.ErrAbortHandler, and the request is recorded. What
// it passes on of a body is its beginning.
func FuzzRule(f *testing.F) {
	f.Add("GET /orders/{id}", 1, 0, 0.0, int64(0), 503, "busy", int64(0), uint8(0), uint8(0), 0, "GET", "/orders/7", "", "5")
	f.Add("", 0, 2, 0.5, int64(time.Second), 0, "", int64(time.Millisecond), uint8(3), uint8(2), 3, "POST", "/", "ping", "")
	f.Add("POST /{$}", 0, 0, 1.0, int64(0), 200, "all", int64(0), uint8(4), uint8(1), 0, "PUT", "//x", "ping", "x")
	f.Add("/a/", 3, 1, 0.0, int64(-1), 1000, "", int64(0), uint8(9), uint8(9), -1, "HEAD", "/a", "", "99999999999999999999")
	f.Fuzz(func(t *testing.T, on string, first, every int, chance float64, delay int64, status int, body string, perByte int64, end, where uint8, bytes int, method, path, sent, length string) {
		rule := lulltest.Rule{
			On: on, First: first, Every: every, Chance: chance,
			Delay: time.Duration(delay), Status: status, Body: body, PerByte: time.Duration(perByte),
			End: lulltest.End(end), Where: lulltest.Where(where), Bytes: bytes,
		}
		req, err := http.NewRequest(method, "http://shop/", strings.NewReader(sent))
		if err != nil {
			return
		}
		req.URL.Path = path
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			faults := &lulltest.Faults{Rules: []lulltest.Rule{rule}}
			wrong := faults.Validate()
			whole := func() string { // of the latest attempt
				a := faults.Attempts()
				if status != 0 && a[len(a)-1].Rule == 0 {
					return body
				}
				return "hello"
			}
			behind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				io.WriteString(w, "hello")
			})

			resp, err := faults.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				behind(w, r)
				return w.Result(), nil
			})).RoundTrip(req.WithContext(ctx))
			switch {
			case wrong != nil:
				if err == nil || err.Error() != wrong.Error() {
					t.Fatalf("%v, want %v", err, wrong)
				}
				return
			case err == nil:
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if !strings.HasPrefix(whole(), string(got)) {
					t.Errorf("the body is %q, want a beginning of %q", got, whole())
				}
			}

			w := httptest.NewRecorder()
			func() {
				defer func() {
					if p := recover(); p != nil && p != http.ErrAbortHandler {
						t.Fatal(p)
					}
				}()
				again := req.WithContext(ctx)
				again.Body = io.NopCloser(strings.NewReader(sent))
				faults.Handler(behind).ServeHTTP(w, again)
			}()
			if !strings.HasPrefix(whole(), w.Body.String()) {
				t.Errorf("the handler's body is %q, want a beginning of %q", w.Body, whole())
			}
			attempts := faults.Attempts()
			if n := len(attempts); n < 1 || n > 2 { // the first may have used up the time
				t.Fatalf("%d attempts", n)
			}
			if last := attempts[len(attempts)-1]; last.Number != len(attempts) || string(last.Body) != sent {
				t.Errorf("%+v", last)
			}
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
