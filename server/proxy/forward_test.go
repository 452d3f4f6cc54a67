package proxy_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// The forward door calls hosts that are named, in any spelling of the same name, and nothing else.
func TestForwardCallsNamedHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		for target, want := range map[string]string{
			"http://app/": "200", "http://app:80/": "200", "http://app": "200",
			"http://evil/": "403", "http://app.evil/": "403", "http://evilapp/": "403", "http://app:8080/": "403", "http://app:443/": "502", "http://APP/": "502", // they may be called, and nobody is there
			"http://app..": "403", "http://127.0.0.1:9900/": "403", "http://2130706433/": "403", "http://0x7f.1/": "403", "http://[::1]/": "403",
			"http://[::ffff:127.0.0.1]/": "403", "http://169.254.169.254/latest/meta-data/": "403", "http://0/": "403",
			"http://app@evil/": "400", "http://evil@app/": "400", "http://app%2f@evil/": "400", "http://app%00/": "400", "http://app\\@evil/": "400",
			"http://app:80:80/": "400", "http://app:/": "400", "http://app:0/": "400", "http://app:65536/": "400", "http://[app]/": "400", "http://[::1%25lo]/": "400",
			"http:///x": "400", "http:/app/": "400", "http:app": "400", "/": "400", "//app/": "400", "ftp://app/": "400", "file:///etc/passwd": "400", "*": "400",
			"http://app/#x": "400", "http://app,evil/": "400", "http://\xef\xbd\x81pp/": "400",
		} {
			answers := send("forward", "GET "+target+" HTTP/1.1\r\nHost: app\r\n\r\n")
			check.Equal(t, statuses(t, answers), want, "GET %s", target)
			requests, _, broken := f.take()
			if n := len(requests); want == "200" && n != 1 || want != "200" && n+broken > 0 {
				t.Errorf("GET %s: the upstream saw %d requests, and %d broken", target, n, broken)
			}
			for _, r := range requests {
				check.Equal(t, strings.TrimSuffix(strings.ToLower(r.Host), ":80"), "app", "Host of GET %s", target)
			}
			if want == "403" || want == "400" {
				host := strings.TrimPrefix(target, "http://")
				host, _, _ = strings.Cut(host, "/")
				if !strings.Contains(host, ":") || strings.HasSuffix(host, "]") {
					host += ":443"
				}
				if host == "app:443" {
					continue // it may be called
				}
				got := statuses(t, send("forward", "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"))
				if got != "403" && got != "400" {
					t.Errorf("CONNECT %s: %s", host, got)
				}
			}
		}
		for _, target := range []string{"app", "app:", "app:0", "app:http", "app:443/x", "/app:443", "http://app:443", "user@app:443", ":443", "app:+443"} {
			check.Equal(t, statuses(t, send("forward", "CONNECT "+target+" HTTP/1.1\r\nHost: app:443\r\n\r\n")), "400", "CONNECT %s", target)
		}
		for _, door := range []string{"app", "ingress"} {
			check.Equal(t, statuses(t, send(door, "CONNECT app:443 HTTP/1.1\r\nHost: app:443\r\n\r\nGET / HTTP/1.1\r\n"+head+"\r\n")), "405", "CONNECT at %s", door)
		}
		if requests, _, _ := f.take(); len(requests) > 0 {
			t.Errorf("the upstream saw %d requests", len(requests))
		}
	})
}

// What a name resolves to decides, too: the addresses of this machine, its link, and clouds' metadata must stand in the list
// themselves, and Config.Private is called by no door.
func TestAddressesOfNames(t *testing.T) {
	c := proxy.Config{
		Forward: proxy.Forward{Listen: "127.0.0.1:9002", Hosts: []string{"*", "api.example", "127.0.0.1:3000", "[::1]:3000", "localhost:4000", "x.localhost:4000", "169.254.1.1", "127.0.0.1:9900"}},
		Private: []string{"127.0.0.1:9900", "10.0.0.1:9901"},
	}
	p := must.Have(proxy.InMemory(c, proxy.Wiring{}))
	for _, one := range []struct {
		called, resolved string
		may              bool
	}{
		{"api.example:443", "93.184.215.14:443", true},
		{"api.example:443", "[2606:2800::1]:443", true},
		{"api.example:443", "10.1.2.3:443", true}, // a private network, which a proxy may stand in
		{"api.example:443", "127.0.0.1:443", false},
		{"api.example:443", "127.8.8.8:443", false},
		{"api.example:443", "[::1]:443", false},
		{"api.example:443", "[::ffff:127.0.0.1]:443", false},
		{"api.example:443", "[64:ff9b::127.0.0.1]:443", false},
		{"api.example:443", "[64:ff9b::169.254.169.254]:443", false},
		{"api.example:443", "[64:ff9b::8.8.8.8]:443", true},
		{"api.example:443", "[2002:7f00:1::]:443", false},
		{"api.example:443", "0.0.0.0:443", false},
		{"api.example:443", "[::]:443", false},
		{"api.example:80", "169.254.169.254:80", false},
		{"api.example:80", "169.254.170.2:80", false},
		{"api.example:80", "[fd00:ec2::254]:80", false},
		{"api.example:80", "100.100.100.200:80", false},
		{"api.example:80", "[fe80::1%lo]:80", false},
		{"api.example:80", "[fe80::1]:80", false},
		{"api.example:80", "224.0.0.1:80", false},
		{"api.example:80", "nonsense", false},
		{"169.254.1.1:80", "169.254.1.1:80", true}, // it is named
		{"127.0.0.1:3000", "127.0.0.1:3000", true},
		{"[::1]:3000", "[::1]:3000", true},
		{"api.example:3000", "127.0.0.1:3000", true}, // the address is named
		{"127.0.0.1:3001", "127.0.0.1:3001", false},
		{"127.0.0.2:3000", "127.0.0.2:3000", false},
		{"localhost:4000", "127.0.0.1:4000", true},
		{"LocalHost.:4000", "[::1]:4000", true},
		{"x.localhost:4000", "127.0.0.1:4000", true},
		{"y.localhost:4000", "127.0.0.1:4000", false},
		{"localhost:4000", "169.254.169.254:4000", false},
		{"127.0.0.1:9900", "127.0.0.1:9900", false}, // it is private, although it is named
		{"api.example:9900", "127.0.0.2:9900", false},
		{"api.example:9901", "10.0.0.1:9901", false},
		{"api.example:9901", "[::ffff:10.0.0.1]:9901", false},
		{"api.example:9901", "10.0.0.2:9901", true},
	} {
		check.Equal(t, p.MayDial(one.called, one.resolved, true), one.may, "the forward door calls %s at %s", one.called, one.resolved)
	}
	check.Equal(t, p.MayDial("app:3000", "127.0.0.1:3000", false), true, "an upstream on this machine")
	check.Equal(t, p.MayDial("app:9900", "[::1]:9900", false), false, "an upstream that is private")
}

// A response that redirects is the application's, and a request that goes round in circles ends.
func TestRedirectsAndLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
		defer f.stop()
		for _, door := range []string{"app", "forward", "ingress"} {
			check.Equal(t, statuses(t, send(door, "GET http://app/ HTTP/1.1\r\n"+head+"\r\n")), "302", "%s", door)
			requests, _, _ := f.take()
			check.Equal(t, len(requests), 1, "%s: requests of the upstream", door)
			via := ""
			for i := range 9 {
				sent := "GET http://app/ HTTP/1.1\r\n" + head
				if via != "" {
					sent += "Via: " + via + "\r\n"
				}
				got := statuses(t, send(door, sent+"\r\n"))
				requests, _, _ := f.take()
				if i == 8 {
					check.Equal(t, got, "502", "%s: the ninth time", door)
					check.Equal(t, len(requests), 0, "%s: requests of the upstream the ninth time", door)
					break
				}
				if got != "302" || len(requests) != 1 {
					t.Fatalf("%s, time %d: %s, %d requests", door, i, got, len(requests))
				}
				via = strings.Join(requests[0].Header["Via"], ", ")
			}
		}
	})
}
