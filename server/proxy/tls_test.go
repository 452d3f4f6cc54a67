package proxy_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// certificate returns a certificate that signs itself, and the files of it and its key.
func certificate(t *testing.T) (pair tls.Certificate, cert, key string) {
	secret := must.Have(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "app"}, DNSNames: []string{"app"}, NotAfter: time.Now().AddDate(100, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	der := must.Have(x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret))
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must.Succeed(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must.Have(x509.MarshalECPrivateKey(secret))}), 0o600))
	return must.Have(tls.LoadX509KeyPair(cert, key)), cert, key
}

// An ingress door that speaks TLS negotiates HTTP/2, has the guard, and knows who its client is.
func TestTLS(t *testing.T) {
	inBubble(func(t *testing.T) {
		pair, cert, key := certificate(t)
		f := newFront(t, proxy.Config{
			Upstreams: map[string]proxy.Upstream{},
			Ingress:   proxy.Ingress{Listen: address("ingress"), To: "http://app", Trust: proxy.MutualTLS, Cert: cert, Key: key, ClientCA: cert},
		}, "")
		defer f.stop()
		dial := func(client ...tls.Certificate) (*tls.Conn, *tls.Config) {
			config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "app", Certificates: client, NextProtos: []string{"http/1.1"}}
			config.RootCAs.AddCert(must.Have(x509.ParseCertificate(pair.Certificate[0])))
			return tls.Client(must.Have(memnet.Dial(context.Background(), "tcp", address("ingress"))), config), config
		}
		for name, sent := range map[string]string{"CL and TE": ambiguous["CL and TE"], "a folded line": ambiguous["a folded line"], "LF alone": ambiguous["LF alone"]} {
			conn, _ := dial()
			must.Have(io.WriteString(conn, "GET / HTTP/1.1\r\n"+head+"\r\n"+sent))
			must.Succeed(conn.SetReadDeadline(time.Now().Add(30 * time.Second)))
			answers, _ := io.ReadAll(conn)
			check.Equal(t, statuses(t, string(answers)), "200 400", "%s over TLS", name)
			conn.Close()
			requests, _, _ := f.take()
			check.Equal(t, len(requests), 1, "%s over TLS: requests of the upstream", name)
		}
		for _, http2 := range []bool{false, true} {
			for _, known := range []bool{false, true} {
				var client []tls.Certificate
				if known {
					client = []tls.Certificate{pair}
				}
				_, config := dial(client...)
				config.NextProtos = nil
				transport := &http.Transport{DialContext: memnet.Dial, TLSClientConfig: config, ForceAttemptHTTP2: http2, DisableKeepAlives: true}
				req := must.Have(http.NewRequest("GET", "https://"+address("ingress"), nil))
				req.Host = "app"
				req.Header.Set("X-Forwarded-User", "root")
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Errorf("http2=%v known=%v: %v", http2, known, err)
					continue
				}
				resp.Body.Close()
				transport.CloseIdleConnections()
				check.Equal(t, resp.ProtoMajor == 2, http2, "HTTP/2 is negotiated (known=%v)", known)
				requests, _, _ := f.take()
				check.Equal(t, len(requests), 1, "requests of the upstream")
				check.Equal(t, requests[0].Header.Get("X-Forwarded-Proto"), "https", "X-Forwarded-Proto (http2=%v)", http2)
				check.Equal(t, requests[0].Header.Get("X-Forwarded-User") == "root", known, "the client is trusted (http2=%v)", http2)
			}
		}
		// What speaks no TLS, and what begins and says nothing, holds its connection no longer than a header may take.
		for name, sent := range map[string]string{"no TLS": "GET / HTTP/1.1\r\n" + head + "\r\n", "nothing": "", "half a hello": "\x16\x03\x01\x02\x00\x01"} {
			took, _ := heldFor("ingress", sent, "", time.Minute, time.Hour)
			if took > proxy.DefaultHeaderTime {
				t.Errorf("%s: the connection was held for %v", name, took)
			}
		}
		requests, _, _ := f.take()
		check.Equal(t, len(requests), 0, "requests of the upstream")
	})(t)
}

// A request that might have switched protocols is the last of its connection: what follows it has passed no guard.
func TestNothingFollowsASwitch(t *testing.T) {
	next := "GET /next HTTP/1.1\r\n" + head + "\r\n"
	upgrade := "GET / HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for name, sent := range map[string]string{
		"an upgrade":                    upgrade + "\r\n",
		"an upgrade with a body":        upgrade + "Content-Length: 3\r\n\r\nabc",
		"an upgrade with chunks":        upgrade + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"Upgrade without Connection":    "GET / HTTP/1.1\r\n" + head + "Upgrade: websocket\r\n\r\n",
		"Upgrade in lower case":         "GET / HTTP/1.1\r\n" + head + "connection: upgrade\r\nupgrade: x\r\n\r\n",
		"an empty Upgrade":              "GET / HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade:\r\n\r\n",
		"h2c and another":               "GET / HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade: h2c, x\r\n\r\n",
		"h2c, and another line":         "GET / HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: x\r\n\r\n",
		"Connection: keep-alive beside": "GET / HTTP/1.1\r\n" + head + "Connection: keep-alive, Upgrade\r\nUpgrade: x\r\n\r\n",
	} {
		for _, answer := range []string{"", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 426 Upgrade Required\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"} {
			t.Run(name, inBubble(func(t *testing.T) {
				f := newFront(t, proxy.Config{}, answer)
				defer f.stop()
				for _, door := range []string{"app", "ingress"} {
					for _, pieces := range [][]string{{sent + next}, {sent, next}} {
						answers := send(door, pieces...)
						resp, err := http.ReadResponse(bufio.NewReader(lastAnswer(answers)), nil)
						if err != nil {
							t.Errorf("%s at %s: %v in %q", name, door, err, answers)
						} else if !resp.Close && resp.StatusCode != 400 {
							t.Errorf("%s at %s: the connection is kept after %q", name, door, answers)
						}
						requests, _, _ := f.take()
						for _, r := range requests {
							if r.URL.Path == "/next" {
								t.Errorf("%s at %s: the upstream saw what followed", name, door)
							}
						}
					}
				}
			}))
		}
	}
	// h2c is never switched to, whatever the upstream says, and the connection is kept.
	inBubble(func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		defer f.stop()
		for _, up := range []string{"h2c", "H2C ", "h2c, x", "x, h2c"} {
			for _, door := range []string{"app", "ingress"} {
				check.Equal(t, statuses(t, send(door, "GET / HTTP/1.1\r\n"+head+"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "+up+"\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")), "502", "%s at %s", up, door)
				f.take()
			}
		}
	})(t)
}

// lastAnswer returns the answer behind informational ones.
func lastAnswer(answers string) io.Reader {
	for strings.HasPrefix(answers, "HTTP/1.1 1") {
		_, answers, _ = strings.Cut(answers, "\r\n\r\n")
	}
	return strings.NewReader(answers)
}

// A door takes a new certificate when its files have changed. One that is wrong is reported, once, and the one before stays.
func TestANewCertificate(t *testing.T) {
	inBubble(func(t *testing.T) {
		first, cert, key := certificate(t)
		second, newCert, newKey := certificate(t)
		var warnings []error
		f := newFront(t, proxy.Config{
			Upstreams: map[string]proxy.Upstream{},
			Ingress:   proxy.Ingress{Listen: address("ingress"), To: "http://app", Cert: cert, Key: key},
		}, "", proxy.Wiring{Warn: func(err error) { warnings = append(warnings, err) }})
		defer f.stop()
		sees := func(want tls.Certificate, when string) {
			t.Helper()
			conn := tls.Client(must.Have(memnet.Dial(t.Context(), "tcp", address("ingress"))), &tls.Config{InsecureSkipVerify: true})
			defer conn.Close()
			must.Succeed(conn.Handshake())
			check.Equal(t, conn.ConnectionState().PeerCertificates[0].Equal(must.Have(x509.ParseCertificate(want.Certificate[0]))), true, "the certificate is the right one %s", when)
		}
		at := time.Now()
		replace := func(name, with string) {
			must.Succeed(os.WriteFile(name, must.Have(os.ReadFile(with)), 0o600))
			at = at.Add(time.Minute)
			must.Succeed(os.Chtimes(name, at, at))
		}
		sees(first, "at the start")
		replace(cert, newCert)
		sees(first, "while the key is that of the one before")
		sees(first, "again")
		check.Equal(t, len(warnings), 1, "warnings")
		replace(key, newKey)
		sees(second, "when both are new")
		must.Succeed(os.Remove(key))
		sees(second, "without a key")
		check.Equal(t, len(warnings), 2, "warnings")
		if len(warnings) == 2 && !strings.Contains(warnings[1].Error(), key) {
			t.Errorf("the warning does not name the file: %v", warnings[1])
		}
	})(t)
}
