package source

import (
	"fmt"
	"slices"
	"strings"
)

// alike are beginnings of the names of metrics that measure the same requests, the most exact first.
var alike = []string{"http_client_request", "http_client_duration", "http_server_request", "http_server_duration", "retry_", "istio_", "envoy_cluster_"}

// nameOf returns the name of the service at an address: that of the dependency (as with lullhttp) whose name is the address,
// without or with its port, or else one that tells nothing.
func (r *reader) nameOf(address string) string {
	name := r.metrics.names[address]
	if name != "" {
		return name
	}
	for _, one := range r.metrics.all {
		if of := one.who.service; !one.isAddress && strings.HasPrefix(of+":", address+":") && (name == "" || of < name) {
			name = of
		}
	}
	if name == "" {
		name = r.nameFor(address)
	}
	r.metrics.names[address] = name
	return name
}

// nameFor returns a name that tells nothing.
func (r *reader) nameFor(address string) string {
	if r.addresses[address] == "" {
		r.addresses[address] = fmt.Sprintf("service-%d", len(r.addresses)+1)
	}
	return r.addresses[address]
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
