package proxy

import (
	"net"
	"net/http"
	"time"

	"github.com/lullgo/lull/internal/memnet"
)

// InMemory makes doors listen and calls go in memory.
func InMemory() Option {
	return func(p *Proxy) {
		p.listen = func(address string) (net.Listener, error) { return memnet.ListenOn(address) }
		for _, t := range []target{{}, {forward: true}} {
			p.bases[t] = &http.Transport{DialContext: memnet.Dial, DisableCompression: true, IdleConnTimeout: time.Minute}
		}
	}
}
