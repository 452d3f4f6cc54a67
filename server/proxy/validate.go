package proxy

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	problems "github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/server/admission"
)

var (
	repeatNames = []string{"by-method", "yes", "no", "once"}
	trustNames  = []string{"nobody", "everybody", "mutual-tls"}
)

// String returns the rule as in a file: "by-method", "yes", "no" or "once".
func (r Repeat) String() string { return choice.Name("repeat", repeatNames, r) }

// String returns the trust as in a file: "nobody", "everybody" or "mutual-tls".
func (t Trust) String() string { return choice.Name("trust", trustNames, t) }

const (
	allowedListen = "127.0.0.1:9001, 0.0.0.0:9001 for all addresses of this machine, or unix:/run/lull/name.sock with a path of at most 107 bytes"
	allowedTo     = "https://payments.example, http://10.0.0.7:8080, h2c://orders:50051 or unix:/run/app.sock"
	allowedHost   = "api.example.com, *.example.com, 10.0.0.7:8080, or * for all"
	allowedStore  = "memory, bolt:/var/lib/lull/keys.db, redis://127.0.0.1:6379/0 or postgres://..."
	notNegative   = "0 or more"
	mostReplay    = 1 << 30
	mostHeader    = 64 << 20
	mostClients   = 1_000_000
)

// text is a value of a problem: what is in quotes.
type text string

func (t text) String() string { return strconv.Quote(string(t)) }

// Validate returns everything that is wrong in c; nil if nothing is. Files that c names are not read. Whether a policy is valid
// is not checked.
func (c Config) Validate() error {
	v := &validation{doors: map[string]string{}}
	if len(c.Upstreams) == 0 && c.Forward.Listen == "" && c.Ingress.Listen == "" {
		v.Add("Upstreams", "empty", "a door: upstreams, forward or ingress")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		field := fmt.Sprintf("Upstreams[%q]", name)
		v.Check(name != "" && name != ForwardDoor && name != IngressDoor && name != "admin", field, text(name), "a name, and none of forward, ingress and admin, which are those of other doors")
		v.upstream(name, field, c.Upstreams[name])
	}
	if f := c.Forward; f.Listen != "" || len(f.Hosts) > 0 || len(f.Routes) > 0 {
		v.forward(f)
	}
	if c.Ingress != (Ingress{}) {
		v.ingress(c.Ingress)
	}
	v.limits(c.Limits)
	return v.Err()
}

type validation struct {
	problems.List
	doors map[string]string // addresses by name
}

func (v *validation) text(ok bool, field, value, allowed string) {
	v.Check(ok, field, text(value), allowed)
}

func (v *validation) size(field string, n, most int64) {
	v.Check(n >= 0 && n <= most, field, n, fmt.Sprintf("0 to %d", most))
}

func (v *validation) notNegative(field string, d time.Duration) {
	v.Check(d >= 0, field, d, "0 or a positive duration")
}

// listen checks the address of the door of that name, and that no other has it.
func (v *validation) listen(name, field, address string) {
	normal, ok := listenAddress(address)
	if v.text(ok, field, address, allowedListen); !ok {
		return
	}
	for _, other := range slices.Sorted(maps.Keys(v.doors)) {
		had := v.doors[other]
		v.text(had != normal && !overlap(normal, had), field, address, "an address of its own: the door "+other+" has "+had)
	}
	if !strings.HasSuffix(normal, ":0") { // 0 is any free port
		v.doors[name] = normal
	}
}

// overlap reports whether one of two addresses is all those of this machine, at the port of the other.
func overlap(a, b string) bool {
	host, port, _ := net.SplitHostPort(a)
	otherHost, otherPort, _ := net.SplitHostPort(b)
	all := func(host string) bool { return host == "0.0.0.0" || host == "::" }
	return port != "" && port == otherPort && (all(host) || all(otherHost))
}

// listenAddress returns the one form of an address to listen at.
func listenAddress(address string) (string, bool) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return address, len(path) > 1 && len(path) <= 107 && path[0] == '/' && !strings.Contains(path, "\x00")
	}
	host, port, err := net.SplitHostPort(address)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	n, noPort := strconv.ParseUint(port, 10, 16)
	if err != nil || !validHost(host) || strings.Contains(host, "*") || noPort != nil {
		return "", false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(n)).String(), true
	}
	return net.JoinHostPort(host, port), true
}

// target checks where a door leads, and returns the scheme and the path.
func (v *validation) target(field, to, listen string) string {
	if strings.HasPrefix(to, "unix:") {
		_, ok := listenAddress(to)
		v.text(ok, field, to, allowedTo)
		v.text(!ok || to != listen, field, to, "another address than that of the door")
		return "unix"
	}
	u, err := url.Parse(to)
	ok := err == nil && slices.Contains([]string{"http", "https", "h2c"}, u.Scheme) && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && !strings.ContainsAny(to, "?#") &&
		(validPort(u.Port()) || u.Port() == "" && !strings.HasSuffix(u.Host, ":"))
	if v.text(ok, field, to, allowedTo); !ok {
		return ""
	}
	at, atOK := listenAddress(u.Host)
	own, ownOK := listenAddress(listen)
	v.text(!atOK || !ownOK || at != own, field, to, "another address than that of the door")
	return strings.TrimRight(u.Scheme+"://..."+u.Path, "/")
}

func (v *validation) upstream(name, field string, u Upstream) {
	v.listen(name, field+".Listen", u.Listen)
	v.Check(len(u.To) > 0, field+".To", "empty", "at least one of "+allowedTo)
	schemes := make([]string, len(u.To))
	for i, to := range u.To {
		at := fmt.Sprintf("%s.To[%d]", field, i)
		schemes[i] = v.target(at, to, u.Listen)
		v.text(slices.Index(u.To, to) == i, at, to, "each address once")
		v.text(schemes[i] == "" || schemes[0] == "" || schemes[i] == schemes[0], at, to, "the scheme and path of the first, "+schemes[0])
	}
	v.text(u.CA == "" || len(schemes) > 0 && strings.HasPrefix(schemes[0], "https:"), field+".CA", u.CA, "none, since nothing here is https")
	v.calls(field, u.Replay, u.Stale)
	v.routes(field, u.Routes, false)
}

func (v *validation) calls(field string, replay int64, stale time.Duration) {
	v.size(field+".Replay", replay, mostReplay)
	v.notNegative(field+".Stale", stale)
}

// routes checks patterns. Those of a forward door begin with a host.
func (v *validation) routes(field string, routes []Route, hosts bool) {
	var all http.ServeMux
	for i, r := range routes {
		at := fmt.Sprintf("%s.Routes[%d]", field, i)
		v.Check(r.Repeat <= Once, at+".Repeat", r.Repeat, choice.List(repeatNames))
		exception := slices.ContainsFunc(routes, func(other Route) bool { // from a wider pattern
			_, path, _ := strings.Cut(other.Match, "/")
			return other.Repeat != ByMethod && strings.HasSuffix(other.Match, "/") && strings.Contains(r.Match, "/"+path)
		})
		v.text(r.Policy != "" || r.Repeat != ByMethod || exception, at+".Match", r.Match, "a policy or repeat beside it: without them the route has no effect")
		allowed := `a pattern such as "POST /charges/{id}" or /v1/`
		if hosts {
			allowed = `a pattern with a host, such as "POST api.example.com/v1/"`
		}
		pattern := r.Match
		if method, after, ok := strings.Cut(pattern, " "); ok {
			pattern = strings.TrimLeft(after, " \t")
			v.text(method == strings.ToUpper(method), at+".Match", r.Match, "a method in capitals: "+strings.ToUpper(method))
		}
		v.text(!strings.Contains(pattern, "?"), at+".Match", r.Match, "a path without a query: patterns do not see it")
		wrong := handle(&all, r.Match)
		if _, other, ok := strings.Cut(wrong, "conflicts with pattern "); ok {
			other, _, _ = strings.Cut(other, " (registered")
			allowed = "a pattern that is not the same as " + other + " for some requests, unless it is the same or stricter for all of them"
		} else if _, reason, ok := strings.Cut(wrong, `": `); ok {
			allowed += ": " + reason
		}
		v.text(wrong == "" && strings.HasPrefix(pattern, "/") != hosts, at+".Match", r.Match, allowed)
	}
}

// handle returns what mux has against a pattern.
func handle(mux *http.ServeMux, pattern string) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint(r)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return ""
}

func (v *validation) forward(f Forward) {
	v.listen(ForwardDoor, "Forward.Listen", f.Listen)
	v.Check(len(f.Hosts) > 0, "Forward.Hosts", "empty", "the hosts that may be called: "+allowedHost)
	for i, host := range f.Hosts {
		at := fmt.Sprintf("Forward.Hosts[%d]", i)
		v.text(validHost(host), at, host, allowedHost)
		v.text(host != "*" || onlyHere(f.Listen), at, host, "named hosts, since others than this machine reach the door at "+f.Listen)
	}
	v.calls("Forward", f.Replay, f.Stale)
	v.routes("Forward", f.Routes, true)
}

// onlyHere reports whether only this machine reaches an address to listen at.
func onlyHere(address string) bool {
	normal, ok := listenAddress(address)
	if !ok || strings.HasPrefix(normal, "unix:") {
		return true // a wrong one has been reported
	}
	at, err := netip.ParseAddrPort(normal)
	return err == nil && at.Addr().IsLoopback()
}

func validHost(pattern string) bool {
	if pattern == "*" {
		return true
	}
	host, port, err := net.SplitHostPort(pattern)
	if err != nil {
		host, port = strings.Trim(pattern, "[]"), "1"
	}
	if !validPort(port) {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(host, "*."), ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) {
			return false
		}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return len(host) <= 253 && strings.Trim(last, "0123456789") != "" // else it is a wrong IP address
}

func (v *validation) ingress(g Ingress) {
	v.listen(IngressDoor, "Ingress.Listen", g.Listen)
	v.target("Ingress.To", g.To, g.Listen)
	v.notNegative("Ingress.MaxTimeout", g.MaxTimeout)
	v.size("Ingress.Admission.Max", int64(g.Admission.Max), admission.MaxLimit)
	v.Check(!g.Admission.Off || g.Admission.Max == 0, "Ingress.Admission.Max", g.Admission.Max, "none, since admission is off")

	keys := g.Keys
	v.text(keys.Scope == "" || keys.Store != "" && hasOnly(keys.Scope, tokenByte), "Ingress.Keys.Scope", keys.Scope, "the name of a header, beside a store")
	v.Check(!keys.Required || keys.Store != "", "Ingress.Keys.Required", keys.Required, "a store beside it: "+allowedStore)

	v.text((g.Cert == "") == (g.Key == ""), "Ingress.Cert", g.Cert, "two files, cert and key, or none")
	v.Check(g.Trust <= MutualTLS, "Ingress.Trust", g.Trust, choice.List(trustNames))
	v.Check(g.Trust != MutualTLS || g.Cert != "" && g.ClientCA != "", "Ingress.Trust", g.Trust, "nobody or everybody, or cert, key and client_ca beside it")
	v.text(g.ClientCA == "" || g.Trust == MutualTLS, "Ingress.ClientCA", g.ClientCA, "trust: mutual-tls beside it, or none")
}

func (v *validation) limits(l Limits) {
	v.size("Limits.HeaderBytes", int64(l.HeaderBytes), mostHeader)
	v.Check(l.BodyBytes >= 0, "Limits.BodyBytes", l.BodyBytes, notNegative)
	v.size("Limits.Connections", int64(l.Connections), mostClients)
	v.notNegative("Limits.HeaderTime", l.HeaderTime)
	v.notNegative("Limits.BodyIdle", l.BodyIdle)
	v.notNegative("Limits.IdleTime", l.IdleTime)
	var units problems.List
	units.Units(l)
	v.In("Limits", units.Err())
}
