package convert

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/waits"
)

// A failures lists the failures that a proxy retries, in the words of Envoy's retry_on.
type failures struct {
	on       []string // what Envoy knows, in the order of the file
	statuses []int    // retriable_status_codes
}

// The words of x-envoy-retry-on and x-envoy-retry-grpc-on.
var (
	onHTTP = []string{"5xx", "gateway-error", "connect-failure", "envoy-ratelimited", "retriable-4xx", "refused-stream",
		"retriable-status-codes", "retriable-headers", "reset", "reset-before-request", "http3-post-connect-failure"}
	onGRPC = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}
)

const statusCodes = "retriable-status-codes"

// parseRetryOn splits a retry_on as Envoy does, which ignores unknown words.
func parseRetryOn(text string) (known, unknown []string) {
	for _, word := range strings.Split(text, ",") {
		word = strings.Trim(word, " \t\r\n")
		switch {
		case slices.Contains(onHTTP, word), slices.Contains(onGRPC, word):
			known = append(known, word)
		case word != "":
			unknown = append(unknown, word)
		}
	}
	return known, unknown
}

// parseIstioRetryOn splits a retryOn as Istio does for Envoy: statuses become retriable_status_codes.
func parseIstioRetryOn(text string) failures {
	var f failures
	for _, word := range strings.Split(text, ",") {
		word = strings.Trim(word, " \t\r\n")
		if n, err := strconv.Atoi(word); err == nil && http.StatusText(n) != "" {
			f.statuses = append(f.statuses, n)
		} else if word != "" {
			f.on = append(f.on, word)
		}
	}
	if len(f.statuses) > 0 && !slices.Contains(f.on, statusCodes) {
		f.on = append(f.on, statusCodes)
	}
	return f
}

// transient are the statuses that lullhttp takes for transient failures.
var transient = []int{408, 425, 500, 502, 503, 504}

const rateLimited = 429

// permanent are the statuses from 500 that lullhttp does not take for transient failures.
var permanent = []int{501, 505, 506, 507, 508, 510, 511, 525, 526}

// failuresOf returns the failures that a proxy should retry to come near to the policy, which has its defaults.
func failuresOf(p lull.Policy) failures {
	f := failures{on: []string{"connect-failure", "refused-stream", "reset-before-request", statusCodes}, statuses: slices.Clone(transient)}
	if p.Timeouts == lull.TimeoutsAlways {
		f.on[2] = "reset" // it includes attempts that timed out
	}
	if patient := p.RateLimitedBase > max(p.Backoff.Ceiling(1), waits.SameWhenRateLimited); !patient {
		f.statuses = append(f.statuses, rateLimited)
		slices.Sort(f.statuses)
	}
	return f
}

func (f failures) includes(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(f.on, w) })
}

func (f failures) retried(status int) bool {
	return f.includes("5xx") && status >= 500 && status <= 599 ||
		f.includes("gateway-error") && status >= 502 && status <= 504 ||
		f.includes("retriable-4xx") && status == http.StatusConflict ||
		f.includes(statusCodes) && slices.Contains(f.statuses, status)
}

// apply sets in p what a policy can express of f. why lists the differences; it is empty if there are none.
func (f failures) apply(p *lull.Policy) (why string) {
	var also, not []string
	resets := f.includes("reset", "5xx", "gateway-error")
	p.Timeouts = timeoutsIf(resets || f.includes("deadline-exceeded"))
	p.RateLimitedBase = waits.Patience(p.Backoff)
	if f.retried(rateLimited) || f.includes("resource-exhausted") {
		p.RateLimitedBase = waits.SameWhenRateLimited
	}
	for _, status := range []int{408, 425, rateLimited, 500, 502, 503, 504} {
		if !f.retried(status) && (status != rateLimited || p.RateLimitedBase != waits.SameWhenRateLimited) {
			also = append(also, strconv.Itoa(status))
		}
	}
	for _, each := range [][2]string{{"connect-failure", "refused connections"}, {"refused-stream", "refused streams"}, {"", "connections that break"}} {
		if !resets && !f.includes(each[0]) {
			also = append(also, each[1])
		}
	}
	for _, each := range [][2]string{{"5xx", "501, 505 to 508, 510, 511, 525, 526"}, {"retriable-4xx", "409"}} {
		if f.includes(each[0]) {
			not = append(not, each[1])
		}
	}
	for _, status := range f.statuses {
		if f.includes(statusCodes) && status != rateLimited && !slices.Contains(transient, status) && (status < 500 || slices.Contains(permanent, status) && !f.includes("5xx")) {
			not = append(not, strconv.Itoa(status))
		}
	}
	for _, word := range []string{"retriable-headers", "envoy-ratelimited", "cancelled", "internal"} {
		if f.includes(word) {
			not = append(not, word)
		}
	}
	var parts []string
	if len(also) > 0 {
		parts = append(parts, "also retries "+strings.Join(also, ", "))
	}
	if len(not) > 0 {
		parts = append(parts, "does not retry "+strings.Join(slices.Compact(not), ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "a policy has no such list: lull " + strings.Join(parts, ", and ") + " (lullhttp.WithStatus decides otherwise, in code)"
}

func timeoutsIf(retried bool) engine.TimeoutRetries {
	return choice.Either(retried, lull.TimeoutsAlways, lull.TimeoutsNever)
}

// codes are the gRPC codes that are retried, as gRPC itself reads them from a route (gRFC A44).
func (f failures) codes() []serviceconfig.Code {
	var all []serviceconfig.Code
	for _, word := range onGRPC {
		if c, ok := serviceconfig.CodeOf(strings.ReplaceAll(word, "-", "_")); ok && f.includes(word) {
			all = append(all, c)
		}
	}
	return all
}

// failuresOfCodes is the inverse of codes. left are the codes that Envoy does not have.
func failuresOfCodes(codes []serviceconfig.Code) (f failures, left []string) {
	for _, c := range codes {
		word := strings.ReplaceAll(strings.ToLower(c.String()), "_", "-")
		if slices.Contains(onGRPC, word) {
			f.on = append(f.on, word)
		} else {
			left = append(left, c.String())
		}
	}
	return f, left
}

// wholeClass replaces the statuses from 500 by their word, if f has all of them.
func (f *failures) wholeClass() {
	if rest := slices.DeleteFunc(slices.Clone(f.statuses), func(status int) bool { return status >= 500 }); len(f.statuses)-len(rest) == 100 {
		f.on, f.statuses = append(f.on, "5xx"), rest
	}
}

// istioOn is f as a retryOn: words and statuses. left are statuses that Istio does not know.
func (f failures) istioOn() (on string, left []string) {
	words := slices.Clone(f.on)
	for _, status := range f.statuses {
		if text := strconv.Itoa(status); http.StatusText(status) != "" {
			words = append(words, text)
		} else {
			left = append(left, text)
		}
	}
	return strings.Join(words, ","), left
}

// String returns what is retried, for a message.
func (f failures) String() string {
	s := strings.Join(f.on, ",")
	if len(f.statuses) > 0 {
		s += fmt.Sprint(f.statuses)
	}
	return s
}
