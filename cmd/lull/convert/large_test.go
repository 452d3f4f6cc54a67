package convert

import (
	"fmt"
	"strings"
	"testing"
)

// Reading stops where there are more dependencies than anybody can use, in each format.
func TestFilesWithTooManyDependencies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: the same every time, on one goroutine")
	}
	many := func(head, each, tail string, n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			if i > 0 && strings.HasPrefix(head, "{") {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(each, "#", fmt.Sprint(i)))
		}
		b.WriteString(tail)
		return b.String()
	}
	for _, c := range []struct{ name, head, each, tail, at string }{
		{"methods", `{"methodConfig": [`, `{"name": [{"service": "s#"}], "timeout": "1s"}`, `]}`, "methodConfig[20000].name[0]"},
		{"clusters", `{"clusters": [`, `{"name": "c#"}`, `]}`, "clusters[20000]"},
		{"routes of Envoy", `{"virtual_hosts": [{"domains": ["*"], "routes": [`, `{"match": {}, "route": {"cluster": "c#"}}`, `]}]}`, "virtual_hosts[0].routes[20000].route"},
		{"routes of Istio", `{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": {"http": [`, `{"route": [{"destination": {"host": "h#"}}]}`, `]}}`, "spec.http[20000]"},
		{"rules of a gateway", `{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": {"rules": [`, `{"backendRefs": [{"name": "b#"}]}`, `]}}`, "spec.rules[20000]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Convert([]File{{"x", []byte(many(c.head, c.each, c.tail, maxDependencies+200))}}, Envoy, Options{})
			want := c.at + " is one of too many dependencies: want at most 20000 in all files together"
			if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "too many") != 1 {
				t.Errorf("%.300v, want %s", err, want)
			}
		})
	}
}
