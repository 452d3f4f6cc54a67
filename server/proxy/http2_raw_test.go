package proxy_test

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// The types and flags of frames (RFC 9113, section 6).
const (
	data, headers, rstStream, settings, goAway, continuation = 0, 1, 3, 4, 7, 9

	endStream, endHeaders = 1, 4
)

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}) + string(binary.BigEndian.AppendUint32(nil, stream)) + payload
}

// block returns a header block: each line "name: value" as literal without an index (RFC 7541, 6.2.2).
func block(lines ...string) string {
	text := func(s string) string {
		if len(s) < 127 {
			return string([]byte{byte(len(s))}) + s
		}
		rest := len(s) - 127
		length := []byte{127}
		for ; rest >= 128; rest /= 128 {
			length = append(length, byte(rest%128+128))
		}
		return string(append(length, byte(rest))) + s
	}
	b := ""
	for _, line := range lines {
		i := strings.Index(line[1:], ":") + 1
		b += "\x00" + text(line[:i]) + text(strings.TrimPrefix(line[i+1:], " "))
	}
	return b
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// answer is what a stream was answered with: its status, "reset" or "goaway".
func answersOf(text string) map[uint32]string {
	got := map[uint32]string{}
	for len(text) >= 9 {
		n := int(text[0])<<16 | int(text[1])<<8 | int(text[2])
		stream := binary.BigEndian.Uint32([]byte(text[5:9]))
		if len(text) < 9+n {
			break
		}
		payload := text[9 : 9+n]
		switch text[3] {
		case headers:
			if got[stream] == "" {
				got[stream] = status(payload)
			}
		case rstStream:
			if got[stream] == "" {
				got[stream] = "reset"
			}
		case goAway:
			if binary.BigEndian.Uint32([]byte(payload[4:8])) != 0 {
				got[0] = "goaway"
			}
		}
		text = text[9+n:]
	}
	return got
}

// status returns the status that a header block begins with (RFC 7541, appendix A), as net/http sends it.
func status(block string) string {
	if s, ok := map[byte]string{0x88: "200", 0x8c: "400", 0x8d: "404", 0x8e: "500"}[block[0]]; ok {
		return s
	}
	if block[1]&0x80 != 0 { // in Huffman's code
		return map[string]string{"\x6c\x02": "502"}[block[2:4]]
	}
	return block[2:5] // with the name of index 8
}

// send2 sends frames to a door over HTTP/2, and returns what its streams are answered with.
func send2(door string, frames ...string) map[uint32]string {
	conn := must.Have(memnet.Dial(context.Background(), "tcp", address(door)))
	defer conn.Close()
	ended := make(chan string)
	must.Succeed(conn.SetReadDeadline(time.Now().Add(30 * time.Second)))
	go func() {
		answers, _ := io.ReadAll(conn)
		ended <- string(answers)
	}()
	_, _ = io.WriteString(conn, preface+frame(settings, 0, 0, "")+strings.Join(frames, ""))
	return answersOf(<-ended)
}

// request returns the lines of a request over HTTP/2, with more.
func request(method string, more ...string) []string {
	return append([]string{":method: " + method, ":scheme: http", ":authority: app", ":path: /"}, more...)
}

// Requests over HTTP/2 that could become others over HTTP/1, or that have no meaning, do not reach the upstream.
func TestAmbiguousRequestsOfHTTP2(t *testing.T) {
	get := func(lines ...string) string { return frame(headers, endHeaders|endStream, 1, block(lines...)) }
	post := func(body string, more ...string) string {
		return frame(headers, endHeaders, 1, block(request("POST", more...)...)) + frame(data, endStream, 1, body)
	}
	with := func(i int, line string) string {
		lines := request("GET")
		lines[i] = line
		return get(lines...)
	}
	without := func(i int) string { return get(slices.Delete(request("GET"), i, i+1)...) }
	for name, c := range map[string]struct{ sent, want string }{
		"in order":                      {get(request("GET")...), "200"},
		"in order, with a body":         {post("abc", "content-length: 3"), "200"},
		"CR LF in a value":              {get(request("GET", "a: b\r\nTransfer-Encoding: chunked")...), "reset"},
		"LF in a value":                 {get(request("GET", "a: b\nc: d")...), "reset"},
		"CR in a value":                 {get(request("GET", "a: b\rc: d")...), "reset"},
		"NUL in a value":                {get(request("GET", "a: b\x00")...), "reset"},
		"CR LF in a name":               {get(request("GET", "a\r\nb: c")...), "reset"},
		"a colon in a name":             {get(request("GET", "a:b: c")...), "200"}, // "a" with the value "b: c": this test's own notation
		"a blank in a name":             {get(request("GET", "a b: c")...), "reset"},
		"a name in upper case":          {get(request("GET", "Abc: d")...), "reset"},
		"connection":                    {get(request("GET", "connection: close")...), "400"},
		"keep-alive":                    {get(request("GET", "keep-alive: 5")...), "400"},
		"proxy-connection":              {get(request("GET", "proxy-connection: close")...), "400"},
		"upgrade":                       {get(request("GET", "upgrade: websocket")...), "400"},
		"transfer-encoding":             {post("abc", "transfer-encoding: chunked"), "400"},
		"te other than trailers":        {get(request("GET", "te: gzip")...), "400"},
		"te trailers":                   {get(request("GET", "te: trailers")...), "200"},
		"host against authority":        {get(request("GET", "host: evil")...), "400"},
		"host as authority":             {get(request("GET", "host: app")...), "200"},
		"two host":                      {get(request("GET", "host: app", "host: app")...), "400"},
		"no authority but a host":       {get(":method: GET", ":scheme: http", ":path: /", "host: app"), "200"},
		"neither":                       {get(":method: GET", ":scheme: http", ":path: /"), "400"},
		"authority with a user":         {with(2, ":authority: me@app"), "reset"},
		"authority with a path":         {with(2, ":authority: app/x"), "400"},
		"authority with a list":         {with(2, ":authority: app,evil"), "400"},
		"authority with CR LF":          {with(2, ":authority: app\r\nx: y"), "reset"},
		"method with CR LF":             {with(0, ":method: GET / HTTP/1.1\r\nx: y"), "reset"},
		"method with blanks":            {with(0, ":method: GET /evil HTTP/1.1"), "400"},
		"empty method":                  {with(0, ":method: "), "reset"},
		"method PRI":                    {with(0, ":method: PRI"), "400"},
		"no method":                     {without(0), "reset"},
		"no scheme":                     {without(1), "reset"},
		"scheme ftp":                    {with(1, ":scheme: ftp"), "reset"},
		"scheme with CR LF":             {with(1, ":scheme: http\r\n"), "reset"},
		"no path":                       {without(3), "reset"},
		"empty path":                    {with(3, ":path: "), "reset"},
		"relative path":                 {with(3, ":path: x"), "reset"},
		"path with CR LF":               {with(3, ":path: / HTTP/1.1\r\nx: y"), "reset"},
		"path with blanks":              {with(3, ":path: /evil HTTP/1.1"), "400"},
		"path with a fragment":          {with(3, ":path: /a#b"), "400"},
		"path *":                        {with(3, ":path: *"), "400"},
		"an absolute path":              {with(3, ":path: http://evil/"), "400"},
		"two paths":                     {get(append([]string{":path: /evil"}, request("GET")...)...), "reset"},
		"a pseudo-header behind others": {get(":method: GET", ":scheme: http", "a: b", ":authority: app", ":path: /"), "reset"},
		"an unknown pseudo-header":      {get(append([]string{":x: y"}, request("GET")...)...), "reset"},
		":status":                       {get(append([]string{":status: 200"}, request("GET")...)...), "reset"},
		"CONNECT":                       {get(":method: CONNECT", ":authority: app:443"), "405"},
		"extended CONNECT":              {get(append([]string{":protocol: websocket"}, request("CONNECT")...)...), "reset"},
		"more than content-length":      {post("abcd", "content-length: 3"), "reset"},
		"less than content-length":      {post("ab", "content-length: 3"), "reset"},
		"two content-length":            {post("abc", "content-length: 3", "content-length: 4"), "400"},
		"content-length is no number":   {post("abc", "content-length: +3"), "reset"},
		"content-length without DATA":   {get(request("POST", "content-length: 3")...), "reset"},
		"a pseudo-header as trailer":    {frame(headers, endHeaders, 1, block(request("POST")...)) + frame(data, 0, 1, "abc") + frame(headers, endHeaders|endStream, 1, block(":path: /evil")), "reset"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFront(t, proxy.Config{}, "")
			defer f.stop()
			for _, door := range []string{"app", "ingress"} {
				got := send2(door, c.sent)
				if c.want == "reset" || c.want == "400" { // which of the two is net/http's to choose
					if got[1] != "reset" && got[1] != "400" && got[0] != "goaway" {
						t.Errorf("%s at %s: %v, want it to be refused", name, door, got)
					}
				} else {
					check.Equal(t, got[1], c.want, "%s at %s (%v)", name, door, got)
				}
				requests, _, _ := f.take()
				if c.want == "200" {
					check.Equal(t, len(requests), 1, "%s at %s: requests of the upstream", name, door)
				} else if len(requests) > 0 {
					t.Errorf("%s at %s: the upstream saw %s %s %q", name, door, requests[0].Method, requests[0].RequestURI, requests[0].Header)
				}
			}
		}))
	}
}

// What an HTTP/2 client can make a door do is bounded: streams at a time, headers, frames of one header, and resets.
func TestFloodsOfHTTP2(t *testing.T) {
	opened := func(n int, each func(stream uint32) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(each(uint32(2*i + 1)))
		}
		return b.String()
	}
	get := block(request("GET")...)
	for name, sent := range map[string]string{
		"reset at once": opened(5_000, func(s uint32) string {
			return frame(headers, endHeaders|endStream, s, get) + frame(rstStream, 0, s, "\x00\x00\x00\x08")
		}),
		"continuation for ever": frame(headers, endStream, 1, get) + strings.Repeat(frame(continuation, 0, 1, block("a: "+strings.Repeat("b", 10_000))), 200),
		"empty continuations":   frame(headers, endStream, 1, get) + strings.Repeat(frame(continuation, 0, 1, ""), 20_000),
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFront(t, proxy.Config{}, "")
			defer f.stop()
			got := send2("ingress", sent)
			// net/http bounds how many requests of a connection are under way, and not how many come one after the other.
			if requests, _, _ := f.take(); name != "reset at once" && len(got)+len(requests) > 1 {
				t.Errorf("%s: %d streams were answered, and the upstream saw %d requests", name, len(got), len(requests))
			}
			check.Equal(t, statuses(t, send("ingress", "GET / HTTP/1.1\r\n"+head+"\r\n")), "200", "%s: another client, afterwards", name)
		})
	}
}

// An upstream that breaks off while the client still sends is not the client's fault.
func TestUpstreamBreaksOffAnUpload(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFront(t, proxy.Config{
			Upstreams: map[string]proxy.Upstream{"app": {Listen: address("app"), To: []string{"h2c://breaks"}}},
			Ingress:   proxy.Ingress{Listen: address("ingress"), To: "h2c://breaks"},
		}, "")
		defer f.stop()
		upstream := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 3))
			panic(http.ErrAbortHandler)
		})}
		upstream.Protocols.SetUnencryptedHTTP2(true)
		go upstream.Serve(must.Have(memnet.ListenOn("breaks:80")))
		defer upstream.Close()
		for _, door := range []string{"app", "ingress"} {
			got := send2(door, frame(headers, endHeaders, 1, block(request("POST")...))+frame(data, 0, 1, "abc"))
			check.Equal(t, got[1], "424", "HTTP/2 at %s (%v)", door, got)
			check.Equal(t, statuses(t, send(door, chunked+"3\r\nabc\r\n", "3\r\nabc\r\n")), "424", "HTTP/1 at %s", door)
		}
	})(t)
}
