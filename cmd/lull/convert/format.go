package convert

import (
	"slices"

	"github.com/lullgo/lull/internal/choice"
)

// A Format is a kind of file with settings for retries.
type Format uint8

// The formats.
const (
	// Lull is the policy file of this module: dependencies and their policies, in YAML.
	Lull Format = iota
	// GRPC is a gRPC service config (gRFC A6), in JSON.
	GRPC
	// Istio is VirtualServices and DestinationRules, in YAML.
	Istio
	// Envoy is routes and clusters: a whole configuration, resources as they are served
	// over xDS, or a route configuration, a cluster or a retry policy alone. YAML or JSON.
	Envoy
	// Gateway is the HTTPRoutes of the Kubernetes Gateway API, with their XBackendTrafficPolicies, in YAML.
	Gateway
	// EnvoyGateway is the BackendTrafficPolicies of Envoy Gateway, in YAML, which are read beside their HTTPRoutes.
	EnvoyGateway
	// Dapr is Dapr's Resiliency resources, in YAML: policies, and the targets that have them.
	Dapr
	// Resilience4j is its configuration in Spring Boot (application.yml), in YAML. It is read, and not written.
	Resilience4j
	// Linkerd is its ServiceProfiles, and the annotations of Services, in YAML. It is read, and not written.
	Linkerd
	formats
)

var (
	formatNames   = [formats]string{"lull", "grpc", "istio", "envoy", "gateway", "envoy-gateway", "dapr", "resilience4j", "linkerd"}
	formatSystems = [formats]string{"lull", "gRPC", "Istio", "Envoy", "the Gateway API", "Envoy Gateway", "Dapr", "resilience4j", "Linkerd"}
)

var formatTitles = [formats]string{
	"lull's policy file (YAML): dependencies, attempts, waits, budgets, breakers",
	"gRPC service config (JSON): retryPolicy, hedgingPolicy, retryThrottling",
	"Istio (YAML): VirtualService timeout and retries; DestinationRule connectionPool, outlierDetection, retryBudget",
	"Envoy (YAML or JSON): routes with retry_policy and hedge_policy; clusters with circuit_breakers and outlier_detection",
	"Gateway API (YAML): HTTPRoute timeouts and retry; XBackendTrafficPolicy retryConstraint",
	"Envoy Gateway (YAML): BackendTrafficPolicy retry, timeout, circuitBreaker, healthCheck.passive",
	"Dapr (YAML): Resiliency timeouts, retries, circuitBreakers and their targets",
	"resilience4j in Spring's application.yml (YAML; read alone): retry, circuitbreaker, timelimiter, bulkhead",
	"Linkerd (YAML; read alone): ServiceProfile routes and retryBudget; retry and timeout annotations of Services",
}

// Formats are all formats, in the order in which they are listed.
func Formats() []Format {
	all := make([]Format, formats)
	for i := range all {
		all[i] = Format(i)
	}
	return all
}

// Targets are the formats that can be written.
func Targets() []Format {
	return slices.DeleteFunc(Formats(), func(f Format) bool { return f == Resilience4j || f == Linkerd })
}

// String returns the name of the format, as on a command line.
func (f Format) String() string { return choice.Name("format", formatNames[:], f) }

// Title describes the format in a line.
func (f Format) Title() string {
	if f < formats {
		return formatTitles[f]
	}
	return ""
}

// System returns the name of the system that the format belongs to, such as "Istio".
func (f Format) System() string {
	if f < formats {
		return formatSystems[f]
	}
	return f.String()
}

// MarshalText returns the name of the format. The error is for a value that is no format.
func (f Format) MarshalText() ([]byte, error) { return choice.Marshal("Format", formatNames[:], f) }

// UnmarshalText reads the name of a format, in any case. The error names the text and what is allowed.
func (f *Format) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Format", formatNames[:], f, text)
}

// FormatNames are the names of all formats, in words: "lull, grpc, istio and so on".
func FormatNames() string { return choice.List(choice.Each(Formats(), Format.String)) }

// TargetNames are the names of the formats that can be written, in words.
func TargetNames() string { return choice.List(choice.Each(Targets(), Format.String)) }
