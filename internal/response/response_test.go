package response

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

// What a handler does is seen once, with the status that its client sees, before the
// header is sent.
func TestBeginsOnceWithTheStatusThatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(w http.ResponseWriter)
		status int
		body   string
	}{
		"nothing":     {func(http.ResponseWriter) {}, 0, ""},
		"write":       {func(w http.ResponseWriter) { fmt.Fprint(w, "a"); fmt.Fprint(w, "b") }, 200, "ab"},
		"string":      {func(w http.ResponseWriter) { io.WriteString(w, "a") }, 200, "a"},
		"copy":        {func(w http.ResponseWriter) { io.Copy(w, strings.NewReader("abc")) }, 200, "abc"},
		"status":      {func(w http.ResponseWriter) { w.WriteHeader(503); w.Write([]byte("x")) }, 503, "x"},
		"early hints": {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(404) }, 404, ""},
		"flush":       {func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.Write([]byte("x")) }, 200, "x"},
		"controller":  {func(w http.ResponseWriter) { http.NewResponseController(w).Flush() }, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			begun := 0
			var seen *Writer
			s := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				seen = New(w, func(int) { begun++; w.Header().Set("Added", "late") })
				c.handle(seen.ForHandler())
			}))
			resp := must.Have(s.Client().Get(s.URL))
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			want, calls, added := c.status, 1, "late"
			if c.status == 0 {
				want, calls, added = 200, 0, ""
			}
			if resp.StatusCode != want || string(body) != c.body || resp.Header.Get("Added") != added {
				t.Errorf("the client got %d %q, Added: %q", resp.StatusCode, body, resp.Header.Get("Added"))
			}
			if begun != calls || seen.FinalStatus() != want || seen.begun != (calls > 0) {
				t.Errorf("begun %d times, with status %d (%v); want %d", begun, seen.FinalStatus(), seen.begun, want)
			}
		})
	}
}

func TestHijack(t *testing.T) {
	var seen *Writer
	statuses := make(chan int, 2)
	s := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen = New(w, func(n int) { statuses <- n })
		conn, _, err := http.NewResponseController(seen.ForHandler()).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		conn.Close()
	}))
	resp, err := s.Client().Get(s.URL)
	if err != nil || resp.StatusCode != 418 {
		t.Fatalf("%v, %v", resp, err)
	}
	if len(statuses) != 1 || <-statuses != 0 || !seen.begun {
		t.Errorf("%d calls, begun %v", len(statuses), seen.begun)
	}
}

// Without the means beneath, nothing is pretended.
func TestWhatIsBeneathCannot(t *testing.T) {
	type flusher struct {
		http.ResponseWriter
		http.Flusher
	}
	type wrapped struct{ wrapper }
	rec := httptest.NewRecorder() // can flush
	bare := struct{ http.ResponseWriter }{rec}
	for name, c := range map[string]struct {
		below   http.ResponseWriter
		flushes bool
	}{
		"bare":            {bare, false},
		"flusher":         {flusher{bare, rec}, true},
		"flusher, hidden": {wrapped{wrapper{bare, flusher{bare, rec}}}, true},
	} {
		shown := New(c.below, nil).ForHandler()
		_, flushes := shown.(http.Flusher)
		_, hijacks := shown.(http.Hijacker)
		if flushes != c.flushes || hijacks {
			t.Errorf("%s: flushes %v, hijacks %v", name, flushes, hijacks)
		}
		check.Equal(t, (http.NewResponseController(shown).Flush() == nil), c.flushes, "%s: flush", name)
		if _, ok := shown.(io.ReaderFrom); !ok {
			t.Errorf("%s: no ReaderFrom", name)
		}
	}
}

type wrapper struct {
	http.ResponseWriter
	below http.ResponseWriter
}

func (w wrapper) Unwrap() http.ResponseWriter { return w.below }
