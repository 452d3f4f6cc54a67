package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// alike are beginnings of the names of metrics that measure the same requests, the most exact first.
var alike = []string{"http_client_request", "http_client_duration", "http_server_request", "http_server_duration", "retry_", "istio_", "envoy_cluster_"}

// name gives an address that is also the name of a dependency (as with lullhttp), without or with its port, the name of that.
func (m *metrics) name(addresses map[string]string) {
	same := map[string]string{}
	for address, name := range addresses {
		for _, one := range m.all {
			if of := one.who.service; of == address || strings.HasPrefix(of, address+":") && same[name] == "" {
				same[name] = of
			}
		}
	}
	for _, one := range m.all {
		if name := same[one.who.service]; name != "" {
			one.who.service = name
		}
	}
}

// once leaves each request counted by one kind of metrics: that of the most processes.
func (r *reader) once(all []*metric) []*metric {
	processes := map[string]map[string]bool{}
	for _, one := range all {
		if kind := one.kind(); kind != "" {
			if processes[kind] == nil {
				processes[kind] = map[string]bool{}
			}
			processes[kind][one.process] = true
		}
	}
	if len(processes) < 2 {
		return all
	}
	kinds := slices.SortedFunc(maps.Keys(processes), func(a, b string) int { return slices.Index(alike, a) - slices.Index(alike, b) })
	best := slices.MaxFunc(kinds, func(a, b string) int { return len(processes[a]) - len(processes[b]) })
	r.problem("twice", fmt.Sprintf("%s… and others have counted the same requests: it is used for how they ended, and the others are not", best))
	return slices.DeleteFunc(all, func(one *metric) bool { kind := one.kind(); return kind != "" && kind != best })
}

// kind returns which of alike a metric is, "" if it does not count how requests ended.
func (m *metric) kind() string {
	i := slices.IndexFunc(alike, func(start string) bool { return strings.HasPrefix(m.base, start) })
	if i < 0 || m.outcome == retried {
		return ""
	}
	return alike[i]
}
