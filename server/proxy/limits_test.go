package proxy_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/server/proxy"
)

// A header or body that is longer than a limit is refused with its own status, and a body that passes the limit on its way
// is not passed on in full.
func TestLengths(t *testing.T) {
	limits := proxy.Limits{HeaderBytes: 8 << 10, BodyBytes: 1000}
	inBubble(func(t *testing.T) {
		f := newFront(t, proxy.Config{
			Upstreams: map[string]proxy.Upstream{"app": {Listen: address("app"), To: []string{"http://app"}}},
			Ingress:   proxy.Ingress{Listen: address("ingress"), To: "http://app"},
			Limits:    limits,
		}, "")
		defer f.stop()
		long := strings.Repeat("x", 20<<10)
		post := func(more, body string) string { return "POST / HTTP/1.1\r\n" + head + more + "\r\n\r\n" + body }
		for name, c := range map[string]struct{ sent, want string }{
			"a header that fits":    {"GET /" + long[:1000] + " HTTP/1.1\r\n" + head + "A: " + long[:6000] + "\r\n\r\n", "200"},
			"a long header":         {"GET / HTTP/1.1\r\n" + head + "A: " + long + "\r\n\r\n", "431"},
			"a long target":         {"GET /" + long + " HTTP/1.1\r\n" + head + "\r\n", "431"},
			"many headers":          {"GET / HTTP/1.1\r\n" + head + strings.Repeat("abcdefghi: "+long[:60]+"\r\n", 300) + "\r\n", "431"},
			"a long method":         {long + " / HTTP/1.1\r\n" + head + "\r\n", "431"},
			"a body that fits":      {post("Content-Length: 1000", long[:1000]), "200"},
			"a long body":           {post("Content-Length: 1001", long[:1001]), "413"},
			"a long body, expected": {post("Content-Length: 1001\r\nExpect: 100-continue", ""), "413"},
			"chunks that fit":       {post("Transfer-Encoding: chunked", "3e8\r\n"+long[:1000]+"\r\n0\r\n\r\n"), "200"},
			"long chunks":           {post("Transfer-Encoding: chunked", "3e9\r\n"+long[:1001]+"\r\n0\r\n\r\n"), "413"},
			"a huge body":           {post("Content-Length: 9223372036854775807", "abc"), "413"},
			"another expectation":   {post("Content-Length: 3\r\nExpect: 200-ok", "abc"), "417"},
		} {
			for _, door := range []string{"app", "ingress"} {
				check.Equal(t, statuses(t, send(door, c.sent)), c.want, "%s at %s", name, door)
				requests, _, _ := f.take()
				if (len(requests) == 1) != (c.want == "200") {
					t.Errorf("%s at %s: the upstream saw %d requests", name, door, len(requests))
				}
			}
		}
		for name, c := range map[string]struct{ sent, want string }{
			"a long header": {frame(headers, endHeaders|endStream, 1, block(request("GET", "a: "+long[:16000])...)), "431"},
			"a long body":   {frame(headers, endHeaders, 1, block(request("POST")...)) + frame(data, endStream, 1, long[:1001]), "413"},
		} {
			for _, door := range []string{"app", "ingress"} {
				if got := send2(door, c.sent); got[1] != c.want && got[0] != "goaway" {
					t.Errorf("%s over HTTP/2 at %s: %v, want %s", name, door, got, c.want)
				}
				requests, _, _ := f.take()
				check.Equal(t, len(requests), 0, "%s over HTTP/2 at %s: requests of the upstream", name, door)
			}
		}
	})(t)
}

// The route of a request is that of the path that is sent, letter by letter: nothing is cleaned, unescaped or redirected.
func TestRoutesOfUnusualPaths(t *testing.T) {
	var operations []string
	inBubble(func(t *testing.T) {
		routes := []proxy.Route{{Match: "/a/{id}", Repeat: proxy.Yes}, {Match: "/dir/", Repeat: proxy.Yes}, {Match: "/a/b/c", Repeat: proxy.Yes}, {Match: "GET /get", Repeat: proxy.Yes}}
		f := newFront(t, proxy.Config{Upstreams: map[string]proxy.Upstream{"app": {Listen: address("app"), To: []string{"http://app"}, Routes: routes}}}, "",
			proxy.Wiring{Record: func(r *proxy.Record) { operations = append(operations, r.Operation) }})
		defer f.stop()
		for path, want := range map[string]string{
			"/a/1": "/a/{id}", "/a/%31": "/a/{id}", "/a/b%2Fc": "/a/{id}", "/a/..%2Fx": "", "/a/%00": "/a/{id}", "/a/%2e%2e": "",
			"/a/../dir/x": "", "/dir/../a/1": "", "//dir/x": "", "/dir//x": "", "/./dir/x": "", "/a/b/../b/c": "", "/dir/..": "", "/a/1?x=/../": "/a/{id}",
			"/dir": "", "/dir/": "/dir/", "/dir/x/y": "/dir/", "/%64ir/x": "/dir/", "/get": "", "/": "", "/A/1": "", "/a/": "", "/a%2Fb%2Fc": "",
		} {
			operations = nil
			answers := send("app", "POST "+path+" HTTP/1.1\r\n"+head+"Content-Length: 0\r\n\r\n")
			check.Equal(t, statuses(t, answers), "200", "POST %s", path)
			requests, _, _ := f.take()
			check.Equal(t, len(requests), 1, "POST %s: requests of the upstream", path)
			for _, r := range requests {
				check.Equal(t, r.RequestURI, path, "POST %s: what the upstream saw", path)
			}
			check.Equal(t, fmt.Sprint(operations), fmt.Sprint([]string{cmp.Or(want, "POST")}), "POST %s: the route", path)
		}
	})(t)
}

// A request that the guard refuses is in the access log, with the reason that its client gets.
func TestRecordOfARefusal(t *testing.T) {
	inBubble(func(t *testing.T) {
		var records []proxy.Record
		f := newFront(t, proxy.Config{}, "", proxy.Wiring{Record: func(r *proxy.Record) { records = append(records, *r) }})
		defer f.stop()
		answers := send("ingress", ambiguous["CL and TE"])
		if len(records) != 1 || records[0].Door != "ingress" || records[0].Status != 400 || !records[0].Own || records[0].Error == "" || !strings.Contains(answers, records[0].Error) {
			t.Errorf("records %+v of %q", records, answers)
		}
		if !strings.Contains(answers, "application/problem+json") || !strings.Contains(answers, "Proxy-Status: lull; error=http_request_error") {
			t.Errorf("answer: %q", answers)
		}
	})(t)
}
