package lullhttp

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// errorVerdict returns the verdict on an attempt that ended with err instead of a response. It
// decides on whose side the attempt has failed, and whether its request was ever sent, by the table
// of docs/protocols.md, "HTTP: the caller's own side". ClassifyError, or the user's classifier,
// decides what the error means. Nothing was sent if the base transport has asked for a connection,
// had none, and has not read the body.
func (x *exchange) errorVerdict(ctx context.Context, err error) lull.Verdict {
	body := x.bodyFlags()
	if body&bodyFailed != 0 {
		v := lull.VerdictOf(err, func(error) lull.Verdict { return lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"} })
		v.NeverSent = false
		return v.OnCallerSide()
	}
	elsewhere := x.isAboutOtherHost(err)
	v := x.t.classifyError(err, func(err error) lull.Verdict {
		if elsewhere {
			return lull.Verdict{Kind: engine.KindCallerSide, Code: "another_host"}
		}
		return classifyError(err)
	})
	unsent := x.out != nil && x.out.progress.nothingSent() && body&bodyTouched == 0
	if v.Kind == lull.KindUnclassified && (unsent || x.out == nil && x.t.netHTTP) {
		if status, is := classifyRefusedConnect(err); is {
			v, unsent = status, true
		}
	}
	switch {
	case v.Kind == lull.KindSuccess:
		return v
	case elsewhere:
		v = v.OnCallerSide()
	case v.Code == engine.CodeRetriedBelow:
		return v
	case unsent:
		v.NeverSent = true
		if x.out != nil && x.out.progress.waitsForConnection() && ctx.Err() != nil || v.Code == "407" {
			v = v.OnCallerSide()
		}
	case body&bodyWaiting != 0 && ctx.Err() != nil:
		if v = v.OnCallerSide(); x.req.GetBody == nil {
			v.Kind = engine.KindCallerSide // another attempt would wait for the same
		}
	}
	if isType[x509.UnknownAuthorityError](err) || isType[x509.SystemRootsError](err) {
		v = v.OnCallerSide()
	}
	if x.bodyOnce && v.NeverSent && !x.out.progress.keepBody() {
		v.NeverSent = false // as far as the body goes
	}
	return v
}

// responseVerdict returns the verdict on a response. Only a proxy answers 407. A failure after the
// request's body broke off is an answer to that, and a 408 one to a body that is slow.
func (x *exchange) responseVerdict(ctx context.Context, resp *http.Response) lull.Verdict {
	v := x.classifyResponse(ctx, resp)
	switch {
	case v.Kind == lull.KindSuccess:
	case x.bodyFlags()&bodyFailed != 0, resp.StatusCode == http.StatusRequestTimeout && x.bodyFlags()&bodyWaiting != 0:
		v.Kind = engine.KindCallerSide
	case resp.StatusCode == http.StatusProxyAuthRequired:
		v = v.OnCallerSide()
	}
	return v
}

func (x *exchange) bodyFlags() uint32 {
	if x.out == nil {
		return 0
	}
	return x.out.progress.bodyState.Load()
}

// isAboutOtherHost reports whether err is about another host than that of the request. An error of
// an http.Client, a DNS lookup and a response that the error carries show their host. The address
// of a dial shows it unless the base transport has looked for a trace: then it dials for this
// request, maybe a proxy.
func (x *exchange) isAboutOtherHost(err error) bool {
	reports := x.out == nil || x.out.progress.tracer.Load() != nil // the base transport, or one beneath it, looks for a trace
	return neterr.AnyOf(err, func(err error) bool {
		switch e := err.(type) {
		case *url.Error:
			u, bad := url.Parse(e.URL)
			return bad == nil && u.Host != "" && !x.isHost(canonicalHost(u.Scheme, u.Host))
		case *net.DNSError:
			return !reports && e.Name != "" && !x.isName(e.Name)
		case *net.OpError:
			return !reports && e.Op == "dial" && e.Addr != nil && !x.isAddress(e.Addr.String())
		}
		resp := carriedResponse(err)
		if resp == nil || resp.Request == nil || resp.Request.URL == nil || resp.Request.Method == http.MethodConnect {
			return false
		}
		return !x.isHost(hostOf(resp.Request))
	})
}

// anyRequest reports whether f holds for the caller's request, or for the one that was sent. They
// have different hosts if the host has endpoints.
func (x *exchange) anyRequest(f func(*http.Request) bool) bool {
	return f(x.req) || x.out != nil && f(&x.out.req)
}

func (x *exchange) isHost(host string) bool {
	return x.anyRequest(func(r *http.Request) bool { return hostOf(r) == host || canonicalHost(r.URL.Scheme, r.Host) == host })
}

func (x *exchange) isName(name string) bool {
	name = canonicalHost("", strings.TrimSuffix(name, "."))
	return x.anyRequest(func(r *http.Request) bool { return hostname(r) == name })
}

// isAddress reports whether the address may be the request's: it has its port, and its IP address
// if the request has one instead of a name.
func (x *exchange) isAddress(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return true // of a Unix socket
	}
	return x.anyRequest(func(r *http.Request) bool {
		name, port, _ := splitHost(r.URL.Host)
		port = cmp.Or(port, map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
		ip, err := netip.ParseAddr(name)
		return port == strconv.Itoa(int(at.Port())) && (err != nil || ip.Unmap() == at.Addr().Unmap())
	})
}
