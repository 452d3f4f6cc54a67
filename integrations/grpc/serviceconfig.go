package lullgrpc

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull/budget"
)

// A ServiceConfig is what a gRPC service config says of retries: plain data.
// [ParseServiceConfig] reads it from JSON, [ServiceConfigOf] makes it of a policy,
// and json.Marshal writes it.
type ServiceConfig struct {
	Methods []MethodConfig
	// Throttling is the retryThrottling of the whole server; nil: none.
	Throttling *budget.GRPCConfig
	// Ignored are the JSON paths of what was read over: fields that nobody knows, and
	// those that are gRPC's own business, such as loadBalancingConfig. It is not
	// written.
	Ignored []string
}

// MethodConfig is what it says of some methods.
type MethodConfig struct {
	Names []MethodName // none: it applies to nothing
	// Timeout bounds the call, with the deadline of its context. Zero: nothing does.
	Timeout time.Duration
	// At most one of the two. None: gRPC neither retries the method nor hedges it.
	Retry   *RetryPolicy
	Hedging *HedgingPolicy
}

// A MethodName names a method; all methods of a service if Method is empty; and
// all methods if both are.
type MethodName struct{ Service, Method string }

// pattern is the name as options have it.
func (n MethodName) pattern() string {
	if n.Service == "" {
		return "/"
	}
	return "/" + n.Service + "/" + n.Method
}

// A RetryPolicy is a retryPolicy. It has no defaults: all fields but the last are
// required.
type RetryPolicy struct {
	MaxAttempts          int // from 2, the first included; more than 5 count as 5 (see Reading)
	InitialBackoff       time.Duration
	MaxBackoff           time.Duration
	BackoffMultiplier    float64
	RetryableStatusCodes []codes.Code
	// PerAttemptRecvTimeout is an experiment of gRPC core and grpc-java. Zero: none.
	PerAttemptRecvTimeout time.Duration
}

// A HedgingPolicy is a hedgingPolicy.
type HedgingPolicy struct {
	MaxAttempts  int           // from 2, the first included; more than 5 count as 5 (see Reading)
	HedgingDelay time.Duration // zero: all attempts are sent at once
	// NonFatalStatusCodes are those after which other attempts may still succeed, so
	// that the next is sent at once. None: any failure ends the call.
	NonFatalStatusCodes []codes.Code
}

// Method is the configuration of a method ("/service/method"): the one that names
// it, else the one that names its service, else the one for all.
func (sc ServiceConfig) Method(method string) (MethodConfig, bool) {
	var found MethodConfig
	best := -1
	for _, mc := range sc.Methods {
		for _, n := range mc.Names {
			p := n.pattern()
			if p == method || p == "/" || strings.HasSuffix(p, "/") && p == method[:strings.LastIndexByte(method, '/')+1] {
				if len(p) > best {
					best, found = len(p), mc
				}
			}
		}
	}
	return found, best >= 0
}

// MarshalJSON writes the config as gRPC reads it, on one line. Durations have as
// many decimals as they need: "0.1s".
func (sc ServiceConfig) MarshalJSON() ([]byte, error) {
	type jsonName struct {
		Service string `json:"service,omitempty"`
		Method  string `json:"method,omitempty"`
	}
	type jsonRetry struct {
		MaxAttempts           int      `json:"maxAttempts"`
		InitialBackoff        string   `json:"initialBackoff"`
		MaxBackoff            string   `json:"maxBackoff"`
		BackoffMultiplier     float64  `json:"backoffMultiplier"`
		RetryableStatusCodes  []string `json:"retryableStatusCodes"`
		PerAttemptRecvTimeout string   `json:"perAttemptRecvTimeout,omitempty"`
	}
	type jsonHedging struct {
		MaxAttempts         int      `json:"maxAttempts"`
		HedgingDelay        string   `json:"hedgingDelay,omitempty"`
		NonFatalStatusCodes []string `json:"nonFatalStatusCodes,omitempty"`
	}
	type jsonMethod struct {
		Name          []jsonName   `json:"name"`
		Timeout       string       `json:"timeout,omitempty"`
		RetryPolicy   *jsonRetry   `json:"retryPolicy,omitempty"`
		HedgingPolicy *jsonHedging `json:"hedgingPolicy,omitempty"`
	}
	type jsonThrottling struct {
		MaxTokens  int     `json:"maxTokens"`
		TokenRatio float64 `json:"tokenRatio"`
	}
	var out struct {
		MethodConfig    []jsonMethod    `json:"methodConfig,omitempty"`
		RetryThrottling *jsonThrottling `json:"retryThrottling,omitempty"`
	}
	optional := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return formatDuration(d)
	}
	for _, mc := range sc.Methods {
		m := jsonMethod{Name: make([]jsonName, len(mc.Names)), Timeout: optional(mc.Timeout)}
		for i, n := range mc.Names {
			m.Name[i] = jsonName(n)
		}
		if r := mc.Retry; r != nil {
			m.RetryPolicy = &jsonRetry{
				r.MaxAttempts, formatDuration(r.InitialBackoff), formatDuration(r.MaxBackoff),
				r.BackoffMultiplier, statusNames(r.RetryableStatusCodes), optional(r.PerAttemptRecvTimeout),
			}
		}
		if h := mc.Hedging; h != nil {
			m.HedgingPolicy = &jsonHedging{h.MaxAttempts, optional(h.HedgingDelay), statusNames(h.NonFatalStatusCodes)}
		}
		out.MethodConfig = append(out.MethodConfig, m)
	}
	if t := sc.Throttling; t != nil {
		out.RetryThrottling = &jsonThrottling{t.MaxTokens, t.TokenRatio}
	}
	return json.Marshal(out)
}

func statusNames(list []codes.Code) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = strings.ToUpper(codeName(c))
	}
	return names
}

// maxDuration is what protobuf's Duration has room for, in seconds.
const maxDuration = 315_576_000_000

// parseDuration reads a duration as protobuf writes it in JSON: seconds with up
// to nine decimals, and an s. More than time.Duration has room for becomes its
// largest.
func parseDuration(text string) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(text, "s")
	if !ok {
		return 0, false
	}
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" && fraction == "" || len(fraction) > 9 {
		return 0, false
	}
	seconds, ok := decimal(whole)
	if !ok || seconds > maxDuration {
		return 0, false
	}
	nanos, ok := decimal(fraction + "000000000"[len(fraction):])
	if !ok {
		return 0, false
	}
	d := time.Duration(math.MaxInt64)
	if seconds < math.MaxInt64/int64(time.Second) || seconds == math.MaxInt64/int64(time.Second) && nanos <= math.MaxInt64%int64(time.Second) {
		d = time.Duration(seconds)*time.Second + time.Duration(nanos)
	}
	if negative {
		d = -d
	}
	return d, true
}

// decimal reads digits; none are zero. So many that they make no sense are more
// than any limit.
func decimal(text string) (n int64, ok bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(text[i]-'0'), math.MaxInt64/100)
	}
	return n, true
}

// formatDuration writes what parseDuration reads, with no more decimals than
// needed.
func formatDuration(d time.Duration) string {
	sign := ""
	abs := uint64(d)
	if d < 0 {
		sign, abs = "-", -abs
	}
	text := []byte(sign)
	text = strconv.AppendUint(text, abs/uint64(time.Second), 10)
	if nanos := abs % uint64(time.Second); nanos > 0 {
		fraction := strconv.AppendUint(nil, nanos+uint64(time.Second), 10) // a 1 and nine digits
		text = append(text, '.')
		text = append(text, strings.TrimRight(string(fraction[1:]), "0")...)
	}
	return string(append(text, 's'))
}
