package idempotency

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// heldResponse is the http.ResponseWriter of a handler that runs under a key. It holds the
// response back, so that nobody sees one that is not stored yet. When the response ends,
// is flushed, or gets too long, it is sent to the client, and all that follows is sent at
// once. What was sent is kept too, as long as all of it fits.
type heldResponse struct {
	w            http.ResponseWriter
	headerBefore http.Header // of w, before the handler
	limit        int         // of header and body together

	status       int         // zero until the header is written
	header       http.Header // as it was then
	size         int         // of header and body
	body         []byte
	omitted      bool // the body is too long to keep, or was never ours
	sentToClient bool // header, and body so far, have been sent
	hijacked     bool
}

func newResponse(w http.ResponseWriter, limit int) *heldResponse {
	return &heldResponse{w: w, headerBefore: w.Header().Clone(), limit: limit}
}

// Unwrap is for http.ResponseController: deadlines and full duplex are the
// connection's.
func (p *heldResponse) Unwrap() http.ResponseWriter { return p.w }

func (p *heldResponse) Header() http.Header { return p.w.Header() }

func (p *heldResponse) WriteHeader(status int) {
	switch {
	case p.hijacked, status > 999, status < 200 && status != http.StatusSwitchingProtocols:
		// An informational response is sent at once; net/http reports the other statuses.
		p.w.WriteHeader(status)
		return
	case p.status != 0:
		return
	}
	p.status = status
	p.header = p.w.Header().Clone()
	for name, values := range p.header {
		for _, v := range values {
			p.size += len(name) + len(v) + len(": \r\n")
		}
	}
	if p.size > p.limit {
		p.stopKeeping()
	}
}

func (p *heldResponse) Write(b []byte) (int, error) {
	if p.hijacked {
		return 0, http.ErrHijacked
	}
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	if !hasBody(p.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if !p.omitted {
		if len(b) > p.limit-p.size {
			p.stopKeeping()
		} else {
			p.size += len(b)
			p.body = append(p.body, b...)
		}
	}
	if !p.sentToClient {
		return len(b), nil
	}
	n, err := p.w.Write(b)
	if err != nil && !p.omitted {
		// The client is gone. A handler that stopped here would leave half a response
		// to be replayed.
		return len(b), nil
	}
	return n, err
}

// Flush is for handlers that look for http.Flusher.
func (p *heldResponse) Flush() { p.FlushError() }

// FlushError is for http.ResponseController.
func (p *heldResponse) FlushError() error {
	if p.hijacked {
		return http.ErrHijacked
	}
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	p.sendToClient()
	return http.NewResponseController(p.w).Flush()
}

// Hijack gives the connection to the handler, if that is possible. What the handler
// sends on it is not kept.
func (p *heldResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if p.status != 0 {
		p.sendToClient()
	}
	conn, rw, err := http.NewResponseController(p.w).Hijack()
	if err == nil {
		p.hijacked, p.omitted, p.body = true, true, nil
	}
	return conn, rw, err
}

// end is called when the handler has returned. A handler that has written no header
// answers with 200.
func (p *heldResponse) end() {
	if p.status == 0 && !p.hijacked {
		p.WriteHeader(http.StatusOK)
	}
}

// stopKeeping sends what there is, and the body is not kept.
func (p *heldResponse) stopKeeping() {
	p.omitted = true
	p.sendToClient()
	p.body = nil
}

// sendToClient sends the header as it was when it was written, and the body so far. What the
// handler changed in the header since is put back afterwards: there may be trailers.
func (p *heldResponse) sendToClient() {
	if p.sentToClient || p.hijacked {
		return
	}
	p.sentToClient = true
	h := p.w.Header()
	changed := maps.Clone(h)
	replace(h, p.header)
	p.w.WriteHeader(p.status)
	if len(p.body) > 0 {
		p.w.Write(p.body) // if the client is gone, nobody needs the error
	}
	replace(h, changed)
}

func replace(h, with http.Header) {
	clear(h)
	maps.Copy(h, with)
}

// record returns the part of the response that is kept, after end. Without end, after a panic, it
// has no status.
func (p *heldResponse) record(ended bool) Record {
	if !ended {
		return Record{BodyOmitted: true}
	}
	r := Record{Status: p.status, BodyOmitted: p.omitted || p.truncated()}
	for name, values := range p.header {
		switch {
		case r.BodyOmitted && name != "Location" && name != "Content-Location",
			notReplayed[name],
			ofConnection(p.header, name),
			strings.HasPrefix(name, http.TrailerPrefix),
			len(values) == 0,
			slices.Equal(values, p.headerBefore[name]):
			continue
		}
		if r.Header == nil {
			r.Header = make(http.Header)
		}
		r.Header[name] = values
	}
	if !r.BodyOmitted {
		r.Body = p.body
	}
	return r
}

// truncated reports whether a response announced another length than it had: net/http
// breaks the connection, and the client knows that the response is not complete.
func (p *heldResponse) truncated() bool {
	declared := p.header["Content-Length"]
	return len(declared) > 0 && hasBody(p.status) && declared[0] != strconv.Itoa(len(p.body))
}

// notReplayed are the fields that are not for the client of a replay: those of one
// connection, of one moment, and of one message's framing, and cookies, which are
// credentials, not to be kept in a store or handed out again a day later.
var notReplayed = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Content-Length": true, "Date": true, "Set-Cookie": true,
}

// ofConnection reports whether h's Connection names a field (RFC 9110, 7.6.1).
func ofConnection(h http.Header, name string) bool {
	for named := range strings.SplitSeq(strings.Join(h["Connection"], ","), ",") {
		if strings.EqualFold(strings.TrimSpace(named), name) {
			return true
		}
	}
	return false
}

// hasBody reports whether a response with this status has one (RFC 9110, 6.4.1).
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func replay(w http.ResponseWriter, r Record) {
	h := w.Header()
	maps.Copy(h, r.Header)
	h.Set("Idempotency-Replayed", "true")
	if hasBody(r.Status) {
		h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		w.Write(r.Body)
	}
}
