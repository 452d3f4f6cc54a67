package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// alike are beginnings of the names of metrics that measure the same requests, the most exact first.
var alike = []string{"http_client_request", "http_client_duration", "http_server_request", "http_server_duration", "retry_", "istio_", "envoy_cluster_"}

// nameOf returns the name of the service at an address: that of the dependency (as with lullhttp) whose name is the address, without or
// with its port, or else one that tells nothing.
func (m *metrics) nameOf(address string) string {
	if m.names[address] != "" {
		return m.names[address]
	}
	name := ""
	for _, one := range m.all {
		if of := one.who.service; !one.isAddress && strings.HasPrefix(of+":", address+":") && (name == "" || of < name) {
			name = of
		}
	}
	m.names[address] = cmp.Or(name, fmt.Sprintf("service-%d", len(m.names)+1))
	return m.names[address]
}

// once leaves each request counted by one kind of metrics: that of the most processes.
func (r *reader) once(all []*metric) []*metric {
	best, most := "", 0
	for _, kind := range alike {
		processes := map[string]bool{}
		for _, one := range all {
			if one.kind() == kind {
				processes[one.process] = true
			}
		}
		if len(processes) > most {
			best, most = kind, len(processes)
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(one *metric) bool { kind := one.kind(); return kind != "" && kind != best })
	if len(left) < len(all) {
		r.problem("twice", best+"… and others have counted the same requests: it is used for how they ended, and the others are not")
	}
	return left
}

// kind returns which of alike a metric is, "" if it does not count how requests ended.
func (m *metric) kind() string {
	for _, start := range alike {
		if m.outcome != retried && strings.HasPrefix(m.base, start) {
			return start
		}
	}
	return ""
}
