package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/choice"
)

// A Rule is a check of policies and call graphs.
type Rule struct {
	// ID is its name in output, comments and flags, in lower case with "-" between words.
	ID       string
	Severity Severity
	// Title is the meaning of a finding, in a line.
	Title string
	// Why describes the consequences, and how the rule decides.
	Why string
	// Sources are public primary sources.
	Sources []Source
	// Bad is a file in which the rule finds something, Good one in which none does.
	Bad, Good string

	check func(*pass)
}

// A Source is a public text on which a rule is based.
type Source struct {
	Title string `json:"title"`
	URL   string `json:"url,omitempty"`
}

// rules are all rules, in the order in which they are documented.
func rules() []Rule {
	return slices.Concat(timeRules(), sloRules(), patienceRules(), waitRules(), loadRules(), layerRules(), safetyRules(), breakerRules(), queueRules(), fileRules())
}

var catalogue = rules()

// Rules returns every rule. The order is stable; the slice is the caller's own.
func Rules() []Rule { return slices.Clone(catalogue) }

// FindRule returns the rule with the given id. The error names the nearest and lists them all.
func FindRule(id string) (Rule, error) {
	if r, ok := rule(id); ok {
		return r, nil
	}
	ids := make([]string, len(catalogue))
	for i, r := range catalogue {
		ids[i] = r.ID
	}
	guess := ""
	if near := nearestRule(id); near != "" {
		guess = "did you mean " + near + "? "
	}
	return Rule{}, fmt.Errorf("no rule is called %q: %sthere are %s", id, guess, strings.Join(ids, ", "))
}

func rule(id string) (Rule, bool) {
	for _, r := range catalogue {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// nearestRule is the id that was probably meant; empty: none is similar.
func nearestRule(id string) string {
	ids := make([]string, len(catalogue))
	for i, r := range catalogue {
		ids[i] = r.ID
	}
	return choice.Nearest(id, ids)
}

// Sources of several rules.
var (
	srcBuilders   = Source{"AWS Builders' Library, Timeouts, retries, and backoff with jitter", "https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/"}
	srcJitter     = Source{"AWS Architecture Blog, Exponential Backoff And Jitter", "https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/"}
	srcOverload   = Source{"Site Reliability Engineering, ch. 21, Handling Overload", "https://sre.google/sre-book/handling-overload/"}
	srcCascading  = Source{"Site Reliability Engineering, ch. 22, Addressing Cascading Failures", "https://sre.google/sre-book/addressing-cascading-failures/"}
	srcA6         = Source{"gRFC A6, Client Retries", "https://github.com/grpc/proposal/blob/master/A6-client-retries.md"}
	srcEnvoyLimit = Source{"Envoy, config.cluster.v3.CircuitBreakers, retry_budget", "https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/circuit_breaker.proto"}
	srcTail       = Source{"Dean and Barroso, The Tail at Scale, CACM 56(2), 2013", "https://research.google/pubs/the-tail-at-scale/"}
)
