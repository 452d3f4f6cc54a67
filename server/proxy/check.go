package proxy

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// refusalOf returns what is wrong with a request that net/http has accepted, or "".
func refusalOf(r *http.Request) string {
	u := r.URL
	switch {
	case !hasOnly(r.Method, tokenByte) || r.Method == "PRI": // HTTP/2 has any bytes here, and PRI belongs to its preface
		return "the method is not a token"
	case r.Method == http.MethodConnect && r.RequestURI != r.Host:
		return "CONNECT wants a host and a port"
	case u.Opaque != "" || u.Scheme != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return "the target is neither a path nor a URL of http or https"
	case u.User != nil:
		return "the target has a user"
	case !hasOnly(r.RequestURI, targetByte):
		return "the target has a fragment, a blank or a control character"
	case u.Path == "*" && r.Method != http.MethodOptions:
		return "the target * is for OPTIONS alone"
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		return "the request has no Host"
	case r.Host != "" && !isAuthority(r.Host):
		return "the Host is not a name or an address, with or without a port"
	case len(r.Header["Host"]) > 0 && (len(r.Header["Host"]) > 1 || !strings.EqualFold(r.Header["Host"][0], r.Host)):
		return "the Host is not the :authority"
	case r.ProtoMajor == 2 && u.Host != "" && r.Method != http.MethodConnect:
		return "the :path is a URL"
	case r.ProtoMajor == 2 && !isLength(r.Header["Content-Length"], r.ContentLength):
		return "the Content-Length is not that of the body"
	}
	return ""
}

// maySwitch reports whether r may switch protocols. The guard lets everything pass that follows it.
func maySwitch(r *http.Request) bool {
	return r.Method == http.MethodConnect || len(r.Header["Upgrade"]) > 0
}

// dropH2C removes an offer to switch to HTTP/2: behind it the upstream would get requests that no door has seen. (RFC 9113
// has given this way up, and a server may ignore it.)
func dropH2C(h http.Header) {
	if up := h["Upgrade"]; len(up) == 1 && strings.EqualFold(up[0], "h2c") {
		delete(h, "Upgrade")
		delete(h, "Http2-Settings")
	}
}

// isLength reports whether a request over HTTP/2 has no Content-Length, or one that net/http has believed.
func isLength(values []string, length int64) bool {
	if len(values) == 0 {
		return true
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	return len(values) == 1 && err == nil && int64(n) == length
}

// hasOnly reports whether text has bytes of a class alone, and at least one.
func hasOnly[T string | []byte](text T, class uint8) bool {
	for i := range len(text) {
		if classes[text[i]]&class == 0 {
			return false
		}
	}
	return len(text) > 0
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// isAuthority reports whether text is a host, with or without a port. Of a name's characters (RFC 3986, 3.2.2) those are
// left out that separate something elsewhere. A percent sign is for paths of Unix sockets.
func isAuthority(text string) bool {
	host, port, cut := text, "", false
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port, cut = text[:i], text[i+1:], true
	}
	if cut && !validPort(port) {
		return false
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	for i := range len(host) {
		if b := lower(host[i]); (b < 'a' || b > 'z') && (b < '0' || b > '9') && !strings.Contains("-._~%", host[i:i+1]) {
			return false
		}
	}
	return host != ""
}
