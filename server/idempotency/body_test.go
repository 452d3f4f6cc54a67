package idempotency_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/server/idempotency"
)

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
