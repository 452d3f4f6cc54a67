package lullhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
)

// Some errors of net/http have no type by which they could be recognised: they are made by
// errors.New, or their type is not exported. Any release may change their text. So net/http itself
// is made to return them, once for each process and only after a failure of which nothing else is
// known: see references. If it returns unexpected ones, those errors are unclassified.

func classifyUntyped(err error) (lull.Verdict, bool) {
	if isType[textproto.ProtocolError](err) {
		return brokenResponse, true
	}
	refs := references()
	if refs.closedIdle != nil && errors.Is(err, refs.closedIdle) {
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_closed"}, true
	}
	switch text := innermostText(err); {
	case refs.lostPing != "" && text == refs.lostPing:
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}, true
	case refs.goAwayPrefix != "" && strings.HasPrefix(text, refs.goAwayPrefix):
		// The stream's number was above the server's last.
		v := classifyGoAway(text == refs.goAwayPrefix+calmCodeName)
		v.NeverSent = true
		return v, true
	}
	switch start, came := splitQuoted(err); {
	case start == "":
	case start == refs.statusLine && (strings.HasPrefix("HTTP/1.1", came) || strings.HasPrefix("HTTP/1.0", came)),
		start == refs.statusCode && len(came) < 3 && strings.Trim(came, "0123456789") == "":
		return brokenResponse, true
	}
	return lull.Verdict{}, false
}

// brokenResponse is the verdict on a response whose header was cut. A first line of another
// protocol is unclassified. net/http does not show which of the later lines is broken.
var brokenResponse = lull.Verdict{Kind: lull.KindTransient, Code: "broken_response"}

// reference has errors of net/http without a type.
type reference struct {
	// The server closed a connection of the pool just as a request was sent on it. http.Transport
	// itself repeats only GET, HEAD, OPTIONS and TRACE.
	closedIdle error
	// The beginnings of the errors for a first line that was cut before or within the status code.
	// They end with the received text in quotes.
	statusLine, statusCode string
	// An HTTP/2 connection on which the server answered nothing, not even a ping.
	lostPing string
	// The beginning of the error of a stream that was the first of its HTTP/2 connection and was
	// not looked at, as the server sent a GOAWAY. It ends with the name of the code.
	goAwayPrefix string
}

const calmCodeName = "ENHANCE_YOUR_CALM"

var references = sync.OnceValue(func() reference {
	return reference{
		closedIdle:   provokeClosedIdle(),
		statusLine:   textBeforeQuote("HTTP/"),
		statusCode:   textBeforeQuote("HTTP/1.1 2"),
		lostPing:     lostPingText(),
		goAwayPrefix: goAwayPrefix(),
	}
})

// lostPingText returns reference.lostPing. On a busy machine the request may come too late for a
// short timeout, so it tries longer ones.
func lostPingText() (text string) {
	for wait := time.Millisecond; text == "" && wait < 100*time.Millisecond; wait *= 4 {
		text = provokeHTTP2("", &http.HTTP2Config{SendPingTimeout: wait, PingTimeout: wait})
	}
	return text
}

// goAwayPrefix returns reference.goAwayPrefix, or "" if the error is not as expected.
func goAwayPrefix() string {
	start, ok := strings.CutSuffix(provokeHTTP2(goAwayCalm, nil), calmCodeName)
	if !ok {
		return ""
	}
	return start
}

// goAwayCalm is a GOAWAY that accepts no stream, with the code ENHANCE_YOUR_CALM.
const goAwayCalm = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0b"

// provokeHTTP2 returns the text of http.Transport's error for a request over HTTP/2 whose server
// sends its settings and answer, and then nothing. It is "" if the server did not get the request.
func provokeHTTP2(answer string, config *http.HTTP2Config) string {
	const preface, settings, headers = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "\x00\x00\x00\x04\x00\x00\x00\x00\x00", 0x1
	here, there := net.Pipe()
	defer here.Close()
	var came atomic.Bool // the request
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	go func() {
		defer there.Close()
		r := bufio.NewReader(there)
		if _, err := r.Discard(preface); err != nil {
			return
		}
		for kind := byte(0); kind != headers; {
			var head [9]byte
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return
			}
			kind = head[3]
			if _, err := r.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
				return
			}
		}
		came.Store(true)
		go io.WriteString(there, settings+answer)
		io.Copy(io.Discard, r)
	}()
	err := roundTripOver(context.Background(), &http.Transport{Protocols: &protocols, HTTP2: config}, here, "http")
	if !came.Load() || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	return innermostText(err)
}

// textBeforeQuote returns the beginning of net/http's error for a response that ends after line.
func textBeforeQuote(line string) string {
	_, err := http.ReadResponse(bufio.NewReader(strings.NewReader(line)), nil)
	start, _ := splitQuoted(err)
	return start
}

// splitQuoted splits the text of the innermost error at a quoted text at its end.
func splitQuoted(err error) (start, text string) {
	if err == nil {
		return "", ""
	}
	start, text, _ = strings.Cut(innermostText(err), `"`)
	text, err = strconv.Unquote(`"` + text)
	if err != nil {
		return "", ""
	}
	return start, text
}

func innermostText(err error) (text string) {
	for ; err != nil; err = errors.Unwrap(err) {
		text = err.Error()
	}
	return text
}

// provokeClosedIdle returns http.Transport's error for a request on a connection that ended while
// idle, or nil if that is not an error of its own. What is written to the connection is lost
// without an error, as TCP does for a while.
func provokeClosedIdle() error {
	conn := newScriptedConn("", true)
	traced := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		select {
		case <-conn.closed: // http.Transport has read the end
		case <-time.After(time.Second):
		}
	}})
	err := roundTripOver(traced, new(http.Transport), conn, "http")
	if err == nil || errors.Unwrap(err) != nil || err == io.EOF || err == context.DeadlineExceeded {
		return nil
	}
	return err
}
