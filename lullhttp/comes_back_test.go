package lullhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// RFC 6265, 3: a user agent heeds the cookies of every answer. Those of answers that were discarded come
// with the answer of the call, before its own.
func TestCookiesOfDiscardedAnswers(t *testing.T) {
	for how, p := range map[string]lull.Policy{"plain": eager, "hedged": hedging} {
		run(t, how, func(t *testing.T) {
			n := 0
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				n++
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
			if want := []string{"lb=1; Path=/", "c1=1; Path=/", "lb=2; Path=/", "c2=1; Path=/"}; !slices.Equal(resp.Header["Set-Cookie"], want) {
				t.Errorf("%q, want %q", resp.Header["Set-Cookie"], want)
			}
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
		wrapped, err := lullhttp.NewHandler(limit)
		if err != nil {
			t.Fatal(err)
		}
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
