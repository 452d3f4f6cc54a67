package proxy

import (
	"net"
	"net/http"
	"time"

	"github.com/lullgo/lull/internal/memnet"
)

// The defaults of Limits.
const (
	DefaultHeaderTime = defaultHeaderTime
	DefaultIdleTime   = defaultIdleTime
	DefaultBodyIdle   = defaultBodyIdle
)

// InMemory makes doors listen and calls go in memory.
func InMemory(c Config, w Wiring) (*Proxy, error) {
	w.Listen = func(address string) (net.Listener, error) { return memnet.ListenOn(address) }
	p, err := New(Config{Forward: Forward{Listen: "127.0.0.1:0", Hosts: []string{"none"}}}, w)
	if err != nil {
		return nil, err
	}
	for _, t := range []target{{}, {forward: true}, {h2c: true}} {
		p.bases[t] = &http.Transport{DialContext: memnet.Dial, DisableCompression: true, IdleConnTimeout: time.Minute}
		if t.h2c {
			p.bases[t].Protocols = new(http.Protocols)
			p.bases[t].Protocols.SetUnencryptedHTTP2(true)
		}
	}
	return p, p.Update(c)
}

// Draining reports whether Serve waits for its last requests.
func (p *Proxy) Draining() bool { return p.draining.Load() }

// Guarded returns what net/http reads in place of sent, if its connection has a guard, and where the guard sees requests end.
// switching: the last one may switch protocols, and what follows it is passed on as it is.
func Guarded(sent []byte) (passed []byte, ends []int, refusal string, switching bool) {
	g := new(guard)
	for i := range sent {
		if g.scan(sent[i:i+1]) == 0 {
			return append(sent[:i:i], poison...), ends, g.refusal, false
		}
		switch {
		case g.at == atRequest && len(g.line) == 0:
			ends = append(ends, i+1)
		case g.at == beyond:
			return sent, append(ends, i+1), "", true
		}
	}
	return sent, ends, "", false
}

// GuardedAtOnce returns how much of sent a guard passes that sees all of it at once.
func GuardedAtOnce(sent []byte) int { return new(guard).scan(sent) }

// MayDial reports whether a door may call resolved, an address of called.
func (p *Proxy) MayDial(called, resolved string, forward bool) bool {
	return p.mayDial(called, resolved, forward) == nil
}
