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

// response is the http.ResponseWriter of a handler that runs under a key. It holds
// the response back, so that nobody sees one that is not yet stored, until it ends,
// is flushed, or gets too long; from then on it passes on. What has been passed on is
// kept nevertheless as long as all of it fits.
type response struct {
	w            http.ResponseWriter
	headerBefore http.Header // of w, before the handler
	limit        int         // of header and body together

	status   int         // zero until the header is written
	header   http.Header // as it was then
	size     int         // of header and body
	body     []byte
	omitted  bool // the body is too long to keep, or was never ours
	passedOn bool // header, and body so far, have been passed on
	hijacked bool
}

func newResponse(w http.ResponseWriter, limit int) *response {
	return &response{w: w, headerBefore: w.Header().Clone(), limit: limit}
}

// Unwrap is for http.ResponseController: deadlines and full duplex are the
// connection's.
func (p *response) Unwrap() http.ResponseWriter { return p.w }

func (p *response) Header() http.Header { return p.w.Header() }

func (p *response) WriteHeader(status int) {
	switch {
	case p.hijacked, status > 999, status < 200 && status != http.StatusSwitchingProtocols:
		// An informational response goes out at once; for the rest net/http has words.
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
		p.omit()
	}
}

func (p *response) Write(b []byte) (int, error) {
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
			p.omit()
		} else {
			p.size += len(b)
			p.body = append(p.body, b...)
		}
	}
	if !p.passedOn {
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
func (p *response) Flush() { p.FlushError() }

// FlushError is for http.ResponseController.
func (p *response) FlushError() error {
	if p.hijacked {
		return http.ErrHijacked
	}
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	p.passOn()
	return http.NewResponseController(p.w).Flush()
}

// Hijack gives the connection to the handler, if it can be had. What the handler
// makes of it is not ours to keep.
func (p *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if p.status != 0 {
		p.passOn()
	}
	conn, rw, err := http.NewResponseController(p.w).Hijack()
	if err == nil {
		p.hijacked, p.omitted, p.body = true, true, nil
	}
	return conn, rw, err
}

// end is called when the handler has returned: it has written a header if only by
// returning.
func (p *response) end() {
	if p.status == 0 && !p.hijacked {
		p.WriteHeader(http.StatusOK)
	}
}

// omit passes on what there is and gives up keeping it.
func (p *response) omit() {
	p.omitted = true
	p.passOn()
	p.body = nil
}

// passOn sends the header as it was when it was written, and the body so far. What the
// handler changed in the header since is put back afterwards: there may be trailers.
func (p *response) passOn() {
	if p.passedOn || p.hijacked {
		return
	}
	p.passedOn = true
	h := p.w.Header()
	changed := maps.Clone(h)
	replace(h, p.header)
	p.w.WriteHeader(p.status)
	if len(p.body) > 0 {
		p.w.Write(p.body) // if the client is gone, nobody needs the error
	}
	replace(h, changed)
}

// discard takes back a response that has not been passed on.
func (p *response) discard() { replace(p.w.Header(), p.headerBefore) }

func replace(h, with http.Header) {
	clear(h)
	maps.Copy(h, with)
}

// record returns the part of the response that is kept, after end. Without end, after a panic, it
// has no status.
func (p *response) record(ended bool) Record {
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
func (p *response) truncated() bool {
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
	for _, v := range h["Connection"] {
		for named := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(named), name) {
				return true
			}
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
