package lullhttp

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/memnet"
)

// refusing is a server of HTTP/2 that refuses the first streams, when it has their bodies, by
// RST_STREAM or by a GOAWAY.
type refusing struct {
	refuse int
	goAway bool

	mu     sync.Mutex
	bodies []string
}

func (s *refusing) serve(c *memnet.Conn) {
	r := bufio.NewReader(c)
	r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	c.Write(frame(frameSettings, 0))
	var body bytes.Buffer
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		const data, endStream = 0x0, 0x1
		if head[3] == data {
			body.Write(payload)
		}
		if (head[3] == data || head[3] == frameHeaders) && head[4]&endStream != 0 {
			stream := uint32(head[7])<<8 | uint32(head[8])
			s.mu.Lock()
			s.bodies = append(s.bodies, body.String())
			refused := len(s.bodies) <= s.refuse
			s.mu.Unlock()
			body.Reset()
			switch {
			case refused && s.goAway:
				c.Write(frame(frameGoAway, 0, 0, h2NoError))
				return
			case refused:
				c.Write(frame(frameRSTStream, stream, h2RefusedStream))
			default: // ":status: 200", the end of the header and of the stream
				c.Write([]byte{0, 0, 1, frameHeaders, 0x5, 0, 0, head[7], head[8], 0x88})
			}
		}
	}
}

// seekable is a body without GetBody that can seek.
type seekable struct{ io.ReadSeeker }

func (seekable) Close() error { return nil }

// A stream that was refused after its body was sent: net/http repeats it when it has the body
// again, be that by GetBody or by WithReplay.
func TestARefusedStreamIsRepeatedWithItsBody(t *testing.T) {
	for _, goAway := range []bool{false, true} {
		for _, method := range []string{"PUT", "POST"} {
			for name, body := range map[string]func() io.Reader{
				"GetBody":  func() io.Reader { return strings.NewReader("body") },
				"seekable": func() io.Reader { return seekable{strings.NewReader("body")} },
				"kept":     func() io.Reader { return io.MultiReader(strings.NewReader("bo"), strings.NewReader("dy")) },
			} {
				t.Run(method+" "+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &refusing{refuse: 1, goAway: goAway}
						addr := serve(t, s.serve)
						base := h2Transport()
						tr, err := New(lull.Policy{}, WithBase(base), WithReplay(100))
						if err != nil {
							t.Fatal(err)
						}
						req, _ := http.NewRequest(method, "http://"+addr, body())
						req.ContentLength = 4
						resp, err := tr.RoundTrip(req)
						if err != nil {
							t.Fatal(err)
						}
						resp.Body.Close()
						if o := OutcomeOf(resp); resp.StatusCode != 200 || o.Attempts != 1 {
							t.Errorf("%d, %+v", resp.StatusCode, o)
						}
						s.mu.Lock()
						defer s.mu.Unlock()
						if !slices.Equal(s.bodies, []string{"body", "body"}) {
							t.Errorf("the server got %q", s.bodies)
						}
					})
				})
			}
		}
	}
}
