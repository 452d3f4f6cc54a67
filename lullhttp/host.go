package lullhttp

import (
	"net/http"
	"net/netip"
	"strings"
)

// canonicalHost returns the one name for all spellings of a URL's host: in lower case, without the
// dot of a fully qualified name and the default port of its scheme, and with IP addresses as
// [netip.Addr] prints them. Without a scheme the ports of both HTTP and HTTPS are removed. It
// allocates nothing for a host that is canonical but for a dot or a port.
func canonicalHost(scheme, host string) string {
	if isCanonicalName(host) {
		return host
	}
	name, port, address := splitHost(host)
	switch {
	case address:
		if ip, err := netip.ParseAddr(name); err == nil {
			if name = ip.Unmap().String(); strings.Contains(name, ":") {
				name = "[" + name + "]"
			}
		}
	default:
		if n := len(name) - 1; n > 0 && name[n] == '.' {
			name = name[:n]
		}
		name = strings.ToLower(name) // itself if it is that already
	}
	switch {
	case port == "" || isDefault(scheme, port):
		return name
	case len(name)+1+len(port) == len(host) && host[:len(name)] == name && host[len(host)-len(port):] == port:
		return host
	}
	return name + ":" + port
}

// isCanonicalName reports whether host is a name in lower case without a port, as most are.
func isCanonicalName(host string) bool {
	for i := range len(host) {
		if !inCanonicalName[host[i]] {
			return false
		}
	}
	return host == "" || host[len(host)-1] != '.'
}

// inCanonicalName has the bytes of names that are canonical: a table is the quickest test, and each request needs it.
var inCanonicalName = func() (in [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789-." {
		in[c] = true
	}
	return in
}()

// hostOf returns the canonical host of a request's URL.
func hostOf(req *http.Request) string { return canonicalHost(req.URL.Scheme, req.URL.Host) }

// splitHost splits a host. The port has no leading zeros.
func splitHost(host string) (name, port string, address bool) {
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 {
			return host[1:end], trimPort(host[end+1:]), true
		}
		return host, "", false
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		return host[:i], trimPort(host[i:]), false
	}
	return host, "", false
}

// trimPort returns the number in ":080", or "".
func trimPort(port string) string {
	port = strings.TrimPrefix(port, ":")
	if n := strings.TrimLeft(port, "0"); n != "" {
		return n
	}
	return port
}

func isDefault(scheme, port string) bool {
	switch scheme {
	case "http":
		return port == "80"
	case "https":
		return port == "443"
	}
	return port == "80" || port == "443"
}
