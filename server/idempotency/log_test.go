package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// logged has slog.Default write to the result.
func logged(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
	return &b
}

// By default, a panic is one line of level error, with its stack and the key that it
// leaves unknown; the panic goes up.
func TestRule21APanicIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := logged(t)
		m := must.Have(idempotency.New(newMemory(t, idempotency.MemoryStoreConfig{}), idempotency.Config{}))
		for i, v := range []any{"boom", http.ErrAbortHandler} {
			out.Reset()
			h := m.Wrap(&counter{do: func(int, http.ResponseWriter, *http.Request) { panicsHere(v) }})
			check.Equal(t, panics(t, h, request(fmt.Sprint("k", i))), v, "recovered")
			line := out.String()
			for _, want := range []string{"level=ERROR", "event=abandoned", idempotency.StoreKey("Bearer alice", "")[:22]} {
				if strings.Count(line, "\n") != 1 || !strings.Contains(line, want) {
					t.Errorf("panic(%v): no %s in %q", v, want, line)
				}
			}
			check.Equal(t, strings.Contains(line, "panicsHere"), v != http.ErrAbortHandler, "panic(%v): the stack in %q", v, line)
		}
	})
}

func panicsHere(v any) { panic(v) }

// A wrong wiring is a line a minute, not one for each request. What is as it should be
// writes no line.
func TestRule21WhatTheDefaultLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := logged(t)
		m := must.Have(idempotency.New(newMemory(t, idempotency.MemoryStoreConfig{}), idempotency.Config{}))
		h := m.Wrap(&counter{})
		nobody := func() {
			req := request("k")
			req.Header.Del("Authorization")
			send(t, h, req)
		}
		send(t, h, request("k"))
		send(t, h, request("k"))
		if out.Len() > 0 {
			t.Errorf("a request and its replay: %s", out)
		}
		for range 100 {
			nobody()
		}
		if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "level=WARN") || !strings.Contains(out.String(), "WithScope") {
			t.Errorf("100 requests without a caller: %d lines\n%s", n, out)
		}
		time.Sleep(time.Minute)
		nobody()
		check.Equal(t, strings.Count(out.String(), "\n"), 2, "a minute later: lines")
	})
}

// A response that was not kept is as it should be; one that cannot be read is not.
func TestLevels(t *testing.T) {
	for want, e := range map[string]idempotency.Event{
		"level=INFO":                        {Kind: idempotency.RefusedNotKept},
		"level=ERROR":                       {Kind: idempotency.RefusedNotKept, Err: errDown},
		"level=INFO msg=\"idempotency: ref": {Kind: idempotency.RefusedReused},
		"level=WARN":                        {Kind: idempotency.Fenced},
	} {
		var out bytes.Buffer
		idempotency.NewLog(slog.New(slog.NewTextHandler(&out, nil)))(t.Context(), e)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%+v: %s, want %s", e, &out, want)
		}
	}
}

// What was replayed, too, and to a logger of one's own.
func ExampleNewLog() {
	l := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // for this output
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithObserver(idempotency.NewLog(l)))
	if err != nil {
		log.Fatal(err)
	}
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "paid") }))
	pay(handler, "k1", "100")
	pay(handler, "k1", "100")
	// Output:
	// level=DEBUG msg="idempotency: carried out" event=ran key=nXzORh5LLwkKPWhrSuctJQ:k1 status=200
	// 200 paid
	// level=DEBUG msg="idempotency: replayed" event=replayed key=nXzORh5LLwkKPWhrSuctJQ:k1 status=200
	// 200 paid (replayed)
}

// A line has what is known of the event, and nothing else.
func TestLogHasWhatIsKnown(t *testing.T) {
	out := logged(t)
	o := idempotency.NewLog(nil)
	for _, c := range []struct {
		e    idempotency.Event
		want string
	}{
		{idempotency.Event{Kind: idempotency.StoreFailed, Err: io.ErrUnexpectedEOF}, "error"},
		{idempotency.Event{Kind: idempotency.StoreFailed, Key: "k", Status: 503}, "key status"},
	} {
		out.Reset()
		o(context.Background(), c.e)
		for _, key := range []string{"key", "status", "error"} {
			check.Equal(t, strings.Contains(out.String(), " "+key+"="), strings.Contains(c.want, key), "%+v: %s in %q", c.e, key, out)
		}
	}
}
