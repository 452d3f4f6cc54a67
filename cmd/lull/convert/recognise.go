package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/tree"
)

// recognise returns the format of a document, by its structure. Each answer is certain in this order: only Kubernetes has apiVersion,
// and a loadBalancingPolicy is a text in gRPC, a mapping in Envoy.
func recognise(root *tree.Node) (f Format, ok bool) {
	if root.Kind != tree.Map {
		return 0, false
	}
	if version := root.Get("apiVersion"); version != nil {
		group, _, _ := strings.Cut(version.Text, "/")
		if group == "v1" {
			return Linkerd, isLinkerdService(root)
		}
		f, ok = groups[group]
		return f, ok
	}
	switch {
	case isSpring(root):
		return Resilience4j, true
	case isServiceConfig(root):
		return GRPC, true
	case shapeOf(root) != noShape || hasTypes(root):
		return Envoy, true
	case isPolicies(root):
		return Lull, true
	}
	return 0, false
}

// groups are those of Kubernetes' apiVersion.
var groups = map[string]Format{"networking.istio.io": Istio, "gateway.networking.k8s.io": Gateway, "gateway.networking.x-k8s.io": Gateway,
	envoyGatewayGroup: EnvoyGateway, "dapr.io": Dapr, "linkerd.io": Linkerd}

const certain = "one of: a policy file of lull (dependencies), a gRPC service config (methodConfig), objects of Istio, of the Gateway API, of Envoy Gateway, of Dapr or of Linkerd (apiVersion and kind), application.yml with resilience4j, " +
	"or Envoy's configuration (static_resources, resources, configs, virtual_hosts, a cluster, @type); --from names the format of a document that has none of these fields"

var serviceConfigFields = []string{"methodConfig", "retryThrottling", "loadBalancingConfig", "healthCheckConfig", "connectionScaling"}

func isServiceConfig(n *tree.Node) bool {
	return slices.ContainsFunc(n.Members, func(m tree.Member) bool {
		return slices.ContainsFunc(serviceConfigFields, func(name string) bool { return tree.Fold(m.Key, name) }) ||
			tree.Fold(m.Key, "loadBalancingPolicy") && m.Value.Kind == tree.Text
	})
}

// Fields by which lull's own files are recognised, and the services in them.
var (
	policyFileFields = []string{"dependencies", "defaults", "preset", "attempts", "attempt_timeout", "deadline", "hint_limit", "rate_limited_base"}
	serviceFields    = []string{"slo", "calls", "provides", "server", "handler", "visibility", "deliveries"}
)

func isPolicies(n *tree.Node) bool {
	if slices.ContainsFunc(policyFileFields, func(name string) bool { return n.Get(name) != nil }) {
		return true
	}
	services := n.Get("services") // other files have services, too
	return services != nil && services.Kind == tree.Map && slices.ContainsFunc(services.Members, func(m tree.Member) bool {
		return slices.ContainsFunc(serviceFields, func(name string) bool { return m.Value.Get(name) != nil })
	})
}

type shape uint8

const (
	noShape      shape = iota // nothing that is known
	aContainer                // resources, in lists and mappings
	aCluster                  // a Cluster
	routesShape               // a RouteConfiguration
	aVirtualHost              // a VirtualHost
	aRoute                    // a Route
	anAction                  // a RouteAction
	aRetryPolicy              // a RetryPolicy
	otherShape                // a resource that is not about how calls are made, or not by itself
)

// Fields by which a shape is recognised. Those of a cluster are in no shape that is looked for later.
var (
	containerFields = []string{"static_resources", "dynamic_resources", "resources", "configs", "clusters", "listeners", "route_config",
		"static_clusters", "dynamic_active_clusters", "dynamic_warming_clusters", "static_route_configs", "dynamic_route_configs", "static_listeners", "dynamic_listeners"}
	clusterFields = []string{"circuit_breakers", "outlier_detection", "lb_policy", "load_assignment", "eds_cluster_config", "cluster_type",
		"load_balancing_policy", "common_lb_config", "lb_subset_config", "connect_timeout", "health_checks", "dns_lookup_family",
		"typed_extension_protocol_options", "upstream_connection_options", "ignore_health_on_host_removal", "ring_hash_lb_config", "least_request_lb_config",
		"transport_socket_matches", "dns_refresh_rate", "respect_dns_ttl"}
	// sharedFields are those of clusterFields that files of others have, too.
	sharedFields = []string{"health_checks", "connect_timeout", "cluster_type", "load_balancing_policy", "dns_refresh_rate"}
	clusterTypes = []string{"STATIC", "STRICT_DNS", "LOGICAL_DNS", "EDS", "ORIGINAL_DST"}
	// otherFields are those of listeners, endpoints and secrets.
	otherFields  = []string{"filter_chains", "default_filter_chain", "cluster_name", "tls_certificate", "validation_context", "generic_secret", "session_ticket_keys"}
	routesFields = []string{"ignore_port_in_host_matching", "vhds", "internal_only_headers", "validate_clusters", "most_specific_header_mutations_wins"}
)

var typeShapes = map[string]shape{"Cluster": aCluster, "RouteConfiguration": routesShape, "VirtualHost": aVirtualHost}

// shapeOf returns the shape of n, by its @type or else by its fields. A shape that contains others is looked for first.
func shapeOf(n *tree.Node) shape {
	if n.Kind != tree.Map {
		return noShape
	}
	if name := typeOf(n); name != "" {
		return cmp.Or(typeShapes[name], aContainer)
	}
	kind := n.Get("type")
	switch {
	case hasAny(n, otherFields...):
		return otherShape
	case hasAny(n, containerFields...):
		return aContainer
	case hasAny(n, "virtual_hosts"):
		return routesShape
	case listIn(n, "domains") && listIn(n, "routes"):
		return aVirtualHost
	case hasAny(n, "match") && hasAny(n, "route", "redirect", "direct_response", "non_forwarding_action"):
		return aRoute
	case isCluster(n) || n.Get("name") != nil && kind != nil && slices.Contains(clusterTypes, kind.Text):
		return aCluster
	case hasAny(n, "retry_policy", "hedge_policy"):
		return anAction
	case hasAny(n, retryFields...):
		return aRetryPolicy
	case hasAny(n, routesFields...):
		return routesShape
	}
	return noShape
}

// isCluster reports whether n has a field that only clusters have, or two of those that others have as well.
func isCluster(n *tree.Node) bool {
	own, shared := false, 0
	for _, name := range clusterFields {
		switch {
		case !hasAny(n, name):
		case slices.Contains(sharedFields, name):
			shared++
		default:
			own = true
		}
	}
	return own || shared > 1 || shared == 1 && n.Get("name") != nil
}

// hasTypes reports whether there is an @type of Envoy anywhere in n: a tool may print resources under names of its own.
func hasTypes(n *tree.Node) bool {
	return strings.HasPrefix(textOf(n.Get("@type")), "type.googleapis.com/envoy.") || n.Any(hasTypes)
}

func typeOf(n *tree.Node) string { return lastOf(textOf(n.Get("@type"))) }

func listed(root *tree.Node) *tree.Node {
	if !strings.HasSuffix(textOf(root.Get("kind")), "List") {
		return nil
	}
	return root.Get("items")
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func hasAny(n *tree.Node, names ...string) bool {
	return slices.ContainsFunc(n.Members, func(m tree.Member) bool {
		return slices.ContainsFunc(names, func(name string) bool { return tree.SnakeOrCamel(m.Key, name) })
	})
}

func listIn(n *tree.Node, name string) bool {
	return slices.ContainsFunc(n.Members, func(m tree.Member) bool { return tree.SnakeOrCamel(m.Key, name) && m.Value.Kind == tree.List })
}
