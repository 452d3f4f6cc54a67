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
	case !isToken(r.Method) || r.Method == "PRI": // HTTP/2 has any bytes here, and PRI belongs to its preface
		return "the method is not a token"
	case u.Opaque != "" || u.Scheme != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return "the target is neither a path nor a URL of http or https"
	case u.User != nil:
		return "the target has a user"
	case strings.Contains(r.RequestURI, "#"):
		return "the target has a fragment"
	case u.Path == "*" && r.Method != http.MethodOptions:
		return "the target * is for OPTIONS alone"
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		return "the request has no Host"
	case r.Host != "" && !isAuthority(r.Host):
		return "the Host is not a name or an address, with or without a port"
	case len(r.Header["Host"]) > 0 && (len(r.Header["Host"]) > 1 || r.Header["Host"][0] != r.Host):
		return "the Host is not the :authority"
	case loops(r.Header):
		return "the request goes round in circles: see its Via header"
	}
	return ""
}

func isToken(text string) bool {
	for i := range len(text) {
		if classes[text[i]]&tokenByte == 0 {
			return false
		}
	}
	return text != ""
}

// isAuthority reports whether text is a host, with or without a port. Of a name's characters (RFC 3986, 3.2.2) those are
// left out that separate something elsewhere. A percent sign is for paths of Unix sockets.
func isAuthority(text string) bool {
	host, port, cut := text, "", false
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port, cut = text[:i], text[i+1:], true
	}
	if n, err := strconv.ParseUint(port, 10, 16); cut && (err != nil || n == 0 || port[0] == '+') {
		return false
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6()
	}
	for i := range len(host) {
		if b := lower(host[i]); (b < 'a' || b > 'z') && (b < '0' || b > '9') && !strings.Contains("-._~%", host[i:i+1]) {
			return false
		}
	}
	return host != ""
}
