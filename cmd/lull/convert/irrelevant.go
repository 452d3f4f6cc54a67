package convert

// Names that are known to have nothing to do with how calls are made; the report has them as aside.
// All other names that are not read are lost: nothing is left out only because it is unknown here.

func nameSet(all ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range all {
		set[plain(name)] = true
	}
	return set
}

// irrelevant are fields, in any spelling: names, which requests and hosts are meant, who may call,
// how connections are secured, what is logged and counted.
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
