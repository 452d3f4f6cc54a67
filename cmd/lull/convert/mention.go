package convert

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// What is not read may still be about calls: a patch of Envoy, a header, the annotation of another mesh. It is found by its name.

// relevantParts of names, in lower case without separators, are about how calls are made. What has such a name is reported as lost
// even within something that is aside.
var relevantParts = []string{"retry", "retries", "retriable", "hedge", "hedging", "timeout", "maxstreamduration", "circuitbreaker", "outlier",
	"failureaccrual", "backoff", "nextupstream", "connectattempts", "passivehealth", "healthcheck", "faultinjection", "admissioncontrol", "inflightreq", "deadletter", "failover"}

// unrelated are fields within which such names are about something else.
var unrelated = []string{"match", "matches", "healthchecks", "healthcheck", "livenessprobe", "readinessprobe", "startupprobe", "status", "managedfields",
	"labels", "selector", "edsclusterconfig", "configsource", "adsconfig", "cdsconfig", "ldsconfig", "rtdslayer", "hdsconfig", "accesslog", "tracing"}

// extensions of Envoy that refuse, slow down or break requests, by their types.
var extensions = []string{"AdmissionControl", "AdaptiveConcurrency", "HTTPFault"}

func isRelevant(name string) bool {
	name = plain(name)
	return slices.ContainsFunc(relevantParts, func(part string) bool { return strings.Contains(name, part) })
}

// plain is name in lower case, letters and digits only.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, name)
}

// mentions are the paths, below path, of parts of n that are about how calls are made, without those within another.
func mentions(n *tree.Node, path string) (all []string) {
	for i, item := range n.Items {
		all = append(all, mentions(item, tree.Element(path, i))...)
	}
	for _, m := range n.Members {
		at := tree.Join(path, m.Key)
		switch {
		case switchesOff(m.Value), slices.Contains(unrelated, plain(m.Key)):
		case isRelevant(m.Key):
			all = append(all, at)
		case m.Value.Kind == tree.Text && (m.Key == "key" || m.Key == "header" || m.Key == "name") && strings.HasPrefix(m.Value.Text, "x-envoy-") && isRelevant(m.Value.Text),
			m.Key == "@type" && slices.Contains(extensions, lastOf(m.Value.Text)):
			all = append(all, at)
		default:
			all = append(all, mentions(m.Value, at)...)
		}
	}
	return all
}

// switchesOff reports whether n is false, a time of zero, or a mapping of such values: nothing is lost with it.
func switchesOff(n *tree.Node) bool {
	switch n.Kind {
	case tree.Null:
		return true
	case tree.Bool:
		return strings.EqualFold(n.Text, "false")
	case tree.Text:
		d, err := time.ParseDuration(n.Text)
		return err == nil && d == 0
	case tree.Map:
		return len(n.Members) > 0 && !n.Any(func(n *tree.Node) bool { return !switchesOff(n) })
	}
	return false
}

const (
	notReadWhy = "it is not read here"
	offWhy     = "it is switched off"
	plainWhy   = "not how calls are made"
	routingWhy = "routing, " + plainWhy
	anchorWhy  = "it is there to be referred to"
)

// sweep records what nothing has read of n, which was opened. Readers mark what they read, so unknown fields are found.
func (d *document) sweep(n *tree.Node, path string) {
	if n.Use != tree.Opened {
		d.rest("", n, path, plainWhy)
		return
	}
	for i, item := range n.Items {
		if item.Kind >= tree.List { // single values are read with their list
			d.sweep(item, tree.Element(path, i))
		} else {
			d.octal(item, tree.Element(path, i))
		}
	}
	for _, m := range n.Members {
		at := tree.Join(path, m.Key)
		switch {
		case m.Value.Use == tree.Opened:
			d.sweep(m.Value, at)
		case path == "" && strings.HasPrefix(m.Key, "x-"):
			d.note(Aside, at, anchorWhy)
		default:
			d.rest(m.Key, m.Value, at, plainWhy)
		}
	}
}

// rest records n, which nothing has read: aside, for the reason why, if it is known to be about something else; otherwise lost.
func (d *document) rest(key string, n *tree.Node, path, why string) {
	name := plain(key)
	switch {
	case n.Kind == tree.Null || n.Use == tree.Told:
	case n.Use == tree.Opened:
		d.sweep(n, path)
	case n.Use == tree.Read && n.Kind < tree.List:
		d.octal(n, path)
	case path == key && strings.HasPrefix(key, "x-"):
		d.note(Aside, path, anchorWhy)
	case n.Kind >= tree.List && opened(n):
		d.inside(key, n, path, why)
	case switchesOff(n):
		d.note(Aside, path, offWhy)
	case key != "@type" && irrelevant[name] && !isRelevant(name), key == "@type" && containers[lastOf(n.Text)], n.Kind == tree.Map && otherTypes[typeOf(n)]:
		if !slices.Contains(unrelated, name) {
			for _, at := range mentions(n, path) {
				d.note(Lost, at, notReadWhy)
			}
		}
		d.note(Aside, path, why)
	case n.Kind < tree.List, isRelevant(name), n.Kind == tree.List && !n.Any(func(n *tree.Node) bool { return n.Kind >= tree.List }):
		d.note(Lost, path, notReadWhy)
	default:
		d.inside(key, n, path, why)
	}
}

func (d *document) inside(key string, n *tree.Node, path, why string) {
	for i, item := range n.Items {
		d.rest(key, item, tree.Element(path, i), why)
	}
	for _, m := range n.Members {
		d.rest(m.Key, m.Value, tree.Join(path, m.Key), why)
	}
}

func opened(n *tree.Node) bool { return n.Use == tree.Opened || n.Any(opened) }

// octal records a number that YAML reads as another than it looks.
func (d *document) octal(n *tree.Node, path string) {
	if n.Kind != tree.Number || len(n.Text) < 2 || n.Text[0] != '0' {
		return
	}
	if i, ok := tree.WholeNumber(n); ok && strconv.FormatInt(i, 10) != n.Text {
		d.note(Assumed, path, "a number that is not in decimal, as YAML has it: "+strconv.FormatInt(i, 10))
	}
}

func (d *document) annotations() {
	all := d.root.Get("metadata").Get("annotations")
	if all == nil {
		return
	}
	for _, m := range all.Members {
		d.noteIf(m.Value.Kind > tree.Null && !isUnrelated(m.Key), Lost, tree.Join("metadata.annotations", m.Key),
			"annotations are not read here")
	}
}

func isUnrelated(annotation string) bool {
	domain, name, ok := strings.Cut(annotation, "/")
	if isRelevant(name) || isRelevant(domain) {
		return false
	}
	return !ok || isOtherDomain(domain) ||
		slices.ContainsFunc(otherAnnotations, func(part string) bool { return strings.Contains(plain(name), part) })
}

func isOtherDomain(name string) bool {
	return slices.ContainsFunc(otherDomains, func(s string) bool { return name == s || strings.HasSuffix(name, "."+s) })
}

// unreadObject records a Kubernetes object that is not read. Of Kubernetes' own objects only annotations may be about calls.
func (d *document) unreadObject() {
	root := d.root
	kind, version := textOf(root.Get("kind")), textOf(root.Get("apiVersion"))
	d.annotations()
	if meta := root.Get("metadata"); meta != nil {
		meta.Use = tree.Told
	}
	group, _, _ := strings.Cut(version, "/")
	of := tree.Clip(kind) + " of " + tree.Clip(version)
	count := root.Count() - d.within
	root.Use = tree.Told
	if own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasPrefix(group, "gateway."); !own && !isOtherDomain(group) {
		for _, m := range root.Members {
			d.rest(m.Key, m.Value, m.Key, "")
		}
	}
	d.entries = slices.DeleteFunc(d.entries, func(e Entry) bool { return e.Kind == Aside }) // one entry for all of it
	for i := range d.entries {
		e := &d.entries[i]
		e.Why = choice.Either(e.Why == notReadWhy, of+" is not read here", e.Why)
		count -= max(e.Values, 1)
	}
	clear(d.noted)
	why := choice.Either(len(d.entries) > 0, "the rest of this ", "") + of + " says nothing of how calls are made"
	at := d.at("kind")
	d.entries = append(d.entries, Entry{Kind: Aside, Position: at.Position, Path: d.shown(at.path), Values: max(count, 0), Why: why})
}

// Names that are known to be about something else are aside. All others that are not read are lost.

func nameSet(all ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range all {
		set[plain(name)] = true
	}
	return set
}

// irrelevant are fields, in any spelling.
var irrelevant = nameSet(
	// objects of Kubernetes
	"apiVersion", "kind", "metadata", "status", "name", "namespace", "labels", "selector", "matchLabels", "annotations", "managedFields", "group", "sectionName",
	"targetRef", "targetRefs", "parentRefs", "backendRefs", "extensionRef", "workloadSelector", "exportTo", "secretRef", "secretName", "description",
	// which requests, and where they go
	"match", "matches", "matchers", "condition", "hosts", "host", "hostname", "hostnames", "domains", "gateways", "filters", "rewrite", "redirect", "directResponse", "headers", "mirror", "mirrors",
	"mirrorPercentage", "mirrorPercent", "mirrorPolicies", "corsPolicy", "cors", "weight", "port", "ports", "portName", "protocol", "subset", "subsets", "version", "path", "prefix", "uri", "url", "method",
	"service", "services", "serviceName", "cluster", "clusterName", "clusterHeader", "clusterNotFoundResponseCode", "hostRewriteLiteral", "hostRewritePath", "autoHostRewrite", "prefixRewrite",
	"regexRewrite", "appendXForwardedHost", "upgradeConfigs", "requestMirrorPolicies", "requestHeadersToAdd", "requestHeadersToRemove", "responseHeadersToAdd", "responseHeadersToRemove",
	"requireTls", "virtualClusters", "hashPolicy", "metadataMatch", "statPrefix", "decorator", "nonForwardingAction", "includeVhRateLimits", "internalOnlyHeaders", "vhds",
	"ignorePortInHostMatching", "mostSpecificHeaderMutationsWins", "validateClusters", "routeTypes", "tcp", "tls", "http2", "weights", "runtimeFraction", "totalWeight", "runtimeKeyPrefix",
	"sessionAffinity", "sniHosts", "sourceLabels", "sourceNamespace", "queryParams", "queryParameters", "ignoreUriCase", "caseSensitive", "entryPoints", "routePrefix",
	// connections and hosts of clusters
	"type", "clusterType", "edsClusterConfig", "loadAssignment", "endpoints", "lbEndpoints", "lbPolicy", "loadBalancer", "loadBalancingPolicy", "loadBalancerType", "lbSubsetConfig", "ringHashLbConfig",
	"leastRequestLbConfig", "roundRobinLbConfig", "maglevLbConfig", "originalDstLbConfig", "dnsLookupFamily", "dnsRefreshRate", "dnsFailureRefreshRate", "respectDnsTtl", "dnsResolvers", "useTcpForDnsLookups", "typedDnsResolverConfig",
	"transportSocket", "transportSocketMatches", "upstreamBindConfig", "altStatName", "ignoreHealthOnHostRemoval", "closeConnectionsOnHostHealthFailure", "protocolSelection",
	"http2ProtocolOptions", "httpProtocolOptions", "perConnectionBufferLimitBytes", "explicitHttpConfig", "useDownstreamProtocolConfig", "autoConfig",
	"waitForWarmOnInit", "zoneAwareLbConfig", "localityWeightedLbConfig", "localityLbSetting", "locality", "priority", "proxyProtocol", "tunnel", "warmup", "loadReporting", "trackClusterStats",
	"upstreamConnectionOptions", "closeConnectionsOnHostSetChange", "updateMergeWindow", "ignoreNewHostsUntilFirstHc", "consistentHashingLbConfig", "overrideHostStatus", "preconnectPolicy",
	// listeners and the bootstrap
	"address", "additionalAddresses", "addresses", "socketAddress", "portValue", "filterChainMatch", "listenerFilters", "transparent", "freebind", "trafficDirection", "bindToPort", "socketOptions", "enableReusePort", "useOriginalDst",
	"codecType", "accessLog", "accessLogs", "accessLogOptions", "tracing", "telemetry", "serverName", "serverHeaderTransformation", "useRemoteAddress", "xffNumTrustedHops", "forwardClientCertDetails",
	"setCurrentClientCertDetails", "preserveExternalRequestId", "generateRequestId", "normalizePath", "mergeSlashes", "pathWithEscapedSlashesAction", "upgradeType", "rds", "scopedRoutes",
	"suppressEnvoyHeaders", "startChildSpan", "dynamicStats", "originalIpDetectionExtensions", "stripAnyHostPort", "stripMatchingHostPort", "alwaysSetRequestIdInResponse", "proxy100Continue",
	"acceptHttp10", "defaultHostForHttp10", "headersWithUnderscoresAction", "localReplyConfig", "configSource", "configDiscovery", "resourceApiVersion",
	"node", "admin", "statsSinks", "statsConfig", "statsFlushInterval", "adsConfig", "cdsConfig", "ldsConfig", "rtdsLayer", "hdsConfig", "dynamicResources", "xdsConfigTracker", "flagsPath",
	"versionInfo", "lastUpdated", "clientStatus", "secrets", "tlsCertificate", "tlsCertificates", "tlsContext", "tlsMode", "validationContext", "genericSecret", "sessionTicketKeys", "staticSecrets", "dynamicSecrets", "staticListenersVersion",
	// who may call
	"auth", "authentication", "authorization", "jwt", "jwks", "oidc", "apiKeyAuth", "basicAuth", "rules.from", "ipAllowDeny", "ipWhiteList", "certificates", "certResolver", "sni",
)

// containers are types of Envoy in which the readers look for others.
var containers = map[string]bool{"HttpConnectionManager": true, "Router": true, "Listener": true, "Bootstrap": true, "BootstrapConfigDump": true, "ClustersConfigDump": true,
	"ListenersConfigDump": true, "RoutesConfigDump": true, "ScopedRoutesConfigDump": true, "SecretsConfigDump": true, "EndpointsConfigDump": true, "EcdsConfigDump": true,
	"RouteConfiguration": true, "Cluster": true, "VirtualHost": true, "HttpProtocolOptions": true, "Secret": true, "ClusterLoadAssignment": true}

// otherTypes are types of Envoy that are about something else.
var otherTypes = map[string]bool{"UpstreamTlsContext": true, "DownstreamTlsContext": true, "QuicDownstreamTransport": true, "RawBuffer": true, "FileAccessLog": true, "StdoutAccessLog": true, "StderrAccessLog": true,
	"OpenTelemetryAccessLogConfig": true, "TlsInspector": true, "HttpInspector": true, "OriginalDst": true, "ProxyProtocol": true, "Cors": true, "CorsPolicy": true, "RBAC": true, "RBACPerRoute": true, "JwtAuthentication": true,
	"PerRouteConfig": true, "GrpcWeb": true, "FilterConfig": true, "HeaderMutation": true, "HeaderMutationPerRoute": true, "Compressor": true, "BasicAuth": true, "OAuth2": true, "ApiKeyAuth": true, "Secret": true,
	"ClusterLoadAssignment": true, "SecretsConfigDump": true, "EndpointsConfigDump": true, "RoundRobin": true, "LeastRequest": true, "Random": true, "RingHash": true, "Maglev": true, "UuidRequestIdConfig": true,
	"XffConfig": true, "PreviousHostsPredicate": true}

// otherDomains are groups of Kubernetes, and domains of annotations, that are about something else.
var otherDomains = []string{"cert-manager.io", "monitoring.coreos.com", "security.istio.io", "telemetry.istio.io", "extensions.istio.io", "helm.sh", "argocd.argoproj.io", "toolkit.fluxcd.io",
	"external-secrets.io", "bitnami.com", "kubectl.kubernetes.io", "prometheus.io", "app.kubernetes.io", "deployment.kubernetes.io", "control-plane.alpha.kubernetes.io", "sidecar.istio.io", "external-dns.alpha.kubernetes.io"}

// otherAnnotations are parts of the names of annotations that are about something else.
var otherAnnotations = []string{"rewrite", "redirect", "ssl", "tls", "cert", "auth", "cors", "regex", "class", "whitelist", "allowlist", "inject", "checksum", "lastapplied", "scrape", "loglevel", "appprotocol", "serverlesstype"}
