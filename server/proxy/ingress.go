package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/idempotency"
)

func (n *plan) ingress(d *door, i Ingress) error {
	to, at := parseTarget(i.To)
	d.target, d.keep = to, true
	base, err := n.base(at)
	if err != nil {
		return err
	}
	d.tls = tlsFiles{cert: i.Cert, key: i.Key, clientCA: i.ClientCA}
	trusted := trusts[i.Trust]
	d.calls = &onceTransport{base: base}
	d.direct = func(out, in *http.Request) { d.toApplication(out, in, trusted(in)) }
	d.receive, d.refuse = fromIngress, answerIngress
	var inner http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer n.proxy.layers.begin(r)()
		d.pass(w, r)
	})
	if i.Keys.Store != "" {
		if inner, err = n.proxy.withKeys(inner, i.Keys); err != nil {
			return err
		}
	}
	if !i.Admission.Off {
		control, err := admission.New(admission.Config{Max: i.Admission.Max}, admission.WithObserver(n.proxy.wiring.Admission))
		if err != nil {
			return err
		}
		admit, err := admission.NewGate(control).Middleware(admission.WithTrust(trusted), admission.WithSkip(func(r *http.Request) bool { return upgradeOf(r.Header) != "" }))
		if err != nil {
			return err
		}
		inner = admit.Handler(inner)
		d.gate = admit.Gate()
	}
	opts := []lullhttp.HandlerOption{lullhttp.WithTrust(trusted)}
	if i.MaxTimeout > 0 {
		opts = append(opts, lullhttp.LimitTimeout(0, i.MaxTimeout))
	}
	d.handler, err = lullhttp.NewHandler(inner, opts...)
	return err
}

var trusts = map[Trust]func(*http.Request) bool{Nobody: lullhttp.TrustNobody, Everybody: lullhttp.TrustEverybody, MutualTLS: lullhttp.TrustMutualTLS}

func (p *Proxy) withKeys(next http.Handler, k Keys) (http.Handler, error) {
	if p.wiring.Store == nil {
		return nil, fmt.Errorf("keys.store is %q: want a store (proxy.Wiring.Store)", k.Store)
	}
	header := http.CanonicalHeaderKey(cmp.Or(k.Scope, "Authorization"))
	keys, err := idempotency.New(p.wiring.Store, idempotency.Config{Optional: !k.Required}, idempotency.WithScope(func(r *http.Request) (string, bool) {
		v := r.Header.Get(header)
		return v, v != ""
	}))
	if err != nil {
		return nil, err
	}
	return keys.Wrap(next), nil
}

// toApplication makes the request that the application gets. What only insiders may say is removed, unless the client is trusted.
func (d *door) toApplication(out, in *http.Request, trusted bool) {
	d.outgoing(out, in)
	if !trusted {
		maps.DeleteFunc(out.Header, isInner)
		maps.DeleteFunc(in.Trailer, isInner) // which is that of out
	}
	(&httputil.ProxyRequest{In: in, Out: out}).SetXForwarded()
	delete(out.Header, lullhttp.DefaultTimeoutHeader)
	if until, bounded := in.Context().Deadline(); bounded {
		out.Header.Set(lullhttp.DefaultTimeoutHeader, lullhttp.FormatTimeout(time.Until(until)))
	}
}

// isInner reports whether a header is one that only insiders may set. Some applications read "_" as "-".
func isInner(name string, _ []string) bool {
	switch name {
	case "Lull", "Grpc-Previous-Rpc-Attempts", "Forwarded", "X-Forwarded", "X-Real-Ip", "X-Original-Url", "X-Rewrite-Url":
		return true
	}
	return strings.HasPrefix(name, "Lull-") || strings.HasPrefix(name, "X-Envoy-") || strings.HasPrefix(name, "X-Forwarded-") || strings.Contains(name, "_")
}

// fromIngress passes the application's response on.
func fromIngress(resp *http.Response) error {
	removeOurs(resp)
	return passable(resp)
}
