package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
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
	f.Fuzz(func(t *testing.T, sent []byte) {
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
	})
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
