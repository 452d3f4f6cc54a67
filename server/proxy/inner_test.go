package proxy_test

import (
	"cmp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/server/proxy"
)

// Nobody outside can say at an ingress door what only insiders may, in a header or a trailer, in any spelling.
func TestOutsidersCannotSetInnerHeaders(t *testing.T) {
	inner := []string{
		"Lull-Timeout: 1", "lull-retry: ?1", "LULL-Attempt: 9", "Lull-Attempts: 9", "X-Envoy-Upstream-Rq-Timeout-Ms: 1", "X-Envoy-Internal: true", "X-Envoy-Attempt-Count: 9",
		"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "X-Forwarded-Client-Cert: evil", "X-Forwarded-User: root", "X-Forwarded: evil",
		"Forwarded: for=6.6.6.6", "X-Real-Ip: 6.6.6.6", "X-Original-Url: /evil", "X-Rewrite-Url: /evil",
		"X_Forwarded_For: 6.6.6.6", "Lull_Retry: ?1", "X-Forwarded_For: 6.6.6.6",
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, proxy.Config{}, "")
		defer f.stop()
		for _, line := range inner {
			name, _, _ := strings.Cut(line, ":")
			for i, sent := range []string{
				"GET / HTTP/1.1\r\n" + head + line + "\r\n\r\n",
				"GET / HTTP/1.1\r\n" + head + "Connection: X-Forwarded-For, X-Forwarded-Proto\r\n" + line + "\r\n\r\n",
				"POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTrailer: " + name + ", Sum\r\n\r\n0\r\n" + line + "\r\nSum: 1\r\n\r\n",
				"POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n0\r\n" + line + "\r\nSum: 1\r\n\r\n",
				"POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + line + "\r\nSum: 1\r\n\r\n",
			} {
				check.Equal(t, statuses(t, send("ingress", sent)), "200", "%q", sent)
				requests, _, _ := f.take()
				check.Equal(t, len(requests), 1, "%q: requests of the upstream", sent)
				for _, r := range requests {
					_, value, _ := strings.Cut(line, ": ")
					for got, values := range r.Header {
						if strings.EqualFold(strings.ReplaceAll(got, "_", "-"), strings.ReplaceAll(name, "_", "-")) && strings.Contains(strings.Join(values, " "), value) {
							t.Errorf("%q: the upstream got %s: %q", sent, got, values)
						}
					}
					for got, values := range r.Trailer {
						if got != "Sum" {
							t.Errorf("%q: the upstream got the trailer %s: %q", sent, got, values)
						}
					}
					if i == 2 || i == 3 {
						check.Equal(t, r.Trailer.Get("Sum"), "1", "%q: trailer", sent)
					}
					check.Equal(t, r.Header.Get("X-Forwarded-Proto"), "http", "%q: X-Forwarded-Proto", sent)
					check.Equal(t, r.Header.Get("X-Forwarded-For"), "127.0.0.1", "%q: X-Forwarded-For", sent)
				}
			}
		}
	})
}

// An upstream cannot forge what the proxy says of a call, in a header, a trailer or an informational response.
func TestUpstreamsCannotForgeTheOutcome(t *testing.T) {
	forged := ""
	for _, line := range []string{"Lull-Attempts: 77", "lull-reason: forged", "Lull-Stale: ?1", "Proxy-Status: lull; error=forged"} {
		forged += line + "\r\n"
	}
	for name, answer := range map[string]string{
		"header":              "HTTP/1.1 200 OK\r\n" + forged + "Content-Length: 2\r\n\r\nok",
		"trailer":             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Lull-Attempts, Lull-Reason, Lull-Stale, Proxy-Status, Sum\r\n\r\n2\r\nok\r\n0\r\n" + forged + "Sum: 1\r\n\r\n",
		"unannounced trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + forged + "Sum: 1\r\n\r\n",
		"some announced":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n2\r\nok\r\n0\r\n" + forged + "Sum: 1\r\n\r\n",
		"103":                 "HTTP/1.1 103 Early Hints\r\n" + forged + "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"switch":              "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n" + forged + "\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFront(t, proxy.Config{}, answer)
			defer f.stop()
			for _, door := range []string{"app", "forward"} {
				answers := send(door, "GET http://app/ HTTP/1.1\r\n"+head+"TE: trailers\r\nConnection: TE, Upgrade\r\nUpgrade: x\r\n\r\n")
				low := strings.ToLower(answers)
				for _, bad := range []string{"77", "forged", "lull-stale"} {
					if strings.Contains(low, bad) {
						t.Errorf("%s at %s: %q", name, door, answers)
					}
				}
				want := map[string]string{"header": "ok", "103": "103 early hints", "switch": "101 switching protocols"}[name]
				if !strings.Contains(low, cmp.Or(want, "sum: 1")) {
					t.Errorf("%s at %s: %q", name, door, answers)
				}
			}
			answers := strings.ToLower(send("ingress", "GET / HTTP/1.1\r\n"+head+"\r\n"))
			if strings.Contains(answers, "error=forged") {
				t.Errorf("%s at ingress: %q", name, answers)
			}
		})
	}
}
