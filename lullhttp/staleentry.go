package lullhttp

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// What is stored for a URL is a response, or a list of the request's fields that choose one of
// several (Vary). Then each response is stored under a key that has the values of these fields.
// A response is stored as it would be sent by HTTP/1.1, with two fields more.
const (
	hdrRequested = "Lull-Requested" // when the request was sent, in ns since 1970
	hdrAnswered  = "Lull-Answered"  // when its header came
	hdrUnpacked  = "Lull-Unpacked"  // http.Transport has decompressed the body
	varyMark     = "vary "          // then: since when, and the names
)

// notStored are the fields of a stored response that are left out: those of its connection (RFC 9111,
// 3.1), and cookies, which an old response must not set again.
var notStored = [...]string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection",
	"Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", hdrRequested, hdrAnswered, hdrUnpacked}

// encodeHeader returns the stored form of a response without its body, which has the given length.
func encodeHeader(resp *http.Response, length int, requested, answered time.Time) []byte {
	h := resp.Header.Clone()
	if h == nil { // a base transport may leave it out
		h = make(http.Header, 3)
	}
	for name := range strings.SplitSeq(strings.Join(h["Connection"], ","), ",") {
		switch name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
		case "Cache-Control", "Pragma", "Vary", hdrAge, hdrDate, "Expires", "Content-Encoding":
			// Never a connection's (RFC 9110, 7.6.1), and without them more would be allowed.
		default:
			delete(h, name)
		}
	}
	for _, key := range notStored {
		delete(h, key)
	}
	delete(h, "Content-Length")
	if resp.StatusCode != http.StatusNoContent { // RFC 9110, 8.6
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	h[hdrRequested] = []string{strconv.FormatInt(requested.UnixNano(), 10)}
	h[hdrAnswered] = []string{strconv.FormatInt(answered.UnixNano(), 10)}
	if resp.Uncompressed {
		h[hdrUnpacked] = []string{"1"}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	h.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// A storedResponse is a response out of a store, and what its age follows from.
type storedResponse struct {
	*http.Response
	requested, answered time.Time
	control             cacheControl
}

// decodeResponse returns a response to req. It returns false for what encodeHeader has not made.
func decodeResponse(value []byte, req *http.Request) (r storedResponse, ok bool) {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(value)), req)
	if err != nil {
		return r, false
	}
	body, err := io.ReadAll(resp.Body)
	requested, err1 := strconv.ParseInt(resp.Header.Get(hdrRequested), 10, 64)
	answered, err2 := strconv.ParseInt(resp.Header.Get(hdrAnswered), 10, 64)
	if err != nil || err1 != nil || err2 != nil || int64(len(body)) != max(resp.ContentLength, 0) {
		return r, false
	}
	resp.Uncompressed = resp.Header.Get(hdrUnpacked) != ""
	for _, key := range [...]string{hdrRequested, hdrAnswered, hdrUnpacked} {
		delete(resp.Header, key)
	}
	resp.Body, resp.Close = io.NopCloser(bytes.NewReader(body)), false
	return storedResponse{resp, time.Unix(0, requested), time.Unix(0, answered), parseCacheControl(resp.Header)}, true
}

// storedAt returns when a stored response was answered, or since when a list counts; zero for
// anything else.
func storedAt(value []byte) time.Time {
	if since, _, ok := decodeVary(value); ok {
		return since
	}
	head, _, _ := bytes.Cut(value, []byte("\r\n\r\n"))
	_, rest, _ := bytes.Cut(head, []byte("\r\n"+hdrAnswered+": "))
	at, _, _ := bytes.Cut(rest, []byte("\r\n"))
	ns, err := strconv.ParseInt(string(at), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// age returns how old the response is at now (RFC 9111, 4.2.3).
func (r *storedResponse) age(now time.Time) time.Duration {
	c := clock{header: r.Header, now: r.answered}
	apparent := max(r.answered.Sub(r.date()), 0)
	corrected := saturating.Add(c.age(), max(r.answered.Sub(r.requested), 0))
	return saturating.Add(max(apparent, corrected), max(now.Sub(r.answered), 0))
}

func (r *storedResponse) date() time.Time {
	if date, ok := parseHTTPDate(r.Header.Get(hdrDate), r.answered); ok {
		return date
	}
	return r.answered
}

// lifetime returns how long the response is fresh (RFC 9111, 4.2.1). It guesses nothing.
func (r *storedResponse) lifetime(private bool) time.Duration {
	switch c := r.control; {
	case !private && c.sharedMaxAge != absent:
		return c.sharedMaxAge
	case c.maxAge != absent:
		return c.maxAge
	}
	if expires, ok := parseHTTPDate(r.Header.Get("Expires"), r.answered); ok {
		return max(expires.Sub(r.date()), 0)
	}
	return 0
}

// urlKey returns the key of what a GET of the request's URL answers; at, if not nil, is another URL of
// the same origin.
func urlKey(req *http.Request, at *url.URL) string {
	at = cmp.Or(at, req.URL)
	key := strings.ToLower(req.URL.Scheme) + "://" + hostOf(req)
	if sent := canonicalHost(req.URL.Scheme, req.Host); sent != "" && sent != hostOf(req) {
		key += "(" + sent + ")"
	}
	return key + at.RequestURI()
}

// variantKey returns the key of the response that the request's fields choose.
func variantKey(key string, req *http.Request, names []string) string {
	if len(names) == 0 {
		return key
	}
	sum := sha256.New()
	for _, name := range names {
		if len(req.Header[name]) == 0 { // one that is there but empty is another (RFC 9111, 4.1)
			fmt.Fprintf(sum, "%s\n", name)
			continue
		}
		values := make([]string, 0, 2)
		for _, v := range req.Header[name] {
			values = append(values, strings.Trim(v, " \t"))
		}
		fmt.Fprintf(sum, "%s: %q\n", name, strings.Join(values, ", "))
	}
	return key + "#" + hex.EncodeToString(sum.Sum(nil))
}

// varyNames returns the names in the Vary fields, in their canonical form and in order; false for *.
func varyNames(h http.Header) ([]string, bool) {
	var names []string
	for name := range strings.SplitSeq(strings.Join(h["Vary"], ","), ",") {
		switch name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); {
		case name == "*":
			return nil, false
		case name != "":
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// encodeVary returns the stored form of a list of fields. Responses stored before since do not count.
func encodeVary(since time.Time, names []string) []byte {
	return []byte(varyMark + strconv.FormatInt(since.UnixNano(), 10) + " " + strings.Join(names, ","))
}

func decodeVary(value []byte) (since time.Time, names []string, ok bool) {
	if !bytes.HasPrefix(value, []byte(varyMark)) {
		return time.Time{}, nil, false
	}
	at, list, _ := strings.Cut(string(value[len(varyMark):]), " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || list == "" {
		return time.Time{}, nil, false
	}
	return time.Unix(0, ns), strings.Split(list, ","), true
}
