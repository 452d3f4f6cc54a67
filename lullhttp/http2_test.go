package lullhttp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

var quiet = log.New(io.Discard, "", 0)

// Frame types and settings of HTTP/2 that the server below needs.
const (
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4
	frameGoAway    = 0x7
)

func frame(kind byte, stream uint32, payload ...uint32) []byte {
	b := make([]byte, 9, 9+4*len(payload))
	b[2] = byte(4 * len(payload))
	b[3] = kind
	binary.BigEndian.PutUint32(b[5:], stream)
	for _, p := range payload {
		b = binary.BigEndian.AppendUint32(b, p)
	}
	return b
}

// serveHTTP2 answers the first request of each connection with these bytes and ends it; nil: it
// is silent then.
func serveHTTP2(t *testing.T, answer []byte) string {
	return serve(t, func(c *memnet.Conn) {
		io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		c.Write(frame(frameSettings, 0))
		var head [9]byte
		for head[3] != frameHeaders {
			if _, err := io.ReadFull(c, head[:]); err != nil {
				return
			}
			n := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			io.CopyN(io.Discard, c, n)
		}
		c.Write(answer)
		if answer != nil {
			c.CloseWrite()
		}
		io.Copy(io.Discard, c)
	})
}

func h2Transport() *http.Transport {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: &p, DialContext: memnet.Dial}
}

// Codes as in RFC 9113, 7, sent by a server on a connection. REFUSED_STREAM is below: net/http retries it by itself, seven
// times in about a minute. A GOAWAY before the first stream of a connection has an error without a type.
func TestHTTP2ResetsAndGoAways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			answer []byte
			want   lull.Verdict
		}{
			{frame(frameRSTStream, 1, 2), lull.Verdict{Kind: lull.KindTransient, Code: "http2_stream_reset"}},
			{frame(frameRSTStream, 1, 3), lull.Verdict{Kind: lull.KindPermanent, Code: "http2_stream_error"}},
			{frame(frameRSTStream, 1, 8), lull.Verdict{Kind: lull.KindTransient, Code: "http2_stream_reset"}},
			{frame(frameRSTStream, 1, 10), lull.Verdict{Kind: lull.KindTransient, Code: "http2_stream_reset"}},
			{frame(frameRSTStream, 1, 11), lull.Verdict{Kind: lull.KindRateLimited, Code: "http2_enhance_your_calm"}},
			{frame(frameRSTStream, 1, 13), lull.Verdict{Kind: lull.KindPermanent, Code: "http2_stream_error"}},
			{frame(frameRSTStream, 1, 99), lull.Verdict{Kind: lull.KindPermanent, Code: "http2_stream_error"}},
			{frame(frameGoAway, 0, 1, 0), lull.Verdict{Kind: lull.KindTransient, Code: "http2_goaway"}},
			{frame(frameGoAway, 0, 1, 2), lull.Verdict{Kind: lull.KindTransient, Code: "http2_goaway"}},
			{frame(frameGoAway, 0, 1, 11), lull.Verdict{Kind: lull.KindRateLimited, Code: "http2_enhance_your_calm"}},
			{frame(frameGoAway, 0, 0, 2), lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "http2_goaway"}},
			{frame(frameGoAway, 0, 0, 7), lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "http2_goaway"}},
			{frame(frameGoAway, 0, 0, 11), lull.Verdict{Kind: lull.KindRateLimited, NeverSent: true, Code: "http2_enhance_your_calm"}},
			{frame(frameGoAway, 0, 0, 99), lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "http2_goaway"}},
		} {
			err := roundTrip(t, h2Transport(), context.Background(), "GET", "http://"+serveHTTP2(t, c.answer), nil)
			checkError(t, err, c.want.Kind, c.want.NeverSent, c.want.Code)
		}
	})
}

func wrapped(err error) error { return fmt.Errorf("wrapped: %w", err) }

// A connection on which the server no longer answers anything.
func TestHTTP2ConnectionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := serveHTTP2(t, nil)
		base := h2Transport()
		base.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: 20 * time.Millisecond}
		err := roundTrip(t, base, context.Background(), "PUT", "http://"+addr, nil)
		checkError(t, err, lull.KindTransient, false, "connection_lost")
		checkError(t, errors.New("http2: client connection lost"), lull.KindTransient, false, "connection_lost") // of golang.org/x/net/http2
		checkError(t, errors.New("http2: client connection lost again"), lull.KindUnclassified, false, engine.CodeUnclassified)
	})
}

// The types of golang.org/x/net/http2, field for field.
type (
	errCode     uint32
	StreamError struct {
		StreamID uint32
		Code     errCode
		Cause    error
	}
	GoAwayError struct {
		LastStreamID uint32
		ErrCode      errCode
		DebugData    string
	}
	// Similar, but not the same.
	otherError struct {
		StreamID uint32
		Code     string
		Cause    error
	}
)

func (StreamError) Error() string { return "stream error" }
func (GoAwayError) Error() string { return "goaway" }
func (otherError) Error() string  { return "other" }

func TestHTTP2ErrorsByShape(t *testing.T) {
	checkError(t, wrapped(StreamError{StreamID: 1, Code: 7}), lull.KindTransient, true, "http2_refused_stream")
	checkError(t, StreamError{StreamID: 1, Code: 8}, lull.KindTransient, false, "http2_stream_reset")
	checkError(t, wrapped(GoAwayError{LastStreamID: 1}), lull.KindTransient, false, "http2_goaway")
	checkError(t, wrapped(GoAwayError{LastStreamID: 1, ErrCode: 11}), lull.KindRateLimited, false, "http2_enhance_your_calm")
	// The text of a GOAWAY before the first stream is the same.
	checkError(t, errors.New("http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM"), lull.KindRateLimited, true, "http2_enhance_your_calm")
	checkError(t, errors.New("a http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM"), lull.KindUnclassified, false, engine.CodeUnclassified)
	checkError(t, otherError{Code: "7"}, lull.KindUnclassified, false, engine.CodeUnclassified)
	checkError(t, wrapped(&otherError{}), lull.KindUnclassified, false, engine.CodeUnclassified)
	checkError(t, errors.Join(errors.New("a"), otherError{}), lull.KindUnclassified, false, engine.CodeUnclassified)
}

// A body that cannot be replayed: net/http gives up at once, with an error that
// has no type. It stays unclassified, which is the safe side.
func TestHTTP2RefusedWithBodyThatCannotBeReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := serveHTTP2(t, frame(frameRSTStream, 1, 7))
		body := io.MultiReader(strings.NewReader("x")) // no GetBody
		err := roundTrip(t, h2Transport(), context.Background(), "POST", "http://"+addr, body)
		checkError(t, err, lull.KindUnclassified, false, engine.CodeUnclassified)
	})
}

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
						tr := must.Have(New(lull.Policy{}, WithBase(base), WithReplay(100)))
						req, _ := http.NewRequest(method, "http://"+addr, body())
						req.ContentLength = 4
						resp := must.Have(tr.RoundTrip(req))
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
