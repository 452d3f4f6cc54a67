package proxy

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
)

// The headers between an application and its proxy.
const (
	retryHeader    = "Lull-Retry"    // of a request: "?1" if carrying it out twice is the same as once, "?0" if it must have one attempt
	attemptsHeader = "Lull-Attempts" // of a response: how many attempts the call took
	reasonHeader   = "Lull-Reason"   // of a response that is no success: why no further attempt was made
	staleHeader    = "Lull-Stale"    // of a response that is an older one: "?1"
)

// fromApplication are the headers of a request that are meant for the proxy alone.
var fromApplication = []string{retryHeader, lullhttp.DefaultTimeoutHeader, "X-Envoy-Upstream-Rq-Timeout-Ms"}

// forApplication are the headers of a response that the proxy alone may set.
var forApplication = []string{attemptsHeader, reasonHeader, staleHeader, "Proxy-Status"}

// outgoing directs out, which was made of in, to the door's target.
func (d *door) outgoing(out, in *http.Request) {
	setPath(out.URL, in, d.target)
	if d.target != nil {
		out.URL.Scheme, out.URL.Host = d.target.Scheme, d.target.Host
	}
	if d.target == nil || !d.keep {
		out.Host = ""
	}
	for _, name := range fromApplication {
		delete(out.Header, name)
	}
	out.Header.Add("Via", via(in.Proto))
	out.URL.User = nil
	_ = setTimeLeft(out, nil)
}

// via returns what Via says of a message that has come by that protocol (RFC 9110, 7.6.3).
func via(protocol string) string { return strings.TrimPrefix(protocol, "HTTP/") + " " + pseudonym }

const (
	pseudonym = "lull" // of the proxy in Via
	mostVia   = 8      // proxies of this kind that a request may have passed
)

// loops reports whether a request goes round in circles.
func loops(h http.Header) bool {
	n := 0
	for one := range elements(h["Via"]) {
		if strings.HasSuffix(one, " "+pseudonym) {
			n++
		}
	}
	return n >= mostVia
}

// endsHere answers TRACE and OPTIONS that may go no further, and counts for others how far they may (RFC 9110, 7.6.2).
func endsHere(w http.ResponseWriter, r *http.Request) bool {
	most := r.Header["Max-Forwards"]
	if len(most) == 0 || r.Method != http.MethodOptions && r.Method != http.MethodTrace {
		return false
	}
	switch n, err := strconv.ParseUint(most[0], 10, 31); {
	case err != nil: // it is no number
	case n > 0:
		r.Header["Max-Forwards"] = []string{strconv.FormatUint(n-1, 10)}
	case r.Method == http.MethodTrace:
		fail(w, r, http.StatusMethodNotAllowed, errors.New("this proxy answers no TRACE"), "http_request_denied")
		return true
	default:
		callOf(r.Context()).Own = true
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	return false
}

// setTimeLeft sets Grpc-Timeout, if it is there, to what is left of the time. It is called for each attempt.
func setTimeLeft(r *http.Request, _ error) error {
	if until, bounded := r.Context().Deadline(); bounded && len(r.Header["Grpc-Timeout"]) > 0 {
		r.Header.Set("Grpc-Timeout", grpcTimeout(time.Until(until)))
	}
	return nil
}

// grpcTimeout returns d as gRPC writes it: at most eight digits and a unit.
func grpcTimeout(d time.Duration) string {
	for _, unit := range [...]struct {
		length time.Duration
		name   string
	}{{time.Microsecond, "u"}, {time.Millisecond, "m"}, {time.Second, "S"}} {
		if n := max(d, 1) / unit.length; n < 1e8 {
			return strconv.FormatInt(int64(max(n, 1)), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Hour), 10) + "H"
}

// modifyResponse adds how the call went to its response.
func modifyResponse(resp *http.Response) error {
	removeOurs(resp)
	c, h, o := callOf(resp.Request.Context()), resp.Header, lullhttp.OutcomeOf(resp)
	giveUp(c)
	h[attemptsHeader] = oneText
	if o.Attempts != 1 {
		h[attemptsHeader] = []string{strconv.Itoa(o.Attempts)}
	}
	if o.Reason != engine.Success {
		h[reasonHeader] = []string{o.Reason.String()}
	}
	if c.in.GaveUp() && isGRPC(resp.Request) {
		stopGRPC(h)
		stopGRPC(resp.Trailer)
	}
	if c.Stale = o.Stale; c.Stale {
		h[staleHeader] = []string{"?1"}
	}
	if c.door.target == nil {
		h.Add("Via", via(resp.Proto))
	}
	return passable(resp)
}

// removeOurs removes what the proxy alone may set.
func removeOurs(resp *http.Response) {
	for _, name := range forApplication {
		delete(resp.Header, name)
		delete(resp.Trailer, name)
	}
}

// passable takes from a response what the door's client cannot be sent.
func passable(resp *http.Response) error {
	c := callOf(resp.Request.Context())
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return c.tunnel(resp)
	}
	switch {
	case resp.StatusCode == http.StatusNotModified && len(resp.Header["Content-Length"]) > 0:
		// It is the length of what the client has. Clients of net/http would wait for it over HTTP/2.
		resp.Body.Close()
		resp.Body = http.NoBody
		delete(resp.Header, "Content-Length")
	case len(resp.Trailer) > 0 && resp.Request.ProtoMajor == 1 && resp.Request.Method != http.MethodHead:
		delete(resp.Header, "Content-Length") // over HTTP/1 only a chunked body has trailers
	}
	return nil
}

var oneText = []string{"1"}

// removeHopByHop removes the headers of one connection (RFC 9110, 7.6.1).
func removeHopByHop(h http.Header) {
	for name := range elements(h["Connection"]) {
		h.Del(name)
	}
	for _, name := range [...]string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(h, name)
	}
}

// elements returns the elements of a header that is a list.
func elements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for one := range strings.SplitSeq(line, ",") {
				if !yield(strings.TrimSpace(one)) {
					return
				}
			}
		}
	}
}

// setPath sets the path of u, that of in, behind that of base. Its escapes stay as they came.
func setPath(u *url.URL, in *http.Request, base *url.URL) {
	path := u.RawPath
	switch {
	case u.Path == "*":
		return // of OPTIONS: the whole server
	case u.Path == "" && u.RawQuery == "" && in.Method == http.MethodOptions && base == nil:
		u.Path = "*" // RFC 9112, 3.2.4
		return
	case base != nil && base.Path != "" && base.Path != "/":
		path = strings.TrimSuffix(base.EscapedPath(), "/") + "/" + strings.TrimPrefix(cmp.Or(path, u.EscapedPath()), "/")
	case path == "" || u.EscapedPath() == path:
		return
	}
	// net/url lets bytes pass that may not stand in a path. EscapedPath would then write it anew, with a slash for each "%2F".
	u.RawPath = percentEncoded(path, " \"<>\\^`{|}")
	u.Path, _ = url.PathUnescape(u.RawPath) // what is escaped was parsed before
}
