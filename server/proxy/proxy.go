// Package proxy is lull for programs that are not written in Go: a proxy that makes HTTP calls under a lull.Policy.
//
//	p, err := proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{
//		"payments": {Listen: "127.0.0.1:9001", To: []string{"https://payments.example"}},
//	}})
//	...
//	return p.Serve(ctx)
package proxy
