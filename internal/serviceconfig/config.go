// Package serviceconfig reads and writes the part of gRPC service configs about retries (gRFC A6), and converts it into lull's
// policies and back, for lullgrpc and lull convert. It reads as grpc-go does where the implementations of gRPC differ (see [Reading]).
// All mistakes are reported together, each with its place and its path. What only one of the two forms has is reported as a [Loss].
//
// Waits are compared by the times that are drawn, not by their fields: for a call with one retry it does not matter how waits grow.
// A retryThrottling becomes a budget that pays for as many retries before the first success, and earns as fast; the inverse holds
// for a budget. gRPC counts failures, though, and lull successes, so that is always reported as changed.
package serviceconfig

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/grpcstatus"
	"github.com/lullgo/lull/internal/tree"
)

// A Config is a lullgrpc.ServiceConfig with Codes of this package, which needs no grpc-go. What the fields of it and of
// its parts mean is said there. [Parse] reads it from JSON, [Of] makes it from a policy, and json.Marshal writes it.
type Config struct {
	Methods    []MethodConfig
	Throttling *budget.GRPCConfig
	Ignored    []string
}

type MethodConfig struct {
	Names   []MethodName
	Timeout time.Duration
	Retry   *RetryPolicy
	Hedging *HedgingPolicy
}

type MethodName struct{ Service, Method string }

// Pattern returns the name as lullgrpc's options have it: "/service/method", "/service/" or "/".
func (n MethodName) Pattern() string {
	if n.Service == "" {
		return "/"
	}
	return "/" + n.Service + "/" + n.Method
}

// NameOf is the inverse of Pattern. ok is false if the text is no pattern.
func NameOf(pattern string) (n MethodName, ok bool) {
	if pattern == "/" {
		return n, true
	}
	service, method, ok := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
	ok = ok && strings.HasPrefix(pattern, "/") && service != "" && !strings.Contains(method, "/")
	if !ok {
		return MethodName{}, false
	}
	return MethodName{service, method}, true
}

type RetryPolicy struct {
	MaxAttempts           int // 0 only of FromGAPIC
	InitialBackoff        time.Duration
	MaxBackoff            time.Duration
	BackoffMultiplier     float64
	RetryableStatusCodes  []Code
	PerAttemptRecvTimeout time.Duration
}

type HedgingPolicy struct {
	MaxAttempts         int
	HedgingDelay        time.Duration
	NonFatalStatusCodes []Code
}

// Patterns are the patterns that match a method ("/service/method"), the nearest first: that of the
// method, that of its service, that of all.
func Patterns(method string) [3]string {
	return [...]string{method, method[:strings.LastIndexByte(method, '/')+1], "/"}
}

// MarshalJSON writes the config for gRPC, on one line. Durations have as many decimals as they need: "0.1s".
func (c Config) MarshalJSON() ([]byte, error) { return c.Tree().Compact(), nil }

// Tree returns the config as a tree.
func (c Config) Tree() *tree.Node {
	methods := tree.ListOf(choice.Each(c.Methods, MethodConfig.tree)...)
	root := tree.NewMap().SetIf(len(c.Methods) > 0, "methodConfig", methods)
	if t := c.Throttling; t != nil {
		root.Set("retryThrottling", tree.NewMap().Set("maxTokens", t.MaxTokens).Set("tokenRatio", t.TokenRatio))
	}
	return root
}

func (mc MethodConfig) tree() *tree.Node {
	names := tree.ListOf()
	for _, n := range mc.Names {
		names.Items = append(names.Items, tree.NewMap().SetIf(n.Service != "", "service", n.Service).SetIf(n.Method != "", "method", n.Method))
	}
	m := tree.NewMap().Set("name", names).Set("timeout", durationNode(mc.Timeout))
	if r := mc.Retry; r != nil {
		m.Set("retryPolicy", tree.NewMap().
			Set("maxAttempts", r.MaxAttempts).
			Set("initialBackoff", tree.Seconds(r.InitialBackoff)).
			Set("maxBackoff", tree.Seconds(r.MaxBackoff)).
			Set("backoffMultiplier", r.BackoffMultiplier).
			Set("retryableStatusCodes", codeList(r.RetryableStatusCodes)).
			Set("perAttemptRecvTimeout", durationNode(r.PerAttemptRecvTimeout)))
	}
	if h := mc.Hedging; h != nil {
		m.Set("hedgingPolicy", tree.NewMap().Set("maxAttempts", h.MaxAttempts).Set("hedgingDelay", durationNode(h.HedgingDelay)).
			SetIf(len(h.NonFatalStatusCodes) > 0, "nonFatalStatusCodes", codeList(h.NonFatalStatusCodes)))
	}
	return m
}

// durationNode is a duration, nil if it is zero.
func durationNode(d time.Duration) *tree.Node {
	if d == 0 {
		return nil
	}
	return tree.String(tree.Seconds(d))
}

func codeList(codes []Code) *tree.Node {
	list := tree.ListOf()
	for _, c := range codes {
		item := choice.Either(c > unauthenticated, tree.Int(int64(c)), tree.String(c.String())) // no reader accepts it
		list.Items = append(list.Items, item)
	}
	return list
}

// A Code is a status code of gRPC, by its number.
type Code uint32

// The codes that matter to a policy.
const (
	OK                Code = 0
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Unavailable       Code = 14
	unauthenticated   Code = 16
)

var codeNames = func() []string {
	names := slices.Clone(grpcstatus.Names[:])
	for i, name := range names {
		names[i] = strings.ToUpper(name)
	}
	return names
}()

// String returns the name of the code, such as "UNAVAILABLE", or the number of a code that gRPC does not have.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// CodeOf returns the code of that name, in any case.
func CodeOf(name string) (Code, bool) {
	i := slices.IndexFunc(codeNames, func(s string) bool { return strings.EqualFold(s, name) })
	return Code(max(i, 0)), i >= 0
}

// A Loss is something that could not be carried over unchanged.
type Loss struct {
	Field string // of the form it was in; of a policy, in Go: "Backoff.Jitter"
	Why   string
	// Changed: it was carried over, but has another meaning or was rounded. Otherwise it is gone.
	Changed bool
}

// String is both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

type losses []Loss

func (l *losses) add(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, false})
	}
}

func (l *losses) changed(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why, true})
	}
}
