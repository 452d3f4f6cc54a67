package proxy

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
)

func (n *plan) forward(d *door, f Forward) error {
	d.hosts = newHostList(f.Hosts)
	base, err := n.base(target{forward: true, ca: f.CA})
	if err != nil {
		return err
	}
	if err := d.setRoutes(n, f.Routes); err != nil {
		return err
	}
	return d.setCalls(f.Replay, f.Stale, f.Resume, n.withBase(base))
}

// mayForward reports whether the forward door may make the request. If not, it has answered it.
func (d *door) mayForward(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !r.URL.IsAbs():
		fail(w, r, http.StatusBadRequest, errors.New("this is a proxy: it takes requests with the whole URL, as clients send them that have HTTP_PROXY"), "http_request_error")
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		fail(w, r, http.StatusBadRequest, errors.New("want a URL of http or https"), "http_request_error")
	default:
		return d.mayCall(w, r, r.URL.Hostname(), portOf(r.URL))
	}
	return false
}

func (d *door) mayCall(w http.ResponseWriter, r *http.Request, host, port string) bool {
	if d.hosts.allow(host, port) {
		return true
	}
	fail(w, r, http.StatusForbidden, errors.New("the forward door may not call "+r.Host+": name it under forward.hosts"), "http_request_denied")
	return false
}

var usualPorts = map[string]string{"http": "80", "https": "443"}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), usualPorts[u.Scheme])
}

// hostName returns the host of u as the name of a dependency: in lower case, without the usual port.
func hostName(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if p := portOf(u); p != usualPorts[u.Scheme] {
		return net.JoinHostPort(host, p)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// A hostList is which hosts the forward door may call.
type hostList struct {
	all    bool
	exact  map[string]bool // "host:port"
	suffix map[string]bool // ".example.com:443"
}

func newHostList(hosts []string) hostList {
	l := hostList{exact: map[string]bool{}, suffix: map[string]bool{}}
	for _, h := range hosts {
		if h == "*" {
			l.all = true
			continue
		}
		host, port, err := net.SplitHostPort(h)
		ports := []string{port}
		if err != nil {
			host, ports = strings.Trim(h, "[]"), []string{"80", "443"}
		}
		host = plainHost(host)
		for _, p := range ports {
			if suffix, ok := strings.CutPrefix(host, "*"); ok {
				l.suffix[suffix+":"+p] = true
			} else {
				l.exact[host+":"+p] = true
			}
		}
	}
	return l
}

// allow reports whether the host may be called at that port.
func (l hostList) allow(host, port string) bool {
	host = plainHost(host)
	if l.all && host != "" || l.exact[host+":"+port] {
		return true
	}
	for i := range len(host) {
		if host[i] == '.' && l.suffix[host[i:]+":"+port] {
			return true
		}
	}
	return false
}

// plainHost returns a host in the one spelling that it has in a hostList.
func plainHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return host
}

// mayForwardTo reports whether the forward door's list has the address exactly, so that calls to it are meant even if it is
// this machine's. A name in the list is not enough, since who answers for the name chooses the address: "localhost" alone
// can mean nothing else.
func (p *Proxy) mayForwardTo(called string, addr netip.Addr, port uint16) bool {
	d := (*p.doors.Load())[ForwardDoor]
	if d == nil {
		return false
	}
	exact := func(host string) bool { return d.hosts.exact[host+":"+strconv.Itoa(int(port))] }
	host, _, _ := net.SplitHostPort(called)
	host = plainHost(host)
	return exact(addr.String()) || addr.IsLoopback() && (host == "localhost" || strings.HasSuffix(host, ".localhost")) && exact(host)
}

// mayDial returns an error if resolved, an address of what is called, may not be called.
func (p *Proxy) mayDial(called, resolved string, forward bool) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return lull.Permanent(errAddress)
	}
	addr := plainAddr(at.Addr())
	for _, own := range *p.never.Load() {
		if own.Port() == at.Port() && (plainAddr(own.Addr()) == addr || isLocal(addr)) {
			return lull.Permanent(errAddress)
		}
	}
	if forward && (isLocal(addr) || addr.IsLinkLocalUnicast() || addr.IsMulticast() || isMetadata(addr)) && !p.mayForwardTo(called, addr, at.Port()) {
		return lull.Permanent(errAddress)
	}
	return nil
}

// plainAddr returns what a stands for: the IPv4 address that is mapped into it, or that a gateway takes out of it
// (NAT64: RFC 6052; 6to4: RFC 3056).
func plainAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 2:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

func isLocal(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	interfaces, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(interfaces, func(i net.Addr) bool { // an error: nobody knows
		n, ok := i.(*net.IPNet)
		return ok && n.IP.Equal(a.AsSlice())
	})
}

// isMetadata reports whether a cloud has its metadata at a, apart from link-local addresses.
func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16":
		return true
	}
	return false
}

// connect answers CONNECT: it passes bytes in both directions. Only the connection is retried.
func (d *door) connect(w http.ResponseWriter, r *http.Request) {
	if d.target != nil || r.ProtoMajor != 1 {
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE")
		fail(w, r, http.StatusMethodNotAllowed, errors.New("only the forward door takes CONNECT, over HTTP/1.1"), "http_request_denied")
		return
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || !validPort(port) || host == "" {
		fail(w, r, http.StatusBadRequest, errors.New("CONNECT wants a host and a port"), "http_request_error")
		return
	}
	if !d.mayCall(w, r, host, port) {
		return
	}
	address := net.JoinHostPort(host, port)
	dial := d.proxy.dialer(target{forward: true})
	to, err := lull.Do(r.Context(), d.proxy.hosts.Get(hostName(&url.URL{Scheme: "https", Host: address})), func(ctx context.Context) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	}, lull.Operation(http.MethodConnect), lull.Idempotent())
	if err != nil {
		answer(w, r, err)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		fail(w, r, http.StatusInternalServerError, err, "proxy_internal_error")
		return
	}
	defer from.Close()
	if _, err := from.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err == nil {
		callOf(r.Context()).join(http.StatusOK, from, buffered, to)
	}
}
