package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/proxy"
)

// FuzzGuard compares the guard with net/http's reader: what the guard passes, net/http reads as the same requests, and
// where the guard refuses one, net/http fails to read it.
func FuzzGuard(f *testing.F) {
	for _, text := range ambiguous {
		f.Add([]byte(text))
	}
	for _, text := range brokenBodies {
		f.Add([]byte(text))
	}
	for _, one := range clean {
		f.Add([]byte(one.sent))
		f.Add([]byte(one.sent + one.sent))
	}
	f.Fuzz(compareWithNetHTTP)
}

// pieces are what requests are made of, in order and not.
var pieces = []string{
	"GET ", "POST ", "CONNECT ", "/", "/a", "app:443", " HTTP/1.1", " HTTP/1.0", "\r\n", "\r\n", "\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", "\x00", ":", ";a=b", "x", "0", "3", "10", "0\r\n\r\n", "3\r\nabc\r\n",
	"GET / HTTP/1.1\r\nHost: app\r\n", "POST / HTTP/1.1\r\nHost: app\r\n", "Host: app\r\n", "A: b\r\n", "Content-Length: 3", "Content-Length:5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding:", "chunked", "Upgrade: h2c\r\n", "Upgrade: x\r\n",
	"Trailer: Sum\r\n", "Sum: 1\r\n", "abc", "abcde", "Content-Length: 0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "Content-Length: 3\r\n\r\nabc", "Connection: close\r\n",
}

// The same comparison, with requests made of pieces.
func TestGuardAndNetHTTP(t *testing.T) {
	draw := seed.Source(t)
	for range 20_000 {
		var sent []byte
		if draw()%2 == 0 {
			sent = append(sent, "POST / HTTP/1.1\r\nHost: app\r\n"...)
		}
		for range 2 + draw()%14 {
			sent = append(sent, pieces[draw()%uint64(len(pieces))]...)
		}
		compareWithNetHTTP(t, sent)
	}
}

func compareWithNetHTTP(t *testing.T, sent []byte) {
	if bytes.HasPrefix(sent, []byte("PRI * HTTP/2.0\r\n\r\n")) {
		return
	}
	passed, ends, refusal, beyond := proxy.Guarded(sent)
	if at := proxy.GuardedAtOnce(sent); refusal == "" && at != len(sent) || refusal != "" && string(sent[:at]) != strings.TrimSuffix(string(passed), string(passed[at:])) {
		t.Errorf("at once the guard passes %d bytes of %d, and byte by byte %q (%s)", at, len(sent), passed, refusal)
	}
	source := bytes.NewReader(passed)
	in := bufio.NewReader(source)
	for i := 0; ; i++ {
		r, err := http.ReadRequest(in)
		if err == nil && i == len(ends)-1 && beyond && r.Method == http.MethodConnect {
			return
		}
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			return // it is answered with 400, or has not come in full
		}
		if i >= len(ends) {
			t.Fatalf("net/http reads a request of which the guard has seen no end (%d): %q (%s)", i, passed, refusal)
		}
		check.Equal(t, len(passed)-source.Len()-in.Buffered(), ends[i], "end of request %d in %q", i, passed)
		if i == len(ends)-1 && beyond {
			return
		}
	}
}

// The guard itself refuses what the framing of a request decides, also where net/http would refuse it, too. It leaves the
// meaning of targets and hosts to others.
func TestGuardRefuses(t *testing.T) {
	for _, all := range []map[string]string{ambiguous, brokenBodies} {
		for name, text := range all {
			_, ends, refusal, _ := proxy.Guarded([]byte(text))
			meaning := strings.Contains(name, "Host") && !strings.Contains(name, "trailer") || strings.Contains(name, "absolute") || strings.Contains(name, "target") && !strings.Contains(name, "in the") && name != "no target" && name != "an empty target" ||
				name == "another scheme" || name == "* of GET" || name == "a bad escape"
			if (refusal == "") != meaning || meaning && len(ends) != 1 || !meaning && len(ends) > 0 {
				t.Errorf("%s: refused because %q, %d requests", name, refusal, len(ends))
			}
		}
	}
}

// Behind a request that may switch protocols, and behind the preface of HTTP/2, everything passes.
func TestGuardPassesOtherProtocols(t *testing.T) {
	for name, sent := range map[string]string{
		"the preface":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"CONNECT":               "CONNECT app:443 HTTP/1.1\r\nHost: app:443\r\n\r\n",
		"an upgrade":            "GET / HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"an upgrade to h2cx":    "GET / HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: h2cx\r\n\r\n",
		"an upgrade to h2":      "GET / HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: h2\r\n\r\n",
		"an upgrade and a body": "GET / HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\nUpgrade: x\r\n\r\nabc",
	} {
		passed, ends, refusal, switching := proxy.Guarded([]byte(sent + "\x16\x03\x01 \n\n\x00"))
		if !strings.HasSuffix(string(passed), "\x16\x03\x01 \n\n\x00") || refusal != "" || !switching || len(ends) != 1 || ends[0] != len(sent) {
			t.Errorf("%s: passed %q, ends %d, refused because %q", name, passed, ends, refusal)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	request := []byte("POST /charges/17?a=b HTTP/1.1\r\nHost: payments.example\r\nUser-Agent: python-requests/2.32\r\nAccept-Encoding: gzip, deflate\r\n" +
		"Accept: */*\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nAuthorization: Bearer " + strings.Repeat("x", 200) +
		"\r\nContent-Length: 10000\r\n\r\n" + strings.Repeat("x", 10_000))
	b.ReportAllocs()
	for b.Loop() {
		proxy.GuardedAtOnce(request)
	}
}
